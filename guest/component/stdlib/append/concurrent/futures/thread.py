# ---- The sandbox has one thread: work is done when it is submitted.
def _submit(self, fn, /, *args, **kwargs):
    with self._shutdown_lock:
        if self._broken:
            raise self.BROKEN(self._broken)
        if self._shutdown:
            raise RuntimeError("cannot schedule new futures after shutdown")
    future = _base.Future()
    future.set_running_or_notify_cancel()
    try:
        result = fn(*args, **kwargs)
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(result)
    return future


_submit.__name__ = _submit.__qualname__ = "submit"
ThreadPoolExecutor.submit = _submit
