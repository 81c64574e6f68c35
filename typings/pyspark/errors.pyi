# Spark is an extra, and large: what we use of it.
from typing import Any

class PySparkException(Exception):
    getCondition: Any
