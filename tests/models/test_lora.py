"""LoRA: the formula, gradients, what is frozen, the exact merge, and the file of the difference."""

import numpy as np
import pytest
from tiny_models import message, stirred, tiny_gpt

from tinytorch import Embedding, Linear, Module, Sequential, Tensor, check_gradients, functional
from tinytorch.core.quantization import quantize
from tinytorch.models.lora import (
    ATTENTION,
    EVERY_LINEAR,
    LoRALinear,
    add_lora,
    load_lora_state_dict,
    lora_state_dict,
    merge_lora,
)
from tinytorch.training.weight_files import load_safetensors, save_safetensors

IDS = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


def adapted(rank=2, **options):
    """A small GPT in float64 with LoRA in which no matrix is zero."""
    return stirred(add_lora(tiny_gpt(), rank, **{"targets": EVERY_LINEAR, "rng": 0, **options}))


def lora_layers(model):
    return [part for _, part in model.named_modules() if isinstance(part, LoRALinear)]


# What it computes --------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_computes_the_formula(bias):
    layer = stirred(LoRALinear(Linear(5, 4, bias=bias, rng=0), rank=3, alpha=6.0, rng=0))
    x = np.random.default_rng(1).normal(size=(2, 7, 5))
    W, b = layer.linear.weight.data, layer.linear.bias.data if bias else 0
    expected = x @ (W + 6.0 / 3 * layer.A.data @ layer.B.data) + b
    np.testing.assert_allclose(layer(Tensor(x, dtype=np.float64)).data, expected, atol=1e-12)


def test_nothing_changes_before_the_first_step():
    model = tiny_gpt()
    before = model(IDS).data.copy()
    assert np.array_equal(add_lora(model, rank=4, targets=EVERY_LINEAR)(IDS).data, before)


def test_gradients_agree_with_finite_differences():
    layer = stirred(LoRALinear(Linear(4, 3, rng=0), rank=2, alpha=5.0, rng=0))
    x = Tensor(np.random.default_rng(1).normal(size=(6, 4)), requires_grad=True, dtype=np.float64)

    def f(x, A, B):
        return (layer(x) * layer(x)).sum()

    assert check_gradients(f, x, layer.A, layer.B)


# What is trained ---------------------------------------------------------------------------------


def test_only_the_matrices_require_a_gradient_and_receive_one():
    model = adapted()
    functional.cross_entropy(model(IDS), IDS).backward()
    with_gradient = {name for name, p in model.named_parameters() if p.grad is not None}
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert with_gradient == trained
    assert {name.rpartition(".")[2] for name in trained} == {"A", "B"} and len(trained) == 24


def test_the_default_targets_are_queries_and_values():
    names = {n for n, p in add_lora(tiny_gpt(), rank=1).named_parameters() if p.requires_grad}
    assert {name.split(".")[-2] for name in names} == set(ATTENTION) == {"q_proj", "v_proj"}


# Merging -----------------------------------------------------------------------------------------


def test_a_layer_that_is_held_twice_is_adapted_once_and_merged_once():
    class Twice(Module):
        def __init__(self):
            self.left = self.right = Linear(3, 3, rng=0)

        def forward(self, x):
            return self.left(x) + self.right(x)

    model = stirred(add_lora(Twice(), rank=2, targets=["left", "right"]))
    assert model.left is model.right and len(model.trainable_parameters()) == 2
    before = model(np.ones((1, 3))).data.copy()
    np.testing.assert_allclose(merge_lora(model)(np.ones((1, 3))).data, before, atol=1e-12)
    assert model.left is model.right


@pytest.mark.parametrize("as_dict", [False, True])
def test_layers_in_lists_and_dictionaries_are_adapted_saved_and_merged(as_dict):
    first, second, x = Linear(3, 4, rng=0), Linear(4, 2, rng=1), np.ones((1, 3))
    model = Sequential(first, functional.gelu, second)
    model.more = {"own": [Linear(2, 2)]} if as_dict else [[Linear(2, 2)]]
    stirred(add_lora(model, rank=1, targets=["layers", "more"]))
    assert len(lora_layers(model)) == 3 and "layers.2.B" in lora_state_dict(model)
    before = model(x).data.copy()
    np.testing.assert_allclose(merge_lora(model)(x).data, before, atol=1e-12)
    assert model.layers[::2] == [first, second] and not lora_layers(model)


def test_what_was_frozen_before_stays_frozen_after_a_merge():
    model = tiny_gpt()
    model.token_embedding.weight.requires_grad = False
    frozen = [
        n for n, p in merge_lora(add_lora(model, 2)).named_parameters() if not p.requires_grad
    ]
    assert frozen == ["token_embedding.weight"]


