# ---- The sandbox has no network: what would reach for it says what to use instead.
def _open(self, fullurl, data=None, timeout=None):
    scheme = _splittype(fullurl.full_url if isinstance(fullurl, Request) else fullurl)[0]
    if scheme in ("http", "https", "ftp"):
        raise URLError('there is no network here: use call_tool("fetch_url", url=...)')
    return _OpenerDirector_open(self, fullurl, data, timeout)


_OpenerDirector_open = OpenerDirector.open
OpenerDirector.open = _open
