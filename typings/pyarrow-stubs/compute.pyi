# pyarrow makes its compute functions when it is imported, where no type checker can see them.
from typing import Any

def __getattr__(name: str) -> Any: ...
