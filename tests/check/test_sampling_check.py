"""The checks of "Sampling": right answers pass, empty and wrong ones do not."""

import numpy as np
import pytest

from tinytorch import functional
from tinytorch.check import sampling as check

KEPT = {
    "top_k = 2": 2,
    "temperature = 0, top_p = 0.75": 1,
    "top_p = 0.75": 3,
    "temperature = 0.5, top_p = 0.75": 1,
    "top_k = 3, top_p = 0.8": 2,
}


def nothing(*_, **__):
    return None


def draw(probs, u, scaled=True, strict=False):
    edges = probs.cumsum(axis=1)
    u = u * edges[:, -1] if scaled else u
    below = edges < u[:, None] if strict else edges <= u[:, None]
    return below.sum(axis=1)


def last_token_at_most(probs, u):
    return np.minimum(draw(probs, u, scaled=False), probs.shape[1] - 1)


def last_sum_made_1(probs, u):
    edges = probs.cumsum(axis=1)
    edges[:, -1] = 1
    return (edges <= u[:, None]).sum(axis=1)


def tempered(logits, temperature):
    if temperature == 0:
        return np.eye(logits.shape[-1])[logits.argmax(axis=-1)]
    return functional.softmax(logits / temperature).numpy()


def top_p(probs, p, reaches=True, stops_at_p=True, normalise=True, sort_back=True):
    order = np.argsort(-probs, axis=1)
    falling = np.take_along_axis(probs, order, axis=1)
    total = falling.cumsum(axis=1)
    before = total - falling
    wanted = before < p if stops_at_p else before <= p
    kept = np.where(wanted if reaches else total <= p, falling, 0)
    if sort_back:
        kept = np.take_along_axis(kept, np.argsort(order, axis=1), axis=1)
    return kept / kept.sum(axis=1, keepdims=True) if normalise else kept


def write(next_probs, prompt, max_new, stop, u, *, keeps_stop=True, looks_at_prompt=False):
    ids = list(prompt)
    for number in u[:max_new]:
        if looks_at_prompt and ids[-1] == stop:
            break
        new = int((np.cumsum(next_probs(ids)) <= number).sum())
        if new == stop and not keeps_stop:
            break
        ids.append(new)
        if new == stop:
            break
    return ids


RIGHT = {
    check.sampling_kept: KEPT,
    check.sampling_draw: draw,
    check.sampling_temperature: tempered,
    check.sampling_top_p: top_p,
    check.sampling_write: write,
}


@pytest.mark.parametrize("checked", RIGHT, ids=lambda c: c.__name__)
def test_the_right_answer_is_solved_and_an_empty_one_is_not(checked):
    assert checked(RIGHT[checked])
    assert not checked(nothing)
    assert not checked(...)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("top_p = 0.75", 2), ("temperature = 0.5, top_p = 0.75", 3), ("top_k = 3, top_p = 0.8", 3)],
)
def test_a_wrong_number_of_tokens_fails_without_telling_the_right_one(name, wrong):
    report = check.sampling_kept({**KEPT, name: wrong})
    assert report.cases[-1].claim == name
    assert not report.cases[-1].expected


@pytest.mark.parametrize(
    ("wrong", "claim"),
    [
        (lambda probs, u: probs.argmax(axis=1), "three rows, each with its number"),
        (lambda probs, u: draw(probs, u, strict=True), "never a token of probability 0"),
        (lambda probs, u: (probs.cumsum(axis=1) > u[:, None]).argmax(axis=1),
            "u = 1 - 2**-53, the largest number below 1"),
        (lambda probs, u: draw(probs, u, scaled=False),
            "u = 1 - 2**-53, the largest number below 1"),
        (last_token_at_most, "the same, before a token of probability 0"),
        (last_sum_made_1, "the same, before a token of probability 0"),
        (lambda probs, u: np.array([1, 0, 2]), "never a token of probability 0"),
        (lambda probs, u: draw(probs, np.full_like(u, u[0])), "three rows, each with its number"),
    ],
)  # fmt: skip
def test_a_careless_draw_fails_where_it_is_careless(wrong, claim):
    assert check.sampling_draw(wrong).cases[-1].claim == claim


def scaled_probabilities(logits, temperature):
    probs = functional.softmax(logits).numpy() / temperature
    return probs / probs.sum(axis=-1, keepdims=True)


