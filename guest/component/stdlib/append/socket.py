# ---- The sandbox has no network: what would reach for it says what to use instead.
def _refuse(*args, **kwargs):
    raise PermissionError(errno.EACCES, 'there is no network here: use call_tool("fetch_url", url=...)')


import errno

socket.__init__ = _refuse
create_connection = create_server = getaddrinfo = gethostbyname = gethostbyname_ex = _refuse
