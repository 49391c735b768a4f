# ruff: noqa: F821
# mypy: ignore-errors
import json
import re

front = json.loads("INPUT_front")
links = json.loads("INPUT_links")
labels = json.loads("INPUT_labels")
lists = json.loads("INPUT_lists")

ANY = "|".join(map(re.escape, labels))
FACT = re.compile(rf"(?<!\w)({ANY}): *(.+?) *(?=$|\n|(?<!\w)(?:{ANY}): )")

page = call_tool("fetch_url", url=front)
print(page["STATUS"], page["TITLE"], len(page["LINKS"]), "links")
stories = []
for link in page["LINKS"]:
    if links not in link:
        continue
    page = call_tool("fetch_url", url=link)
    if page["STATUS"] != "ok":
        print("skipped", link, page["STATUS"], page.get("REASON", ""))
        continue
    story = {"url": page["URL"], "title": page["TITLE"], **{key: [] for key in lists}}
    for label, value in FACT.findall(page["BODY"]):
        key = label.lower().replace(" ", "_").replace("-", "_")
        if key in lists:
            story[key].append(dict(zip(lists[key], [part.strip() for part in value.split(",")], strict=False)))
        else:
            story[key] = value
    stories.append(story)
    print("read", link, "|", page["TITLE"])
print("STORIES " + json.dumps(stories, ensure_ascii=False))
