# ---- The sandbox has no TLS and no network: what would reach for them says what to use instead.
def __getattr__(name):
    if name == "HTTPSConnection":
        raise AttributeError('there is no network here: use call_tool("fetch_url", url=...)')
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
