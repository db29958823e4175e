"""What a stream of tokens reads, on arrays and from a cache, against the plain `forward`."""

import numpy as np

from tinytorch import no_grad
from tinytorch.models.generation import logits_of, read_next
from tinytorch.models.kv_cache import SlidingWindow

__all__ = ["IDS", "assert_both_forms_agree"]

IDS = np.random.default_rng(0).integers(0, 11, size=(3, 13))  # longer than a window of 9
# the length of the prompt, and of the pieces in which it is read
READ = {"one piece": (7, 256), "token by token": (1, 1), "chunks": (8, 3)}


def assert_both_forms_agree(model, rows=(1, 3), ways=READ):
    """At every position the logits and their dtype are those of `forward` on the whole window."""
    with no_grad():
        model.eval()
        small = {p.dtype.itemsize for p in model.parameters()} - {8}
        close = {"rtol": 2e-4, "atol": 2e-4} if small else {"rtol": 1e-11, "atol": 1e-11}
        for batch in rows:
            for way in ways:
                for found, expected, where in _read_twice(model, IDS[:batch], *READ[way]):
                    told = f"{batch} rows in {way}, token {where}"
                    np.testing.assert_allclose(found, expected, err_msg=told, **close)
                    assert found.dtype == expected.dtype, told


def _read_twice(model, ids, prompt, chunk):
    """The logits `(batch, vocab)` of the stream and of `forward`, after each token."""
    window = SlidingWindow(ids[:, :prompt], model.max_seq_len, model.new_cache())
    read = logits_of(model, window.cache)
    for position, new in enumerate([None, *ids.T[prompt:]], prompt):
        if new is not None:
            window.append(new)
        yield read_next(read, window, chunk), model(window.ids).data[:, -1], position
