"""Probabilities of 0 and 1, infinite and huge numbers, constants, nothing at all; and every dtype.

A result is exact there, by hand or by NumPy in float64, or the input is refused.
"""

import math
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest

from tinytorch import SGD, Adam, AdamW, LayerNorm, Parameter, RMSNorm, Tensor, clip_grad_norm
from tinytorch.core import functional
from tinytorch.core.array_forms import reader
from tinytorch.text.tokenization import BPETokenizer
from tinytorch.training.comparison import Estimate
from tinytorch.training.distillation import distillation_loss as kl
from tinytorch.training.distillation import soft_cross_entropy as soft
from tinytorch.training.distillation import total_variation_loss as tv
from tinytorch.training.preferences import dpo_loss, policy_gradient_loss, reward_model_loss

INF, NAN, LOG2 = np.inf, np.nan, math.log(2)
HALF, ZERO, ODD, ONE, FIRST = [0.5, 0.5], [0.0, 0.0], [NAN, NAN], [1, 0], [True, False]
LOW = BPETokenizer.train("low lower lowest", 258)  # the last tokens are lo and low


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def fixed(logits):
    return lambda ids: Tensor(logits, dtype=float)


# what each function is given and, last, what it returns, or a part of its refusal
# fmt: off
ENDS = {
    "training.preferences.optimal_policy": [
        ([.5, .5, 0], [1, 0, 1e6], 1, [sigmoid(1), sigmoid(-1), 0]),
        (HALF, [1e6, -1e6], 1e-305, ONE), (HALF, [-1e6, -INF], 1, ONE), ([1, 1e-300], [0, 691], 1,
            [sigmoid(300 * math.log(10) - 691), sigmoid(691 - 300 * math.log(10))]),
        (HALF, ONE, 0, "beta must be above 0, got 0"), (ZERO, [1, 1], 1, "not all 0"),
        ([NAN, 1], ONE, 1, "probabilities must be"), (HALF, [INF, 0], 1, "finite, got inf"),
        (HALF, [-INF, -INF], 1, "finite, got -inf"), ([], [], 1, "one number for each text"),
        (HALF, [NAN, 0], 1, "nan for a text"), (HALF, [1], 1, "one number for each text")],
    "training.preferences.kl_divergence": [
        (ONE, HALF, LOG2), (ONE, ONE, 0), (HALF, ONE, INF), (HALF, [1, -1], "reference must"),
        ([NAN, 1], HALF, "probabilities must"), ([2, 3], HALF, "probabilities in 0..1"),
        ([.501, .5], HALF, "policy must sum to 1, got a sum of 1.001"),
        ([.49999, .49999], HALF, 0),
        (HALF, [.501, .5], "reference must sum to 1")],
    "training.preferences.frontier": [
        ([.5, .5, 0], [0, 1, NAN], [1e-9, INF], [[LOG2, 1], [0, .5]]),
        (HALF, ONE, [], np.zeros((0, 2)))],
    "training.preferences.best_of_n_policy": [
        ([.5, .5, 0], [0, 1, NAN], 2, [.25, .75, 0]), ([1e-20, 1], ONE, 2, [2e-20, 1]),
        (HALF, [INF, -INF], 10**6, ONE), (ZERO, ONE, 2, "not all 0")],
    "training.preferences.group_advantages": [
        ([[.1] * 3, [.3] * 3], [[0] * 3] * 2), ([1e6, -1e6], [2e6, -2e6]),
        (np.zeros((0, 3)), np.zeros((0, 3))), (1., "at least 2"), ([INF, 0], "infinite")],
    "training.preferences.policy_gradient_loss": [
        ([0, -1e5], [1e6, 1], 5e4), ([-INF], [0], "can the policy have"), ([], [], "one number")],
    "training.preferences.reward_model_loss": [
        ([INF], [0], 0), ([0], [INF], INF), ([0], [1e5], 1e5), ([INF], [INF], "pair is nan"),
        (np.float32([17]), np.float32([0]), math.log1p(math.exp(-17))),
        ([2**24 + 1], [2**24], math.log1p(math.exp(-1))), ([0, 1], [0], "one number")],
    "training.preferences.dpo_loss": [
        ([-1], [-INF], [-1], [-2], 1, 0), ([-INF], [-1], [-1], [-2], 1, INF),
        ([-1e5], [-1e5 - 340], [0], [0], .05, math.log1p(math.exp(-17))),
        ([-INF], [-INF], [0], [0], 1, "of a pair is nan"), ([0], [0], [0], [0], 0, "above 0 and")],
    "training.preferences.sequence_log_probs": [
        (fixed([[ZERO, ODD]]), None, [[1, -1]], [-LOG2]), (fixed([[[0, -INF]]]), 0, [[1]], [-INF])],
    "training.distillation.soft_cross_entropy": [
        ([[1e5, 0]], [[0, 1]], 1e5), ([[0, -INF]], [ONE], 0), ([[0, -INF]], [[0, 1]], INF),
        ([ZERO, ODD], [HALF, ODD], FIRST, LOG2), ([ZERO, [-INF] * 2], [HALF] * 2, FIRST, LOG2),
        ([ZERO] * 3, [ONE, ONE, ODD], [True, True, False], LOG2), ([ZERO], [ODD], "probabilities"),
        ([ZERO], [[.5, .5, 0]], "do student and teacher have the same vocabulary"),
        ([ZERO], [ONE], [1], r"mask must be Boolean \(1,\), got int64 \(1,\)"),
        ([ZERO], [ONE], [False], "leave no position"), ([ZERO], [[1, 1]], "soft labels must sum")],
    "training.distillation.distillation_loss": [
        ([[1e5, 0]], [[0, 1e5]], 1e5), ([[5, 5]], [[5, 5]], 0), ([ONE], [[0, 1]], 1e6, .5),
        ([ZERO, ODD], [ZERO, ODD], 1, FIRST, 0), ([ONE], [ONE], 1e7, "must be in 1e-6 .. 1e6"),
        ([ZERO], [[0, -INF]], LOG2), ([ONE], [ONE], 0, "must be in 1e-6 .. 1e6, got 0")],
    "training.distillation.total_variation_loss": [
        ([[1e5, 0]], [[0, 1]], 1), ([[0, -INF]], [ONE], 0), ([ZERO, ODD], [ONE, ODD], FIRST, .5),
        ([ZERO], [[1, 1]], "soft labels must sum to 1, got a sum of 2; pass scores"),
        ([ZERO], [[.504, .504]], "a sum of 1.008")],
    "training.comparison.estimate": [
        ([1, 2, 3], [.1 + .2, .3, .3], (2, 3**-.5)), ([.1] * 3, (.1, 0)),
        ([2, 4, 8], [1e-170, 2e-170, 4e-170], 3e-170, (6, 0)), ([1, INF], "of text 1 is inf"),
        ([], "one number a text, for at least 2 texts; got"), ([1], "2 texts"), (3, "2 texts"),
        ([[1, 2]], "2 texts; got shape"), ([1, 2], [1, 2], "at least 3 texts"),
        ([1, 2, 3], [1, 2, 3, 4], "one known value for each text: got 4 for 3 texts")],
    "training.comparison.texts_needed": [
        (1, 1, 1e-20, 104), (1, 1, .1, .01, 0), (NAN, 1, "not be 0"), (1, INF, "must be finite"),
        (0, 1, "not be 0"), (1, -1, "nor the deviation negative"), (1, NAN, "nor the deviation")],
    "training.abstention.threshold": [
        (0, 0), (3, .75), (INF, "penalty must be finite"), (-1, "penalty must"), (NAN, "penalty")],
    "training.abstention.best_score": [
        ([ONE, ZERO], 1e6, ONE), ([NAN, 1], 1, "probabilities"), ([], 1, "got shape"),
        (HALF, -1, "penalty must be"), (HALF, NAN, "penalty must be")],
    "training.abstention.answer_probs": [([[[0, -INF]], [ODD]], [[1], [-1]], -1, [0, 1])],
    "training.evaluation.surprise": [
        (fixed([[[-INF, 0]] * 2]), [[0, 0]], [[1, 0]], [[0, INF]]),
        (fixed([[ZERO] * 2]), [[0, 1]], [[1, 2]], r"target 2 at \(0, 1\) is outside 0..1; was"),
        (fixed([[ZERO] * 2]), [[0, 1]], [[1, -100]], r"target -100 at \(0, 1\)"),
        (fixed([[ZERO] * 2]), [[0, 1]], [[1., 0.]], "targets must be integers, got float64"),
        (None, [[1, 2]], [[1]], r"both be \(n, seq\), not empty; got shapes \(1, 2\) and \(1, 1\)"),
        (None, ONE, ONE, r"shapes \(2,\)"), (None, np.ones((0, 4)), np.ones((0, 4)), "shapes")],
    "training.evaluation.character_surprise": [
        (fixed([[[0] * 256 + [-INF] * 2]]), LOW, "low", [math.log(256), INF, 0])],
    "models.speculative.acceptance_rate": [
        ([1 + 1e-15, -1e-17], ONE, 1), (ZERO, ONE, "must sum to 1, got a sum of 0"),
        ([], [], "must sum to 1"), ([1, 0, 0], HALF, r"\(3,\) and draft \(2,\) must have the same"),
        ([3, -2], ONE, "acceptance_rate: target must be .* got 3.0; pass scores through"),
        (ONE, [-.5, 1], "acceptance_rate: draft must be .* got -0.5")],
    "models.draft_quality.expected_readings": [
        ([.5, 2], 2, r"kept must be probabilities in 0\.\.1, got 2.0; take minimum"),
        ([-1], 2, "got -1.0"), ([NAN], 2, "got nan"), (.5, 2, r"must be \(n,\), .* got shape \(\)"),
        ([HALF], 2, "expected_readings: .* call it for each text")],
    "models.draft_quality.best_draft": [
        ([ONE, [0, 1]], [0, 1], [0, 1]), ([ZERO], "must sum to 1"),
        (HALF, r"best_draft: targets must be \(n, vocab\), .* for a single context"),
        (np.ones((0, 2)), r"got shape \(0, 2\)"), ([HALF, [-1, 2]], "targets must be .* got -1.0"),
        ([HALF] * 2, [1, 2, 3], r"weights must be \(2,\), one for each target, got shape \(3,\)"),
        ([HALF] * 2, 2, r"got shape \(\)"), ([HALF] * 2, ZERO, "not all 0, got 0.0 to 0.0"),
        ([HALF] * 2, [2, -1], "best_draft: weights .* got -1.0 to 2.0; count how often"),
        ([HALF] * 2, [1, NAN], "not all 0, got nan")],
    "models.speculative.accept_or_resample": [
        (1, ONE, [0, 1], 0, (False, 0)), (0, ZERO, ONE, 0, "target must sum to 1"),
        (-1, HALF, HALF, 0, "token id -1 is outside 0..1; draw it from"),
        (5, HALF, HALF, 0, "token id 5"), (0., HALF, HALF, 0, "ids must be integers, got float64"),
        (0, [HALF], HALF, 0, r"\(1, 2\) and draft \(2,\) must be \(vocab,\)"),
        (0, [1.5, -.5], HALF, 0, "target must be .* got 1.5"), (0, HALF, ODD, 0, "draft must be"),
        (1, HALF, ONE, 0, "the draft gives token 1 no probability; draw it from")],
    "models.sampling.next_token_probs": [
        ([1e308, -1e308], 1e-300, ONE), (np.float32([3e38, -3e38]), 1e-320, ONE),
        (np.float32([3e38, -3e38, -INF]), 1e300, [.5, .5, 0]), (ONE, Fraction(1, 1000), ONE),
        (ZERO, 10**400, "temperature must be finite")],
    "core.losses.cross_entropy": [
        ([[1e5, 0]], [1], 1e5), ([[0, -INF]], [1], INF), ([[INF, 0]], [0], "a score is \\+inf")],
    "core.softmax.softmax": [([INF, 0], "a score is \\+inf")],
    "core.sparse.RowSparse": [
        ([-1, 4], [[1], [1]], (5, 1), "row -1 at"), ([5], [[1]], (5, 1), "row 5 at"),
        ([0, 1], [HALF], (5, 2), r"rows \(2,\) and values \(1, 2\) do not describe a matrix")],
    "core.schedules.CosineSchedule": [(INF, 0, 8, "lr must be finite, got inf")],
}
# fmt: on


