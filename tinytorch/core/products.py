"""Products, exp and tanh: NumPy's own, and in a browser those of a small library.

Natively a product is handed to a BLAS. In the reader's browser NumPy has none, nor the vector
mathematics that compute exp and tanh: a product there took twenty times as long, a tanh seventy.
`wasm/products.c` fills the gap, for float32. `make products` compiles it, twice: the faster one
needs a fused multiply-add, which some browsers lack.

Attributes:
    matmul: `np.matmul`, or what stands in for it: the same values but for rounding.
    dot: the same for two matrices; natively `np.dot`, which is faster for a single row.
    exp: `np.exp`, or what stands in for it, as `exp(x)` or `exp(x, out)`.
    tanh: `np.tanh`, likewise.
"""

import os
import sys
import warnings
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import Any

import numpy as np

LIBRARIES = ("products_relaxed.wasm", "products.wasm")  # the first that can be loaded is used
_FOLDER = os.path.join(os.path.dirname(__file__), "wasm")


def library(platform: str = sys.platform) -> Any:
    """The compiled library in a browser; elsewhere, and where it cannot be loaded, NumPy.

    Example:
        >>> library("linux") is np
        True
    """
    if platform != "emscripten":
        return np
    for name in LIBRARIES:
        loader = ExtensionFileLoader("products", os.path.join(_FOLDER, name))
        try:
            found: Any = module_from_spec(spec_from_loader("products", loader))  # type: ignore[arg-type]
        except ImportError as error:
            reason = str(error).partition("\n")[0]
        else:
            found.use(np.ndarray, np.empty, np.dtype(np.float32), np.matmul, np.exp, np.tanh)
            return found
    follows = "NumPy multiplies matrices instead, some twenty times as slowly"
    told = f"the fast products cannot be loaded ({reason}); {follows}"
    warnings.warn(told, RuntimeWarning, stacklevel=2)
    return np


_fast = library()
matmul, exp, tanh = _fast.matmul, _fast.exp, _fast.tanh
dot = np.dot if _fast is np else matmul
