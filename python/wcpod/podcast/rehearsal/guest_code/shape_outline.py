# mypy: ignore-errors
import datetime as dt
import json

stories = json.loads("INPUT_stories")
wanted = json.loads("INPUT_wanted")
day = dt.date.fromisoformat(json.loads("INPUT_day"))


def work_out(story):
    """A show may work out more from a story's facts."""


# INPUT_work_out

outline = []
for kind, number in wanted:
    found = [story for story in stories if story.get("story") == kind]
    first = day.toordinal() * number
    taken = [found[(first + at) % len(found)] for at in range(min(number, len(found)))]
    for story in taken:
        work_out(story)
        outline.append(story)
        print(len(outline), kind, "|", story["title"])
print("OUTLINE " + json.dumps(outline, ensure_ascii=False))