@pytest.mark.parametrize(("name", "row"), [(n, i) for n in ENDS for i in range(len(ENDS[n]))])
def test_the_end_of_a_range_is_exact_or_refused(name, row):
    module, function = name.rsplit(".", 1)
    f, (*given, expected) = getattr(import_module(f"tinytorch.{module}"), function), ENDS[name][row]
    if isinstance(expected, str):
        with pytest.raises((ValueError, IndexError, TypeError), match=expected):
            f(*given)
        return
    found = f(*given)
    numbers, rtol = (found.data, 1e-6) if isinstance(found, Tensor) else (found, 1e-12)
    np.testing.assert_allclose(numbers, expected, rtol, atol=1e-12 * isinstance(found, Estimate))
    assert np.shape(numbers) == np.shape(expected)


SLOPES = [  # a loss of its first operand, the operand, and the gradient
    *((lambda x: reward_model_loss(x, [0]), [m], [-sigmoid(-m)]) for m in (17, 40, 88, -17)),
    (lambda x: reward_model_loss(x, [0, 0]), [INF, -1e5], [0, -0.5]),
    (lambda x: dpo_loss([-1], x, [-1], [-2], 0.5), [-INF], [0]),
    (lambda x: dpo_loss(x, [-1], [-1], [-2], 0.5), [-INF], [-0.5]),
    (lambda x: policy_gradient_loss(x, [1e6, 0]), [-1e5, 0], [-5e5, 0]),
    (lambda x: functional.cross_entropy(x, [1, -1], ignore_index=-1), [ZERO, ODD], 0.5),
    (lambda x: soft(x, [[0, 1], ODD], FIRST), [ZERO, ODD], 0.5),
    (lambda x: kl(x, [[-INF, 1e5], ODD], 1, FIRST), [ZERO, ODD], 0.5),
    (lambda x: tv(x, [[0, 1], ODD], FIRST), [ZERO, ODD], 0.25),
]


