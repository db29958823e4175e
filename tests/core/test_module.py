"""What a module holds is found or refused; evaluation is a mode of the thread that asks for it."""

import collections
import copy
import pickle
import threading

import numpy as np
import pytest

from tinytorch import (
    Dropout,
    Linear,
    Module,
    MultiHeadAttention,
    Parameter,
    Sequential,
    Tensor,
)
from tinytorch.core.module import evaluation_mode


class Holder(Module):
    def __init__(self, held):
        self.held = held


@pytest.mark.parametrize("value", [np.zeros((2, 2)), Tensor(np.zeros((2, 2))), 3.0, [1.0]])
def test_parameter_cannot_be_replaced_by_another_value(value):
    layer = Linear(2, 2)
    before = layer.weight
    with pytest.raises(TypeError) as caught:
        layer.weight = value
    assert str(caught.value) == (
        "Linear.weight is a Parameter and would be lost to parameters(), replaced by "
        f"{type(value).__name__}; write Linear.weight.data[...] = values to change its numbers, "
        "or wrap them: Parameter(values)"
    )
    assert layer.weight is before


def test_parameter_cannot_be_replaced_by_a_computed_tensor():
    layer = Linear(2, 2)
    with pytest.raises(TypeError, match="would be lost to parameters"):
        layer.weight -= 0.1


def test_parameter_may_be_replaced_by_a_parameter_or_none():
    layer, other = Linear(2, 2), Parameter(np.ones((2, 2)))
    layer.weight, layer.bias = other, None
    (only,) = layer.parameters()
    assert only is other


def in_an_array(parts):
    array = np.empty(2, dtype=object)
    array[0] = parts[0]
    return array


@pytest.mark.parametrize(
    "container",
    [
        set,
        frozenset,
        collections.deque,
        lambda parts: dict.fromkeys(map(str, range(2)), *parts).values(),
        in_an_array,
        lambda parts: [{1}, set(parts)],
    ],
)
@pytest.mark.parametrize("part", [lambda: Linear(2, 2), lambda: Parameter([1.0])])
def test_parameters_in_unsupported_containers_are_refused(container, part):
    model = Holder(container([part()]))
    for use in (model.parameters, model.named_modules, model.state_dict, model.train):
        with pytest.raises(TypeError, match=r"Holder.held.* with modules or parameters in it"):
            use()


def test_module_that_holds_its_parent_is_visited_once():
    parent = Sequential(Linear(2, 2), Linear(2, 2))
    parent.layers[0].parent = parent
    assert [name for name, _ in parent.named_parameters()] == [
        "layers.0.weight",
        "layers.0.bias",
        "layers.1.weight",
        "layers.1.bias",
    ]
    assert [name for name, _ in parent.named_modules()] == ["", "layers.0", "layers.1"]
    assert not parent.eval().layers[1].training
    assert "parent: ..." in repr(parent)
    assert len(copy.deepcopy(parent).parameters()) == 4


def test_evaluation_mode_holds_for_its_thread_only():
    layer, inside, done, seen = Dropout(0.5), threading.Event(), threading.Event(), []

    def evaluate():
        with evaluation_mode():
            inside.set()
            seen.append(layer.training)
            done.wait()

    thread = threading.Thread(target=evaluate)
    thread.start()
    inside.wait()
    seen.append(layer.training)
    done.set()
    thread.join()
    assert seen == [False, True]


def test_mode_set_during_evaluation_applies_afterwards():
    layer = Dropout(0.5)
    with evaluation_mode():
        layer.eval()
        layer.train()
        assert not layer.training
        layer.eval()
    assert not layer.training


def test_evaluation_inside_evaluation_ends_with_the_outer_one():
    layer = Dropout(0.5)
    with evaluation_mode():
        with evaluation_mode():
            pass
        assert not layer.training
    assert layer.training


def test_mode_survives_pickle_and_copy():
    for twin in (pickle.loads(pickle.dumps(Dropout(0.5).eval())), copy.copy(Dropout(0.5).eval())):
        assert not twin.training


def test_rotate_must_be_a_function():
    with pytest.raises(TypeError, match="rotate must be a function, got 'rotary'"):
        MultiHeadAttention(8, 2, rotate="rotary")


def test_trainable_parameters_are_those_that_are_not_frozen():
    layer = Linear(3, 2, rng=0)
    layer.weight.requires_grad = False
    assert layer.trainable_parameters() == [layer.bias]
    assert len(layer.parameters()) == 2 and set(layer.state_dict()) == {"weight", "bias"}
