# ruff: noqa: F821
# mypy: ignore-errors
import json
import re

FRONT = "https://www.bbc.com/sport/football/world-cup"
LABELS = (
    "Story|Group|Home team|Away team|Half-time score|Score|Goal|Player of the match|Venue|Attendance"
    "|Kick-off|Home points|Away points|Team|Player|Injury|Out for|Replacement"
)
FACT = re.compile(rf"\b({LABELS}): *(.+?) *(?=$|\n|\b(?:{LABELS}): )")

front = call_tool("fetch_url", url=FRONT)
print(front["STATUS"], front["TITLE"], len(front["LINKS"]), "links")
stories = []
for link in front["LINKS"]:
    if "/articles/" not in link:
        continue
    page = call_tool("fetch_url", url=link)
    if page["STATUS"] != "ok":
        print("skipped", link, page["STATUS"], page.get("REASON", ""))
        continue
    story = {"url": page["URL"], "title": page["TITLE"], "summary": page["DESCRIPTION"], "goals": []}
    for label, value in FACT.findall(page["BODY"]):
        key = label.lower().replace(" ", "_").replace("-", "_")
        if key == "goal":
            minute, team, player, how = [part.strip() for part in value.split(",")]
            story["goals"].append({"minute": int(minute), "team": team, "player": player, "how": how})
        else:
            story[key] = value
    stories.append(story)
    print("read", link, "|", page["TITLE"])
print("STORIES " + json.dumps(stories, ensure_ascii=False))