@pytest.mark.parametrize(("loss", "at", "expected"), SLOPES)
def test_gradients_at_the_end_of_a_range_are_exact(loss, at, expected):
    x = Tensor(at, requires_grad=True, dtype=np.float32)
    loss(x).backward()
    expected = [[expected, -expected], ZERO] if isinstance(expected, float) else expected
    np.testing.assert_allclose(x.grad, expected, rtol=1e-6)


A, B, C, D, PROBS = *np.random.default_rng(0).normal(size=(4, 3)), np.array([0.5, 0.3, 0.2])


def logs(x):
    return x - np.log(np.exp(x).sum())


# fmt: off
LOSSES = [  # by the library, and by NumPy
    (reward_model_loss, (A, B), lambda a, b: np.logaddexp(0, b - a).mean()),
    (lambda *x: dpo_loss(*x, 0.5), (A, B, C, D),
     lambda a, b, c, d: np.logaddexp(0, ((b - d) - (a - c)) / 2).mean()),
    (policy_gradient_loss, (A, B), lambda a, b: -(a * b).mean()),
    (soft, (A, PROBS), lambda a, p: -(p * logs(a)).sum()),
    (kl, (A, B), lambda a, b: (np.exp(logs(b)) * (logs(b) - logs(a))).sum()),
    (tv, (A, PROBS), lambda a, p: np.maximum(p - np.exp(logs(a)), 0).sum()),
    (functional.mse, (A, B), lambda a, b: ((a - b) ** 2).mean()),
]
# fmt: on


