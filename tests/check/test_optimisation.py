"""The checks of "Optimisation": right answers pass, empty and wrong ones do not."""

import numpy as np
import pytest

from tinytorch import AdamW, Tensor, clip_grad_norm
from tinytorch.check import optimisation as check


def nothing(*_):
    return None


def adamw(w, g, m, v, t, lr, decay):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    step = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return w - lr * (step + decay * w), m, v


def adamw_with_l2(w, g, m, v, t, lr, decay):
    return adamw(w, g + decay * w, m, v, t, lr, 0.0)


def adamw_uncorrected(w, g, m, v, t, lr, decay):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return w - lr * (m / (np.sqrt(v) + 1e-8) + decay * w), m, v


def adamw_counting_from_0(w, g, m, v, t, lr, decay):
    _, m, v = adamw(w, g, m, v, t, lr, decay)
    step = (m / (1 - 0.9 ** (t + 1))) / (np.sqrt(v / (1 - 0.999 ** (t + 1))) + 1e-8)
    return w - lr * (step + decay * w), m, v


def adamw_that_returns_corrected_means(w, g, m, v, t, lr, decay):
    right, m, v = adamw(w, g, m, v, t, lr, decay)
    return right, m / (1 - 0.9**t), v / (1 - 0.999**t)


def adamw_uphill(w, g, m, v, t, lr, decay):
    _, m, v = adamw(w, g, m, v, t, lr, decay)
    step = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return w + lr * step - lr * decay * w, m, v


def adamw_without_root(w, g, m, v, t, lr, decay):
    _, m, v = adamw(w, g, m, v, t, lr, decay)
    return w - lr * ((m / (1 - 0.9**t)) / (v / (1 - 0.999**t) + 1e-8) + decay * w), m, v


def adamw_decay_without_lr(w, g, m, v, t, lr, decay):
    new, m, v = adamw(w, g, m, v, t, lr, 0.0)
    return new - decay * w, m, v


def adamw_for_the_first_step(w, g, m, v, t, lr, decay):
    _, m, v = adamw(w, g, m, v, t, lr, decay)
    return w - lr * (np.sign(g) + decay * w), m, v


def adamw_with_epsilon_under_the_root(w, g, m, v, t, lr, decay):
    _, m, v = adamw(w, g, m, v, t, lr, decay)
    step = (m / (1 - 0.9**t)) / np.sqrt(v / (1 - 0.999**t) + 1e-8)
    return w - lr * (step + decay * w), m, v


def adamw_without_epsilon(w, g, m, v, t, lr, decay):
    _, m, v = adamw(w, g, m, v, t, lr, decay)
    with np.errstate(invalid="ignore"):
        step = (m / (1 - 0.9**t)) / np.sqrt(v / (1 - 0.999**t))
    return w - lr * (step + decay * w), m, v


def adamw_that_swaps_the_means(w, g, m, v, t, lr, decay):
    new, m, v = adamw(w, g, m, v, t, lr, decay)
    return new, v, m


def adamw_that_grows(w, g, m, v, t, lr, decay):
    new, m, v = adamw(w, g, m, v, t, lr, decay)
    return new + 2 * lr * decay * w, m, v


def rate(step, lr, warmup, total, cooldown):
    return lr * min(1, (step + 1) / warmup, (total - step) / cooldown)


def rate_from_zero(step, lr, warmup, total, cooldown):
    return lr * min(1, step / warmup, (total - step) / cooldown)


def rate_zero_too_early(step, lr, warmup, total, cooldown):
    return lr * min(1, (step + 1) / warmup, (total - 1 - step) / cooldown)


def rate_without_warmup(step, lr, warmup, total, cooldown):
    return lr * min(1, (total - step) / cooldown)


def rate_without_lr(step, lr, warmup, total, cooldown):
    return rate(step, 1.0, warmup, total, cooldown)


def rate_without_cooldown(step, lr, warmup, total, cooldown):
    return lr * min(1, (step + 1) / warmup)


def norm_of(gradients):
    return np.sqrt(sum(np.sum(g * g) for g in gradients))


def clip(gradients, max_norm):
    return [g * min(1, max_norm / norm_of(gradients)) for g in gradients]


def clip_alone(gradients, max_norm):
    return [g * min(1, max_norm / np.linalg.norm(g)) for g in gradients]


def clip_each_number(gradients, max_norm):
    return [np.clip(g, -max_norm, max_norm) for g in gradients]


def clip_always(gradients, max_norm):
    return [g * max_norm / norm_of(gradients) for g in gradients]


def clip_with_added_norms(gradients, max_norm):
    norm = sum(np.linalg.norm(g) for g in gradients)
    return [g * min(1, max_norm / norm) for g in gradients]


def clip_by_square(gradients, max_norm):
    return [g * min(1, max_norm / norm_of(gradients) ** 2) for g in gradients]


def clip_in_place(gradients, max_norm):
    factor = min(1, max_norm / norm_of(gradients))
    for g in gradients:
        g *= factor
    return gradients


def size(num_parameters, name):
    return num_parameters * {"sgd": 8, "momentum": 12, "adamw": 16}[name]


