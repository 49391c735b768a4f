# mypy: ignore-errors
import json

stories = json.loads("INPUT_stories")
ORDER = {"match report": 0, "team news": 1, "preview": 2}
outline = []
for story in sorted(stories, key=lambda story: ORDER.get(story.get("story"), 3)):
    if story.get("story") == "match report":
        home, away = (int(goals) for goals in story["score"].split("-"))
        half_home, half_away = (int(goals) for goals in story["half_time_score"].split("-"))
        story["winner"] = story["home_team"] if home > away else story["away_team"] if away > home else None
        lead = (home - away) * (half_home - half_away)
        story["comeback"] = lead < 0 or (home == away and half_home != half_away)
        running = {story["home_team"]: 0, story["away_team"]: 0}
        for goal in sorted(story["goals"], key=lambda goal: goal["minute"]):
            running[goal["team"]] += 1
            goal["score_after"] = f"{running[story['home_team']]}-{running[story['away_team']]}"
        if list(running.values()) != [home, away]:
            print("goals and score disagree:", story["url"], running, story["score"])
    outline.append(story)
    print(len(outline), story.get("story"), "|", story["title"])
print("OUTLINE " + json.dumps(outline, ensure_ascii=False))