@pytest.mark.parametrize(  # dtypes of the first operand, of the others and of the result
    ("first", "others", "dtype"),
    [
        (None, None, "f4"),
        ("f2", "f2", "f4"),
        ("f4", None, "f4"),
        ("f4", "f8", "f8"),
        ("f8", None, "f8"),
    ],
)
@pytest.mark.parametrize(("loss", "operands", "exact"), LOSSES)
def test_losses_lose_no_digits_and_keep_the_widest_dtype(
    loss, operands, exact, first, others, dtype
):
    kinds = [first, *[others] * (len(operands) - 1)]
    given = [Tensor(x, True, k) if k else x for x, k in zip(operands, kinds, strict=True)]
    found = loss(*given)
    numbers = [np.asarray(x.data if isinstance(x, Tensor) else x, float) for x in given]
    assert found.dtype == dtype
    assert found.item() == pytest.approx(exact(*numbers), rel=1e-12 if dtype == "f8" else 2e-6)
    if first:
        found.backward()
        assert given[0].grad.dtype == first and np.abs(given[0].grad).max() > 0.01


@pytest.mark.parametrize("make", [SGD, Adam, AdamW])
def test_optimisers_refuse_what_would_end_in_nan(make):
    with pytest.raises(TypeError, match="an optimiser loses small steps in float16; train in"):
        make([Parameter([1.0], dtype=np.float16)], lr=0.1)
    with pytest.raises(ValueError, match="lr must be finite, got inf"):
        make([Parameter([1.0])], lr=INF)
    for eps in (0, 1e-50) if make is not SGD else ():  # 1e-50 is 0 in float32
        with pytest.raises(ValueError, match=f"eps must stay above 0, got {eps}"):
            make([Parameter([1.0])], lr=0.1, eps=eps)


@pytest.mark.parametrize(
    ("size", "dtype"),
    [(1, "f2"), (300, "f2"), (3e30, "f4"), (1e-30, "f4"), (1e300, "f8"), (0, "f4")],
)
def test_norm_of_gradients_of_any_size(size, dtype):
    w = Parameter(np.zeros(2046), dtype=dtype)  # half precision cannot hold the sum 25,575
    w.grad = np.array([3 * size, 4 * size] * 1023, dtype)
    norm = clip_grad_norm([w], 0.5 * 1023**0.5 * size or 1)
    np.testing.assert_allclose(norm, 5 * 1023**0.5 * size, rtol=1e-6)
    np.testing.assert_allclose(w.grad[:2], [0.3 * size, 0.4 * size], rtol=1e-3)


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
@pytest.mark.parametrize("eps", [0, 1e-50, 1e-5])
def test_constant_row_is_zero_in_both_forms_with_any_eps(norm, eps):
    layer, rows = norm(3, eps=eps), np.float32([[0.1 if norm is LayerNorm else 0] * 3, A])
    x = Tensor(rows, requires_grad=True)
    found = layer(x)
    found.sum().backward()
    assert (found.data[0] == 0).all() and np.isfinite(x.grad).all()
    for each in (reader(layer)(rows), [reader(layer)(row) for row in rows]):
        np.testing.assert_allclose(each, found.data, atol=1e-5)
