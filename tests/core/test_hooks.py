"""Hooks see and replace what goes through a part, and leave the model as it was."""

import numpy as np
import pytest
from exact_numbers import message

from tinytorch import GPT, Linear, Sequential, Tensor, causal_mask
from tinytorch.core.hooks import hooks, opened


@pytest.fixture
def model():
    return GPT(7, 8, 2, 2, max_seq_len=16, init_std=0.5, rng=0)


IDS = [[1, 2, 3, 4]]


def test_hook_sees_the_output_and_changes_nothing(model):
    plain, seen = model(IDS).data, []
    with hooks(model, after={"blocks.0.mlp": seen.append}):
        looked_at = model(IDS).data
    block = model.blocks[0]
    x = model.position_embedding(model.token_embedding(IDS))
    x = x + block.attention(block.ln1(x), mask=causal_mask(4))
    np.testing.assert_allclose(seen[0].data, block.mlp(block.ln2(x)).data, atol=1e-6)
    np.testing.assert_array_equal(looked_at, plain)


def test_input_hook_sees_the_first_argument(model):
    outputs, inputs = [], []
    with hooks(model, after={"blocks.0": outputs.append}, before={"blocks.1": inputs.append}):
        model(IDS)
    assert outputs[0] is inputs[0]


def test_return_value_of_a_hook_replaces_the_output():
    model = Sequential(Linear(2, 2, rng=0), Linear(2, 2, rng=1))
    first, second = model.layers
    with hooks(model, before={"layers.1": lambda x: np.ones((1, 2))}):
        replaced = model(Tensor([[5.0, 6.0]])).data
    np.testing.assert_array_equal(replaced, second(Tensor([[1.0, 1.0]])).data)
    with hooks(model, after={"": lambda y: y * 2}):
        doubled = model(Tensor([[5.0, 6.0]])).data
    np.testing.assert_allclose(doubled, 2 * second(first(Tensor([[5.0, 6.0]]))).data)


@pytest.mark.parametrize("kind", [np.array, lambda x: Tensor(x, dtype=np.float64)])
def test_replacement_must_keep_shape_and_dtype(model, kind):
    with hooks(model, after={"blocks.0": lambda x: kind(x.data.astype(np.float64))}):
        assert model(IDS).dtype == np.float32
    for shape in ((8,), (1, 1, 8), (2, 4, 8), ()):  # each would broadcast
        with hooks(model, after={"blocks.0": lambda x, shape=shape: kind(np.zeros(shape))}):
            assert message(ValueError, lambda: model(IDS)) == (
                f"hooks: a replacement must keep the shape (1, 4, 8), got {shape}"
            )
    swapped = {"token_embedding": lambda ids: [[4, 3, 2, 1]]}
    with hooks(model, before=swapped):
        np.testing.assert_array_equal(model(IDS).data, model([[4, 3, 2, 1]]).data)
    with hooks(model, before={"token_embedding": lambda ids: kind(np.ones((1, 4)))}):
        assert message(TypeError, lambda: model(IDS)) == (
            "hooks: a replacement must keep the dtype int64, got float64"
        )


def test_gradients_flow_through_a_replacement(model):
    inner, loss = model.blocks[0].mlp.linear1.weight, lambda: (model(IDS) ** 2).sum()
    with hooks(model, after={"blocks.0": lambda x: x * 1.0}):
        loss().backward()
    through = inner.grad.copy()
    model.zero_grad()
    loss().backward()
    np.testing.assert_allclose(through, inner.grad, rtol=1e-5)
    model.zero_grad()
    with hooks(model, after={"blocks.0": lambda x: x.data}):  # an array has no history
        loss().backward()
    assert inner.grad is None and model.blocks[1].mlp.linear1.weight.grad.any()


def test_hooks_end_with_their_block_even_after_an_error(model):
    plain = model(IDS).data
    with pytest.raises(RuntimeError, match="stop"):
        with hooks(
            model, after={"blocks.0": lambda x: (_ for _ in ()).throw(RuntimeError("stop"))}
        ):
            model(IDS)
    assert not opened()
    np.testing.assert_array_equal(model(IDS).data, plain)


def test_inner_hooks_see_the_replacement_of_outer_hooks():
    model, seen = Sequential(Linear(2, 2, rng=0)), []
    ones, twos = (lambda x, n=n: np.full((1, 2), n) for n in (1, 2))
    with (
        hooks(model, before={"layers.0": ones}, after={"layers.0": twos}),
        hooks(model, before={"layers.0": seen.append}, after={"layers.0": seen.append}),
    ):
        model(Tensor([[5.0, 6.0]]))
    assert [value.data.tolist() for value in seen] == [[[1, 1]], [[2, 2]]]


def test_hooks_apply_to_the_given_model_only(model):
    other, seen = GPT(7, 8, 2, 2, max_seq_len=16), []
    with hooks(model, after={"blocks.0": seen.append}):
        other(IDS)
    assert not seen


def test_unknown_parts_and_uncallable_hooks_are_refused(model):
    with pytest.raises(
        ValueError, match=r"the model has no part 'blocks\.2'; its parts are .*blocks\.1"
    ):
        with hooks(model, after={"blocks.2": print}):
            pass
    with pytest.raises(TypeError, match=r"the hook of 'blocks\.0' must be a function, got 3"):
        with hooks(model, before={"blocks.0": 3}):
            pass
