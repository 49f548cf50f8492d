# TensorFlow builds its public modules at run time; the stubs that ship with pyright describe an
# older one and take tensors for optional. Everything in it is Any.
from typing import Any

def __getattr__(name: str) -> Any: ...
