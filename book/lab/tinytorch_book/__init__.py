"""The laboratory of the book: what its chapters check, read and repeat, beside the library."""

from tinytorch import __version__ as __version__  # first: it says how many threads NumPy has