RIGHT = {
    check.optim_adamw: adamw,
    check.optim_schedule: rate,
    check.optim_clip: clip,
    check.optim_bytes: size,
}


@pytest.mark.parametrize("checked", RIGHT, ids=lambda c: c.__name__)
def test_the_right_answer_is_solved_and_an_empty_one_is_not(checked):
    assert checked(RIGHT[checked])
    assert not checked(nothing)
    assert not checked(...)


FIRST = "the first step moves every weight by lr"
DECAYS = "decay pulls the weight, not the means"
TINY = "gradients of 0 and 1e-8, where epsilon counts"


@pytest.mark.parametrize(
    ("checked", "wrong", "claim", "hint"),
    [
        (check.optim_adamw, adamw_uncorrected, FIRST, "begin at zero"),
        (check.optim_adamw, adamw_counting_from_0, FIRST, "counts from 1"),
        (check.optim_adamw, adamw_that_returns_corrected_means, FIRST, "as they are"),
        (check.optim_adamw, adamw_uphill, FIRST, "against the gradient"),
        (check.optim_adamw, adamw_without_root, FIRST, "square root"),
        (check.optim_adamw, lambda *a: adamw(*a)[0], FIRST, "three things"),
        (check.optim_adamw, adamw_with_l2, DECAYS, "L2"),
        (check.optim_adamw, lambda *a: adamw(*a[:6], 0.0), DECAYS, "missing"),
        (check.optim_adamw, adamw_decay_without_lr, DECAYS, "multiplied by lr"),
        (check.optim_adamw, adamw_that_swaps_the_means, FIRST, "First m, then v"),
        (check.optim_adamw, adamw_that_grows, DECAYS, "towards zero"),
        (check.optim_adamw, adamw_with_epsilon_under_the_root, TINY, "not under it"),
        (check.optim_adamw, adamw_without_epsilon, TINY, "0 is divided by 0"),
        (check.optim_adamw, adamw_for_the_first_step, "a later step", "Means first"),
        (check.optim_schedule, rate_from_zero, "the first step", "wastes"),
        (check.optim_schedule, rate_without_lr, "the first step", "Multiply by lr"),
        (check.optim_schedule, rate_without_warmup, "the first step", "warm-up"),
        (check.optim_schedule, rate_zero_too_early, "the cool-down begins", "would be 0"),
        (check.optim_schedule, rate_without_cooldown, "in the cool-down", "total - cooldown"),
        (check.optim_clip, clip_always, "below the limit", "at most 1"),
        (check.optim_clip, clip_alone, "keeps the direction", "ratio of the two norms"),
        (check.optim_clip, clip_each_number, "keeps the direction", "Each number"),
        (check.optim_clip, lambda gradients, limit: gradients, "keeps the direction", "is 10"),
        (check.optim_clip, clip_with_added_norms, "keeps the direction", "do not add"),
        (check.optim_clip, clip_by_square, "keeps the direction", "root"),
        (check.optim_bytes, lambda n, name: 16 * n, "sgd, 10 parameters", "nothing of its own"),
        (check.optim_bytes, lambda n, name: 2 * n, "sgd, 10 parameters", "takes 4"),
        (check.optim_bytes, lambda n, name: size(n, name) - 4 * n, "sgd, 10 parameters", "forget"),
        (check.optim_bytes, lambda n, name: 12 * n if name == "adamw" else size(n, name),
            "adamw, 10 parameters", "forget"),
    ],
)  # fmt: skip
def test_a_plausible_wrong_answer_fails_where_it_is_wrong_with_a_hint(checked, wrong, claim, hint):
    report = checked(wrong)
    assert not report
    assert report.cases[-1].claim == claim
    assert hint in report.cases[-1].hint


def test_clipping_the_arrays_that_were_given_is_not_the_right_answer():
    report = check.optim_clip(clip_in_place)
    assert not report
    assert "no longer what it was" in report.cases[-1].came


def test_memory_that_is_to_be_predicted_is_not_told():
    assert check.optim_bytes(lambda n, name: 0).cases[-1].expected == ""


def test_what_is_expected_is_what_the_package_computes():
    w = Tensor([1.0, -2.0], requires_grad=True, dtype=np.float64)
    optimizer = AdamW([w], lr=0.1, betas=(0.9, 0.999), weight_decay=0.5)
    expected = w.data.copy(), np.zeros(2), np.zeros(2)
    for t, gradient in enumerate(np.array([[3.0, 0.5], [-1.0, 2.0]]), start=1):
        w.grad = gradient
        optimizer.step()
        expected = adamw(expected[0], gradient, *expected[1:], t, 0.1, 0.5)
        assert np.allclose(w.data, expected[0])

    a, b = (Tensor(np.zeros(2), requires_grad=True) for _ in range(2))
    a.grad, b.grad = np.array([6.0, 0.0]), np.array([0.0, 8.0])
    clipped = clip([a.grad, b.grad], 5.0)
    clip_grad_norm([a, b], 5.0)
    assert np.allclose([a.grad, b.grad], clipped)
