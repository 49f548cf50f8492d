# Keras builds its public modules at run time; nothing in them has types.
from typing import Any

def __getattr__(name: str) -> Any: ...
