"""The figures that move about training: what they show is what the package computes."""

import json
import math
from itertools import product

import numpy as np
import pytest
from drawings.embeddings import TRAINED
from moving import Moving, stands_still

from tinytorch import SGD, CosineSchedule, Tensor

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PAGES = {
    "autograd": "book/foundations/autograd",
    "word-vectors": "book/embeddings/token-embeddings",
    "bowl": "book/training/optimisation",
    "warm-up": "book/training/optimisation",
}


@pytest.fixture
def figure(visit):
    """A function that opens a figure's page, and looks for problems when the test is over."""
    yield lambda name: Moving(visit, PAGES[name], name)
    assert visit.problems == []


@pytest.mark.parametrize("name", PAGES)
def test_without_scripts_the_static_drawing_is_there(browser, site, name):
    assert stands_still(browser, site, PAGES[name], name)


# A gradient through a graph -------------------------------------------------------------------


LABELS = ("w, the weight", "x, the input", "y, the target")
INPUTS = [(2, 3, 5), (-3, -3, -3), (4, 4, 8), (1.5, -2.5, 0.5), (2, 0, 1), (2, 2, 4), (-3, 4, 8)]


def leaf(value):
    return Tensor(value, requires_grad=True, dtype=np.float64)


def graph(w, x, y):
    """Values and gradients of the graph; what lies inside it is made a leaf to be asked for."""
    inputs = {"w": leaf(w), "x": leaf(x), "y": leaf(y)}
    p = inputs["w"] * inputs["x"]
    e = p - inputs["y"]
    loss = e * e
    loss.backward()
    found = {name: tensor.grad.item() for name, tensor in inputs.items()}
    middle, error = leaf(p.item()), leaf(e.item())
    ((middle - y) ** 2).backward()
    (error * error).backward()
    found |= {"p": middle.grad.item(), "e": error.grad.item(), "loss": 1.0}
    values = {"w": w, "x": x, "y": y, "p": p.item(), "e": e.item(), "loss": loss.item()}
    return values, found


def test_the_graph_shows_the_values_and_gradients_of_autograd(figure):
    shown = figure("autograd")
    assert shown.faults() == []
    for inputs in INPUTS:
        for label, value in zip(LABELS, inputs, strict=True):
            shown.move(label, value)
        values, gradients = graph(*inputs)
        found = shown.numbers()
        assert found["values"] == pytest.approx(values, rel=1e-12)
        assert found["gradients"] == pytest.approx(gradients, rel=1e-12)
        assert shown.faults_on_a_phone() == []


def test_a_gradient_is_shown_only_when_it_has_been_reached(figure):
    shown = figure("autograd")
    _, all_gradients = graph(2, 3, 5)
    for back, reached in enumerate(["", "loss", "loss e", "loss e p y", "loss e p y w x"]):
        shown.move("Gradients", back)
        found = {name: g for name, g in shown.numbers()["gradients"].items() if g is not None}
        assert found == {name: all_gradients[name] for name in reached.split()}
        assert shown.figure.locator(".tt-moving text.d-gradient.d-mono").count() == len(found)
        assert shown.faults() == []


def test_the_words_under_the_graph_say_which_way_the_loss_falls(figure):
    shown = figure("autograd")
    assert "6 to w and 4 to x. With a little less of w, the loss falls." in shown.words()
    shown.move("w, the weight", 1)
    assert "With a little more of w, the loss falls." in shown.words()
    shown.move("y, the target", 3)
    assert "the loss is 0, and so is the gradient of every input." in shown.words()


# Words in training ----------------------------------------------------------------------------


def test_the_words_stand_where_training_put_them(figure):
    trained = json.loads(TRAINED.read_text(encoding="utf-8"))
    shown = figure("word-vectors")
    for at, step in enumerate(trained["steps"]):
        shown.move("Training", at)
        assert shown.numbers() == {
            "step": step,
            "points": trained["points"][at],
            "same": trained["same"][at],
            "of": trained["of"],
        }
        assert f"{trained['same'][at] or 'none'} of the 105 words" in shown.words()
        assert shown.faults() == []
    assert shown.faults_on_a_phone() == []


# The bowl -------------------------------------------------------------------------------------


def walked(lr, momentum):
    """Forty steps of SGD in the chapter's bowl."""
    w = leaf([-4.0, 1.0])
    optimizer, path = SGD([w], lr=lr, momentum=momentum), [w.data.copy()]
    for _ in range(40):
        optimizer.zero_grad()
        (w * w * [1.0, 40.0] / 2).sum().backward()
        optimizer.step()
        path.append(w.data.copy())
    return np.array(path)


WALKS = [
    (0.045, 0, "jumps from side to side across the valley, less and less far"),
    (0.01, 0, "slides down into the valley, and comes along it as far as x = −2.68"),
    (0.045, 0.8, "swings back and forth across the valley, and runs past the bottom"),
    (0.05, 0, "At the edge"),
    (0.051, 0, "Thrown out: with this momentum no rate above 0.05 keeps"),
    (0.001, 0, "The loss is 28 at the start"),
    (0.001, 0.95, "The loss is 28 at the start"),
    (0.1, 0, "more than a million after 40 steps"),
    (0.1, 0.95, "Thrown out: with this momentum no rate above 0.0975 keeps"),
]


def test_the_path_in_the_bowl_is_that_of_sgd(figure):
    shown = figure("bowl")
    assert shown.faults() == []
    for lr, momentum, said in WALKS:
        shown.move("Learning rate", lr)
        shown.move("Momentum", momentum)
        path, found = walked(lr, momentum), shown.numbers()
        assert np.allclose(found["path"], path, rtol=1e-9, atol=1e-12)
        assert math.isclose(found["loss"], path[-1] ** 2 @ [1, 40] / 2, rel_tol=1e-9)
        assert said in shown.words()
        assert shown.faults_on_a_phone() == []


# The warm-up ----------------------------------------------------------------------------------


def test_the_rates_are_those_of_the_schedule(figure):
    shown = figure("warm-up")
    assert shown.faults() == []
    for warmup, total in product((0, 5, 40, 100), (110, 120, 160)):
        shown.move("Warm-up", warmup)
        shown.move("All steps", total)
        schedule = CosineSchedule(0.02, warmup, total)
        rates = [schedule(step) for step in range(161)]
        assert np.allclose(shown.numbers()["rates"], rates, rtol=0, atol=1e-15)
        assert f"to 0 at step {total}" in shown.words()
        assert shown.faults_on_a_phone() == []


def test_what_the_schedule_refuses_has_no_curve(figure):
    shown = figure("warm-up")
    shown.move("All steps", 40)
    with pytest.raises(ValueError, match="must end before"):
        CosineSchedule(0.02, 40, 40)
    assert shown.numbers()["rates"] is None
    assert shown.figure.locator(".tt-moving .d-thick").count() == 0
    assert "there is no such schedule" in shown.words()
