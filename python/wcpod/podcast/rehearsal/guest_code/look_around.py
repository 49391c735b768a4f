import json
import os
import tempfile

fresh = "stories" not in globals() and os.path.isdir("/") and json.loads("[1]") == [1]
with tempfile.NamedTemporaryFile() as file:
    file.write(b"ok")
print("all there" if fresh else "something is missing")
