# Spark is an extra, and large: what we use of it.
from typing import Any

class SparkSession:
    builder: Any
    Builder: Any
    getActiveSession: Any
    def __getattr__(self, name: str) -> Any: ...
