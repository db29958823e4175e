"""What the pages' Python does when it has started from the snapshot (see make.mjs).

Random numbers are not everybody's same, and the library for products is the one that suits the
browser, not the machine on which the snapshot was made.
"""

import importlib
import random
import sys

import numpy

from tinytorch.core import kernels

random.seed()
numpy.random.seed()

before = dict(vars(kernels))
importlib.reload(kernels)
for module in [module for name, module in sys.modules.items() if name.startswith("tinytorch")]:
    for name in ("matmul", "dot", "exp", "tanh"):
        if vars(module).get(name) is before[name]:
            setattr(module, name, getattr(kernels, name))
