"""The published model that the book ends with, as a page gets it, and copies with other parts."""

from __future__ import annotations

import copy
import sys
from functools import cache
from pathlib import Path

from tinytorch.models.llama import load_llama, published_file
from tinytorch.models.transformer import GPT
from tinytorch.text.bpe_tokenizer import BPETokenizer

__all__ = ["load_published_model", "published_path", "same_weights"]

SHOWN = Path("/published")  # where the panel of the page shows Python the file
_NOT_YET = (
    "the model is not here yet: on the book's page, fetch it with the panel at the head of the "
    "page and run this cell again; JupyterLite cannot, but a notebook on Colab, on Binder or on "
    "your own machine can"
)


def published_path() -> Path:
    """Where the model's file is; on a machine it is fetched first, once (98 MB).

    Raises:
        RuntimeError: in a page, before the panel *Talk to it* has fetched the file.
        DownloadError: the file cannot be fetched; see `tinytorch.models.llama.published_file`.

    Example:
        >>> published_path().suffix  # doctest: +SKIP
        '.gguf'
    """
    if not _in_page():
        return published_file()
    if not (files := sorted(SHOWN.glob("*.gguf"))):
        raise RuntimeError(_NOT_YET)
    return files[0]


@cache
def load_published_model() -> tuple[GPT, BPETokenizer]:
    """SmolLM2-135M-Instruct (Allal et al., 2025) and its tokenizer; the same two at every call.

    On a machine its weights become float32. In a page they stay as the file stores them.

    Raises:
        RuntimeError: as `published_path`, as is the next.
        DownloadError: the file cannot be fetched.

    Example:
        >>> model, tokenizer = load_published_model()  # doctest: +SKIP
        >>> model.num_parameters()["total"]  # doctest: +SKIP
        134515008
    """
    return load_llama(published_path(), dtype="stored" if _in_page() else "float32")


def same_weights(model: GPT) -> GPT:
    """A copy whose parts can be exchanged; its weights are those of the model, not copies.

    Example:
        >>> model = GPT(65, 8, 1, 2, rng=0)
        >>> other = same_weights(model)
        >>> other.blocks[0].attention.rotate = lambda x: -x
        >>> model.blocks[0].attention.rotate is None
        True
        >>> other.token_embedding.weight is model.token_embedding.weight
        True
    """
    return copy.deepcopy(model, {id(weight): weight for weight in model.parameters()})


def _in_page() -> bool:
    return sys.platform == "emscripten"
