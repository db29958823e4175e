"""Matrix products: NumPy's own, and in a browser those of a small library.

Natively a product is handed to a BLAS. In the reader's browser NumPy has none, and a product there
took twenty times as long; `wasm/products.c` is what fills the gap, for float32. `make products`
compiles it, twice: the faster one needs a fused multiply-add, which some browsers lack.

Attributes:
    matmul: `np.matmul`, or what stands in for it: the same values but for rounding.
    dot: the same for two matrices; natively `np.dot`, which is faster for a single row.
"""

import sys
import warnings
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import numpy as np

LIBRARIES = ("products_relaxed.wasm", "products.wasm")  # the first that can be loaded is used
_FOLDER = Path(__file__).with_name("wasm")


def library_matmul(platform: str = sys.platform) -> Any:
    """The library's product in a browser; None elsewhere, and where it cannot be loaded.

    Example:
        >>> library_matmul("linux") is None
        True
    """
    if platform != "emscripten":
        return None
    for name in LIBRARIES:
        loader = ExtensionFileLoader("products", str(_FOLDER / name))
        try:
            spec = spec_from_loader("products", loader)
            library = module_from_spec(spec)  # type: ignore[arg-type]
        except ImportError as error:
            reason = str(error).partition("\n")[0]
        else:
            library.use(np.ndarray, np.empty, np.dtype(np.float32), np.matmul)
            return library.matmul
    follows = "NumPy multiplies matrices instead, some twenty times as slowly"
    told = f"the fast products cannot be loaded ({reason}); {follows}"
    warnings.warn(told, RuntimeWarning, stacklevel=2)
    return None


_fast = library_matmul()
matmul, dot = (_fast, _fast) if _fast else (np.matmul, np.dot)
