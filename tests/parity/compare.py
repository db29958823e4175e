"""Run the same function here and in PyTorch, and compare its value and all of its gradients."""

import numpy as np
import torch

from tinytorch import RowSparse, Tensor, no_grad

__all__ = ["DTYPES", "TOLERANCE", "agree", "array", "assert_close", "assert_same_text", "load"]

DTYPES = [np.float32, np.float64]

# float64 leaves nothing but the order of additions; float32 has 24 bits, of which sums of up to a
# few hundred terms and an exponential may cost four or five.
TOLERANCE = {
    np.dtype(np.float32): {"rtol": 1e-5, "atol": 2e-6},
    np.dtype(np.float64): {"rtol": 1e-11, "atol": 1e-12},
}


def array(*shape, seed=0, low=None):
    """Normal numbers, or with `low` uniform ones in `low..low + 2`."""
    rng = np.random.default_rng((seed, *shape))
    return rng.normal(size=shape) if low is None else rng.uniform(low, low + 2, size=shape)


def assert_close(ours, theirs, what, tolerance=None):
    ours = ours.to_dense() if isinstance(ours, RowSparse) else np.asarray(ours)
    theirs = theirs.to_dense() if theirs.is_sparse else theirs
    theirs = theirs.detach().numpy()
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, what
    np.testing.assert_allclose(ours, theirs, err_msg=what, **(tolerance or TOLERANCE[ours.dtype]))


def agree(f, reference, arrays, dtype):
    """Require equal values and gradients of `f` on Tensors and `reference` on torch tensors."""
    ours = [Tensor(a, a.dtype.kind == "f", dtype if a.dtype.kind == "f" else None) for a in arrays]
    theirs = [torch.tensor(t.data, requires_grad=t.requires_grad) for t in ours]
    result, expected = f(*ours), reference(*theirs)
    assert_close(result.data, expected, "value")
    upstream = array(*result.shape, seed=1).astype(dtype)
    result.backward(upstream)
    expected.backward(torch.tensor(upstream))
    for i, (own, other) in enumerate(zip(ours, theirs, strict=True)):
        if own.requires_grad:
            assert_close(own.grad, other.grad, f"gradient of operand {i}")


def load(layer, reference, names):
    """Copy the parameters of `layer` into `reference`: `names` maps ours to theirs.

    PyTorch keeps the weight of a linear layer transposed, `(out, in)`.
    """
    state = dict(layer.named_parameters())
    with torch.no_grad():
        for own, other in names.items():
            values = state[own].data
            target = dict(reference.named_parameters())[other]
            is_linear = isinstance(reference, torch.nn.Linear) and other == "weight"
            target.copy_(torch.tensor(values.T if is_linear else values))


def assert_same_text(model, reference, prompts, length, least, **options):
    """Require that a model and that of transformers greedily write the same text, of this length.

    It has tokens enough for a mistake to be seen, and nowhere are the two likeliest ones as close
    as `least`, so that rounding decides nothing.
    """
    new, prompt = length - prompts.shape[1], torch.tensor(prompts)
    greedy = {"max_new_tokens": new, "do_sample": False, "pad_token_id": 0}
    expected = reference.generate(prompt, attention_mask=torch.ones_like(prompt), **greedy)
    text = model.generate(prompts, new, temperature=0, **options).data
    np.testing.assert_array_equal(text, expected.numpy())
    assert len(np.unique(text[:, -new:])) > 4
    with no_grad():
        top = np.sort(model(text[:, :-1]).data, axis=-1)[..., -2:]
    assert (top[..., 1] - top[..., 0]).min() > least