@pytest.mark.parametrize("merged", ["the part", "the whole"])
def test_a_part_that_was_adapted_is_merged_without_touching_the_rest(merged):
    model = tiny_gpt()
    for name in ("token_embedding.weight", "blocks.1.ln1.gamma"):
        dict(model.named_parameters())[name].requires_grad = False
    add_lora(model.blocks[1], 2)
    merge_lora(model if merged == "the whole" else model.blocks[1])
    found = [n for n, p in model.named_parameters() if not p.requires_grad]
    assert found == ["token_embedding.weight", "blocks.1.ln1.gamma"]


def test_a_part_of_an_adapted_model_is_not_merged_alone():
    model = add_lora(tiny_gpt(), 2)
    with pytest.raises(ValueError, match="part of the model that add_lora was given; merge that"):
        merge_lora(model.blocks[0])
    assert len(lora_layers(model)) == len(lora_layers(add_lora(tiny_gpt(), 2)))


def test_a_model_that_was_trained_whole_is_trained_whole_after_a_merge():
    assert all(p.requires_grad for p in merge_lora(adapted()).parameters())


# Only the difference -----------------------------------------------------------------------------


def test_the_difference_can_be_saved_and_loaded_alone(tmp_path):
    model = adapted()
    save_safetensors(tmp_path / "adapted", lora_state_dict(model))
    other = stirred(add_lora(tiny_gpt(), rank=2, targets=EVERY_LINEAR, rng=5))
    for (name, own), (_, theirs) in zip(
        other.named_parameters(), model.named_parameters(), strict=True
    ):
        if not name.endswith((".A", ".B")):
            own.data = theirs.data.copy()
    state, _ = load_safetensors(tmp_path / "adapted")
    assert sum(array.size for array in state.values()) == sum(
        p.size for p in model.trainable_parameters()
    ) + len(lora_layers(model))  # an alpha for each
    load_lora_state_dict(other, state)
    assert np.array_equal(other(IDS).data, model(IDS).data)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"rank": 3}, r"saved with rank 3, this model has rank 2; use add_lora\(..., rank=3\)"),
        (
            {"alpha": 8.0},
            r"saved with alpha 8, this model has alpha 16; use add_lora\(..., alpha=8\)",
        ),
        ({"targets": ["q_proj"]}, r"missing: blocks.0.attention.k_proj.A \(8, 2\)"),
        ({"model": tiny_gpt(embed_dim=16)}, r"q_proj.A: expected \(8, 2\), got \(16, 2\)"),
        ({"model": tiny_gpt(num_layers=3)}, r"unexpected: blocks.2.attention.q_proj.A \(8, 2\)"),
    ],
    ids=["rank", "alpha", "targets", "width", "layers"],
)
def test_a_mismatched_difference_is_refused_and_nothing_changes(options, told):
    options = {"model": tiny_gpt(), "rank": 2, "targets": EVERY_LINEAR, **options}
    state = lora_state_dict(add_lora(**options))
    model = adapted()
    before = model.state_dict()
    with pytest.raises(ValueError, match=told):
        load_lora_state_dict(model, state)
    assert all(np.array_equal(before[n], array) for n, array in model.state_dict().items())


def test_a_quantized_model_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match="quantized; add LoRA to the model that quantize"):
        add_lora(quantize(tiny_gpt()), rank=2)


# What is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "rank", "options", "told"),
    [
        (
            ValueError,
            2,
            {"targets": ["q_proj", "query"]},
            "add_lora: no Linear of GPT is called 'query'; its Linears are called k_proj, linear1, "
            "linear2, out_proj, q_proj, v_proj",
        ),
        (ValueError, 2, {"targets": []}, "add_lora: no targets"),
        (TypeError, 2, {"targets": "q_proj"}, "write ['q_proj']"),
        (
            ValueError,
            9,
            {},
            "rank 9 is too large for blocks.0.attention.q_proj, whose weight is (8,",
        ),
        (ValueError, 0, {}, "rank must be at least 1, got 0"),
        (TypeError, 2.0, {}, "rank must be an integer, got 2.0"),
        *((ValueError, 2, {"alpha": x}, "alpha must be a") for x in (0, -1, np.inf, np.nan)),
    ],
)
def test_what_cannot_be_added_is_refused_and_changes_nothing(error, rank, options, told):
    model = tiny_gpt()
    assert told in message(error, lambda: add_lora(model, rank, **options))
    assert not lora_layers(model) and all(p.requires_grad for p in model.parameters())


def test_only_linear_layers_can_be_wrapped():
    with pytest.raises(TypeError, match="wraps a Linear, got Embedding"):
        LoRALinear(Embedding(5, 3), rank=1)


def test_a_numpy_number_as_alpha_widens_no_weight():
    model = merge_lora(add_lora(tiny_gpt(), 2, alpha=np.float64(16)))
    assert {p.dtype for p in model.parameters()} == {np.dtype("float32")}
