"""Let the code read web pages: only those that a policy allows, and here out of an archive instead of the network.

It prints:

    ok World Cup 2026
    blocked host example.org is not allowed; allowed: bbc.com, www.bbc.com
    fetch_url ok 200
    fetch_url blocked None
"""

from wcpod import FetchPolicy, Sandbox
from wcpod.podcast.models.rehearsal import SAMPLE_PAGES

CODE = """
page = call_tool("fetch_url", url="https://www.bbc.com/sport/football/world-cup")
print(page["STATUS"], page["TITLE"])
page = call_tool("fetch_url", url="https://example.org/")
print(page["STATUS"], page["REASON"])
"""

with Sandbox(policy=FetchPolicy.bbc(), archive=SAMPLE_PAGES) as sandbox:
    result = sandbox.run(CODE)
    print(result.stdout, end="")
    for call in result.host_calls:
        print(call.name, call.status, call.fetch and call.fetch.http_status)
