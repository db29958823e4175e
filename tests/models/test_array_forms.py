"""What is read on arrays is what `forward` computes."""

import sys

import numpy as np
import pytest

from tinytorch import GPT, MLP, LayerNorm, RMSNorm, SwiGLU, Tensor, no_grad
from tinytorch.core import array_forms, tracing
from tinytorch.core.array_forms import maker, reader
from tinytorch.core.layers import Linear
from tinytorch.core.module import Module
from tinytorch.models import lora  # noqa: F401 (its layer has a second form, too)
from tinytorch.models.generation import logits_of, stream


def model(**options):
    found = GPT(11, 8, 2, 2, max_seq_len=16, rng=0, **options)
    rng = np.random.default_rng(1)
    for parameter in found.parameters():
        parameter.data[...] = rng.normal(0, 0.5, parameter.shape)
    return found


def written_by_forward(gpt, ids, n, change=lambda i: None):
    """Greedy text, one call of the model with a cache for each token."""
    cache, unread, text = gpt.new_cache(), np.asarray(ids), []
    for i in range(n):
        with no_grad():
            unread = gpt.eval()(unread, cache=cache).data[:, -1:].argmax(-1)
        text.append(unread[:, 0].tolist())
        change(i)
    return text


@pytest.mark.parametrize(
    "part",
    [
        Linear(4, 3, rng=0),
        Linear(4, 3, bias=False, rng=0),
        LayerNorm(4),
        MLP(4, rng=0).eval(),
        RMSNorm(4),
        SwiGLU(4, rng=0),
    ],
    ids=["linear", "linear without bias", "norm", "mlp", "rms norm", "swiglu"],
)
def test_array_form_of_a_part_matches_its_forward(part):
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    assert maker(part) is not None
    np.testing.assert_allclose(reader(part)(x), part(Tensor(x)).data, atol=1e-6)


def test_a_custom_forward_is_called_itself():
    class Twice(LayerNorm):
        def forward(self, x):
            return super().forward(x) * 2

    x = np.array([[1.0, 3.0]], dtype=np.float32)
    assert maker(Twice(2)) is None
    assert reader(Twice(2))(x).round(3).tolist() == [[-2.0, 2.0]]


def test_an_inherited_forward_uses_the_array_form():
    class Named(LayerNorm):
        name = "own"

    assert maker(Named(2)) is maker(LayerNorm(2)) is not None


def test_a_custom_dropout_of_the_embeddings_is_applied():
    class Negated(Module):
        def forward(self, x):
            return x * -1

    own = model()
    own.dropout = Negated()
    found = [new.tolist() for new in stream(own, [[1, 2]], 6, temperature=0)]
    assert found == written_by_forward(own, [[1, 2]], 6)


@pytest.mark.parametrize("assign", [False, True], ids=["in place", "assigned"])
def test_changed_weights_apply_from_the_next_token(assign):
    def change(gpt, i):
        if i == 2:
            for p in gpt.parameters():
                if assign:
                    p.data = p.data[::-1].copy()
                else:
                    p.data[...] = p.data[::-1].copy()

    ours, theirs, found = model(), model(), []
    for i, new in enumerate(stream(ours, [[1, 2]], 8, temperature=0)):
        found.append(new.tolist())
        change(ours, i)
    assert found == written_by_forward(theirs, [[1, 2]], 8, lambda i: change(theirs, i))
    assert found[3:] != [new.tolist() for new in stream(model(), [[1, 2]], 8, temperature=0)][3:]


def test_reading_a_token_creates_no_tensor(monkeypatch):
    gpt = model()
    read = logits_of(gpt, gpt.new_cache())
    read(np.array([[1, 2, 3]]))
    made = []
    monkeypatch.setattr(tracing, "_new", lambda kind: made.append(kind) or object.__new__(kind))
    read(np.array([[4]]))
    assert not made
    gpt([[1]])
    assert made


def test_every_array_form_is_compared_with_its_forward():
    compared = {
        "Linear", "LayerNorm", "Dropout", "MultiHeadAttention", "Embedding", "PositionalEncoding",
        "MLP", "TransformerBlock", "PostNormBlock", "GPT", "RMSNorm", "SwiGLU", "LoRALinear",
    }  # fmt: skip
    ours = [f for f in array_forms._makers if f.__module__.startswith("tinytorch.")]
    names = {forward.__qualname__.split(".")[0]: forward.__module__ for forward in ours}
    # what an example of a docstring has registered is not in its module
    assert {n for n, module in names.items() if hasattr(sys.modules[module], n)} == compared
