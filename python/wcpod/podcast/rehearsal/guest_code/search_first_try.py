# ruff: noqa: F821
# mypy: ignore-errors
import json

front = json.loads("INPUT_front")
page = call_tool("fetch_url", url=front)
print(page["STATUS"], page["TITLE"])
print(page["body"][:500])
