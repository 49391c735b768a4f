# ruff: noqa
# mypy: ignore-errors
# What ContentAgent's stand-in works out, in the sandbox, from the facts of one story.
def work_out(story):
    if story["story"] == "preview":
        level = story["home_points"] == story["away_points"]
        story["level_points" if level else "points_apart"] = story["home_points"]
    if story["story"] != "match report":
        return
    home, away = (int(goals) for goals in story["score"].split("-"))
    before = [int(goals) for goals in story["half_time_score"].split("-")]
    running = {story["home_team"]: 0, story["away_team"]: 0}
    for goal in sorted(story["goal"], key=lambda goal: int(goal["minute"].rstrip("'"))):
        goal["minute"] = goal["minute"].rstrip("'")
        other = sum(running.values()) - running[goal["team"]]
        mine = running[goal["team"]] = running[goal["team"]] + 1
        goal["deed"] = (
            "opens"
            if mine == 1 and other == 0
            else "levels"
            if mine == other
            else "leads"
            if mine == other + 1
            else "extends"
            if mine > other
            else "reduces"
        )
    if list(running.values()) != [home, away]:
        print("goals and score disagree:", story["url"], running, story["score"])
    if home == away:
        story["goalless" if home == 0 else "draw"] = True
        return
    story["winner"], story["loser"] = (
        (story["home_team"], story["away_team"]) if home > away else (story["away_team"], story["home_team"])
    )
    story["winner_score"] = f"{max(home, away)}-{min(home, away)}"
    behind = before[0] < before[1] if home > away else before[1] < before[0]
    story["comeback" if behind else "narrow" if abs(home - away) == 1 else "clear"] = True
