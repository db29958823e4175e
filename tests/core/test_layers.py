"""Modules and the layers built on them."""

import copy

import numpy as np
import pytest
from exact_numbers import message

from tinytorch import (
    Dropout,
    LayerNorm,
    Linear,
    Module,
    Parameter,
    ReLU,
    Sequential,
    Tensor,
)
from tinytorch.core.arguments import check_sizes


def names(module):
    return [name for name, _ in module.named_parameters()]


class Nested(Module):
    """One of everything a module may hold."""

    def __init__(self):
        self.first = Parameter([1.0])
        self.blocks = [Linear(2, 2, rng=1), LayerNorm(2)]
        self.drop = Dropout(0.5)
        self.pair = (Parameter([2.0]), Parameter([3.0]))
        self.constant = Tensor([4.0], requires_grad=True)
        self.width = 2
        self.by_name = {"first": Parameter([1.0]), "rest": [Parameter([2.0]), [Linear(1, 1)]]}
        self.again = self.first
        self.last = Sequential(Dropout(0.1), Linear(2, 1, bias=False, rng=2))


# Module ------------------------------------------------------------------------------------------


def test_parameters_come_in_definition_order_from_all_containers_and_each_once():
    assert names(Nested()) == [
        "first",
        "blocks.0.weight",
        "blocks.0.bias",
        "blocks.1.gamma",
        "blocks.1.beta",
        "pair.0",
        "pair.1",
        "by_name.first",
        "by_name.rest.0",
        "by_name.rest.1.0.weight",
        "by_name.rest.1.0.bias",
        "last.layers.1.weight",
    ]


def test_train_and_eval_reach_every_module_and_return_the_module():
    module = Nested()
    assert module.eval() is module
    assert [module.training, module.drop.training, module.last.layers[0].training] == [False] * 3
    assert module.train() is module
    assert [module.training, module.drop.training, module.last.layers[0].training] == [True] * 3


def test_modules_are_listed_with_their_paths_root_first():
    module = Nested()
    parts = dict(module.named_modules())
    assert [*parts] == [
        "",
        "blocks.0",
        "blocks.1",
        "drop",
        "by_name.rest.1.0",
        "last",
        "last.layers.0",
        "last.layers.1",
    ]
    assert parts[""] is module and parts["last.layers.0"] is module.last.layers[0]


def test_loading_keeps_the_arrays_and_their_dtype():
    layer = Linear(1, 1)
    array = layer.weight.data
    layer.load_state_dict({"weight": np.array([[0.5]]), "bias": np.array([1.0])})
    assert layer.weight.data is array and array.dtype == np.float32 and array[0, 0] == 0.5


def test_loading_a_mismatched_state_names_every_problem_and_changes_nothing():
    model = Sequential(Linear(2, 3, rng=0), LayerNorm(3))
    before = copy.deepcopy(model.state_dict())
    state = model.state_dict()
    del state["layers.0.bias"], state["layers.1.beta"]
    state["layers.1.gamma"] = np.ones(4)
    state["layers.0.weight"] = np.zeros((2, 3))
    state["head"] = np.ones((3, 5))
    assert message(ValueError, lambda: model.load_state_dict(state)) == (
        "load_state_dict: Sequential does not match:\n"
        "  missing: layers.0.bias (3,)\n"
        "  missing: layers.1.beta (3,)\n"
        "  unexpected: head (3, 5)\n"
        "  shape of layers.1.gamma: expected (3,), got (4,)"
    )
    for name, array in model.state_dict().items():
        np.testing.assert_array_equal(array, before[name])


def test_repr_is_the_tree():
    assert repr(Sequential(Linear(2, 3), ReLU())) == (
        "Sequential(\n"
        "  layers.0: Linear(\n"
        "    weight: (2, 3)\n"
        "    bias: (3,)\n"
        "  )\n"
        "  layers.1: ReLU()\n"
        ")"
    )


# Linear ------------------------------------------------------------------------------------------


