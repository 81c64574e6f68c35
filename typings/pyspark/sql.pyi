# Spark is an extra, and large: what we use of it.
from typing import Any

class SparkSession:
    class Builder:
        def __getattr__(self, name: str) -> Any: ...

    builder: Builder
    getActiveSession: Any
    def __getattr__(self, name: str) -> Any: ...
