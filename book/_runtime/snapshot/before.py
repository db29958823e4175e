"""What the pages' Python has done before it is kept in a snapshot: the imports (see make.mjs).

A figure is drawn as well: what matplotlib loads for that, and finds out about fonts, is kept too.
"""

import functools
import gc
import io
import warnings

import inline_svg  # noqa: F401
import live_runner  # noqa: F401
import matplotlib.pyplot as plt
import numpy.random  # noqa: F401

with warnings.catch_warnings(action="ignore"):  # of a library that is loaded afterwards
    import tinytorch_book.check  # noqa: F401

figure, axes = plt.subplots()
axes.plot([1, 2, 3], label="a")
axes.set_title("A title")
axes.set_yscale("log")
axes.legend()
figure.savefig(io.StringIO(), format="svg")
plt.close("all")

# A font holds its file open, which a snapshot cannot. Fonts are in caches, and in the frames that
# exceptions have kept: to parse a formula is to try, and the collector does not find them all.
for kept in gc.get_objects():
    if isinstance(kept, functools._lru_cache_wrapper):
        if kept.__module__.startswith("matplotlib"):
            kept.cache_clear()
    elif isinstance(kept, BaseException):
        kept.__traceback__ = None
del kept
gc.collect()