def test_linear_is_x_times_weight_plus_bias():
    layer = Linear(2, 3)
    layer.load_state_dict({"weight": [[1, 2, 3], [4, 5, 6]], "bias": [0.5, 0, -0.5]})
    assert layer(Tensor([[1.0, 10.0]])).data.tolist() == [[41.5, 52.0, 62.5]]


def test_linear_is_initialised_xavier_uniform_with_zero_bias():
    layer = Linear(100, 50, rng=0)
    limit = np.sqrt(6 / 150)
    assert 0.98 * limit < np.abs(layer.weight.data).max() <= limit
    assert layer.weight.data.std() == pytest.approx(limit / np.sqrt(3), rel=0.02)
    assert (layer.bias.data == 0).all()


def test_linear_without_a_bias_has_one_parameter():
    assert names(Linear(2, 3, bias=False)) == ["weight"]
    assert Linear(2, 3, False)(np.zeros((1, 2))).data.tolist() == [[0.0, 0.0, 0.0]]


# LayerNorm ---------------------------------------------------------------------------------------


def test_layer_norm_scales_by_gamma_and_shifts_by_beta():
    layer = LayerNorm(2, eps=0.0)
    layer.load_state_dict({"gamma": [10.0, 100.0], "beta": [1.0, 2.0]})
    assert layer(Tensor([3.0, 5.0])).data.tolist() == [-9.0, 102.0]


@pytest.mark.parametrize("shape", [4, (4,), [4], np.int64(4)])
def test_layer_norm_accepts_the_length_as_integer_or_tuple(shape):
    assert LayerNorm(shape).gamma.data.tolist() == [1.0] * 4


# Dropout -----------------------------------------------------------------------------------------


def test_dropout_is_active_only_in_training():
    layer, x = Dropout(0.5, rng=0), Tensor(np.ones(1000))
    kept = layer(x).data
    assert set(np.unique(kept)) == {0.0, 2.0} and 450 < (kept == 0).sum() < 550
    assert layer.eval()(x).data.tolist() == x.data.tolist()


# Sequential --------------------------------------------------------------------------------------


def test_sequential_applies_its_layers_in_turn():
    first, second = Linear(2, 2, rng=0), Linear(2, 1, rng=1)
    x = np.ones((1, 2))
    layers = [first, ReLU(), second]
    for model in (Sequential(*layers), Sequential(layers), Sequential(tuple(layers))):
        assert model(x).item() == second(ReLU()(first(x))).item()


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "fails", "said"),
    [
        (NotImplementedError, lambda: type("Idle", (Module,), {})()(1), "Idle does not define for"),
        (TypeError, lambda: LayerNorm((3, 4)), "normalized_shape must be an integer, got (3, 4)"),
        (ValueError, lambda: Dropout(1.0), "Dropout: p must be in 0 <= p < 1, got 1.0"),
        (ValueError, lambda: Dropout(-0.1), "Dropout: p must be in 0 <= p < 1, got -0.1"),
        (ValueError, lambda: Linear(0, 2), "in_features must be at least 1, got 0"),
        (TypeError, lambda: check_sizes(embed_dim=2.0), "embed_dim must be an integer, got 2.0"),
        (TypeError, lambda: check_sizes(embed_dim=True), "embed_dim must be an integer, got True"),
        (TypeError, lambda: Sequential(ReLU), "ReLU'>; write ReLU(...)"),
        (TypeError, lambda: Sequential([ReLU(), Linear]), "Sequential: item 1 must be a layer,"),
        (TypeError, lambda: Sequential(ReLU(), [ReLU()]), "item 1 must be a layer, got [ReLU()]"),
        (TypeError, lambda: Sequential("relu", None), "item 0 must be a layer, got 'relu'"),
        (ValueError, lambda: Linear(3, 2)(np.ones((5, 4))), "(5, 4) does not fit weight (3, 2); t"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_reason(error, fails, said):
    assert said in message(error, fails)
