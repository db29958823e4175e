"""Byte-pair encoding: training and encoding, beside tiktoken."""

from __future__ import annotations

import tiktoken
from tiktoken._educational import bpe_train
from tiktoken_ext.openai_public import r50k_pat_str

from tinytorch import BPETokenizer
from tinytorch.text.corpus import book_prose

VOCAB = 2000


def text() -> str:
    """The prose of the book, as much of it as the measurements can bear."""
    return book_prose()[:120_000]


def training_programs():
    """Training on the book's prose; tiktoken's educational trainer is the only one it has."""
    data, few = text()[:20_000], 300  # what the educational trainer can bear

    def there():
        bpe_train(data, few, r50k_pat_str, visualise=None)

    return lambda: BPETokenizer.train(data, few), there


def encoding_programs():
    """Encoding the same text with the same vocabulary; tiktoken's is written in Rust."""
    data = text()
    ours = BPETokenizer.train(data, VOCAB)
    theirs = tiktoken.Encoding(
        "bench", pat_str=r50k_pat_str, mergeable_ranks=ours.ranks, special_tokens={}
    )
    if ours.encode(data) != theirs.encode(data):
        raise AssertionError("the two tokenizers differ")
    return lambda: ours.encode(data), lambda: theirs.encode(data), len(data.encode())
