# ruff: noqa: F821
# mypy: ignore-errors
page = call_tool("fetch_url", url="https://www.bbc.com/sport/football/world-cup")
print(page["STATUS"], page["TITLE"])
print(page["body"][:500])
