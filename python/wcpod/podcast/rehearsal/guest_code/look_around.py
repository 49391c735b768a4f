# mypy: ignore-errors
import json
import tempfile
from pathlib import Path

fresh = "stories" not in globals() and Path("/").is_dir() and json.loads("[1]") == [1]
with tempfile.NamedTemporaryFile() as file:
    file.write(b"ok")
print("all there" if fresh else "something is missing")