def unshifted(logits, temperature):
    if temperature == 0:
        return tempered(logits, 0)
    with np.errstate(all="ignore"):
        e = np.exp(logits / temperature)
        return e / e.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("wrong", "claim", "hint"),
    [
        (scaled_probabilities, "temperature 2", "same for all"),
        (lambda logits, t: tempered(logits, 1 / t), "temperature 2", "not multiplied"),
        (lambda logits, t: functional.softmax(logits / max(t, 0.1)).numpy(), "temperature 0", ""),
        (lambda logits, t: tempered(logits, t) if t else
            (logits == logits.max(axis=-1, keepdims=True)) * 1.0, "temperature 0, a tie", "first"),
        (unshifted, "a small temperature", "subtracts"),
    ],
)  # fmt: skip
def test_a_wrong_temperature_fails_where_it_is_wrong(wrong, claim, hint):
    last = check.sampling_temperature(wrong).cases[-1]
    assert last.claim == claim
    assert hint in last.hint


@pytest.mark.parametrize(
    ("switches", "claim", "hint"),
    [
        ({"reaches": False}, "0.9 of 0.5, 0.3, 0.15, 0.05", "reaches p"),
        ({"normalise": False}, "0.9 of 0.5, 0.3, 0.15, 0.05", "sum to one"),
        ({"sort_back": False}, "the same, not in order", "own column"),
        ({"stops_at_p": False}, "exactly p", "enough"),
    ],
)
def test_a_wrong_nucleus_fails_where_it_is_wrong(switches, claim, hint):
    last = check.sampling_top_p(lambda probs, p: top_p(probs, p, **switches)).cases[-1]
    assert last.claim == claim
    assert hint in last.hint


def test_a_nucleus_that_may_be_empty_fails():
    def cautious(probs, p):
        kept = top_p(probs, p, reaches=True, normalise=False)
        kept = np.where(probs > p, 0, kept)
        return kept / np.maximum(kept.sum(axis=1, keepdims=True), 1e-9)

    assert check.sampling_top_p(cautious).cases[-1].claim == "never empty"


def test_one_order_for_all_rows_fails():
    def first_row_decides(probs, p):
        kept = np.where(top_p(probs[:1], p) > 0, probs, 0)
        return kept / kept.sum(axis=1, keepdims=True)

    assert check.sampling_top_p(first_row_decides).cases[-1].claim == "rows of a batch"


@pytest.mark.parametrize(
    ("wrong", "claim", "hint"),
    [
        (lambda *a: write(*a)[1:], "three tokens after one", "prompt as well"),
        (lambda f, ids, *a: write(lambda _: f(ids), ids, *a), "three tokens after one", "new"),
        (lambda *a: write(*a, keeps_stop=False), "stops at the stop token", "belongs"),
        (lambda f, ids, n, stop, u: write(f, ids, n, 99, u), "stops at the stop token", ""),
        (lambda *a: write(*a, looks_at_prompt=True), "not at one in the prompt", "drawn"),
        (lambda f, ids, n, stop, u: write(f, ids, n, stop, np.full(len(u), u[0])),
            "draws with the numbers in turn", "u[1]"),
        (lambda f, ids, n, stop, u: write(lambda all_: f(all_[-1:]), ids, n, stop, u),
            "reads everything so far", "all ids"),
    ],
)  # fmt: skip
def test_a_loop_that_is_wrong_fails_where_it_is_wrong(wrong, claim, hint):
    last = check.sampling_write(wrong).cases[-1]
    assert last.claim == claim
    assert hint in last.hint


def test_a_report_names_its_models_by_what_they_do():
    report = check.sampling_write(lambda *a: write(*a)[1:])
    assert report.cases[-1].given.startswith("sure_of_last_plus_1")


def test_a_loop_that_changes_its_prompt_fails():
    def appends(next_probs, prompt, max_new, stop, u):
        prompt[:] = write(next_probs, prompt, max_new, stop, u)
        return prompt

    assert "no longer what it was" in check.sampling_write(appends).cases[-1].came


def test_top_p_that_keeps_all_equals_fails():
    def threshold(probs, p):
        falling = -np.sort(-probs, axis=-1)
        number = (falling.cumsum(axis=-1) - falling < p - 1e-12).sum(axis=-1)
        least = np.take_along_axis(falling, number[:, None] - 1, axis=-1)
        kept = np.where(probs >= least, probs, 0.0)
        return kept / kept.sum(axis=-1, keepdims=True)

    last = check.sampling_top_p(threshold).cases[-1]
    assert last.claim == "one of three equals"
