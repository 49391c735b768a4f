# ---- The sandbox has no TLS either: a connection says what to use instead.
class HTTPSConnection(HTTPConnection):
    default_port = HTTPS_PORT


__all__.append("HTTPSConnection")
