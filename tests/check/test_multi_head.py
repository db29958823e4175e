"""The checks of "Multi-head attention": right answers pass, empty and wrong ones do not."""

import numpy as np
import pytest

from tinytorch import Linear, Module, MultiHeadAttention, functional, scaled_dot_product_attention
from tinytorch.check import multi_head as check


def nothing(*_):
    return None


class MyAttention(Module):
    """The solution, with switches for what one gets wrong."""

    permute_in = permute_out = use_mask = project = True
    heads = None

    def __init__(self, embed_dim, num_heads, dropout_prob=0.0):
        self.num_heads = self.heads or num_heads
        self.q_proj = Linear(embed_dim, embed_dim)
        self.k_proj = Linear(embed_dim, embed_dim)
        self.v_proj = Linear(embed_dim, embed_dim)
        self.out_proj = Linear(embed_dim, embed_dim)

    def split(self, y):
        B, T, _ = y.shape
        if not self.permute_in:
            return y.reshape(B, self.num_heads, T, -1)
        return y.reshape(B, T, self.num_heads, -1).permute(0, 2, 1, 3)

    def forward(self, x, mask=None):
        parts = [self.split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj)]
        mixed, _ = scaled_dot_product_attention(*parts, mask if self.use_mask else None)
        mixed = mixed.permute(0, 2, 1, 3) if self.permute_out else mixed
        merged = mixed.reshape(*x.shape)
        return self.out_proj(merged) if self.project else merged


class Empty(MyAttention):
    def forward(self, x, mask=None): ...


class OnlyReshaped(MyAttention):
    permute_in = permute_out = False


class NotMovedBack(MyAttention):
    permute_out = False


class Unmasked(MyAttention):
    use_mask = False


class Unprojected(MyAttention):
    project = False


class OneHead(MyAttention):
    heads = 1


class WithoutGradient(MyAttention):
    def forward(self, x, mask=None):
        return super().forward(x, mask).detach()


class NoDropoutArgument(MyAttention):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)


def side_by_side(q, k, v, num_heads, root=None):
    outputs = []
    for part in np.split(np.arange(q.shape[1]), num_heads):
        scores = q[:, part] @ k[:, part].T / np.sqrt(root or len(part))
        outputs.append(functional.softmax(scores).numpy() @ v[:, part])
    return np.concatenate(outputs, axis=1)


def output_without(merged, weight, bias, num_heads, head):
    size = merged.shape[1] // num_heads
    kept = merged.copy()
    kept[:, head * size : (head + 1) * size] = 0.0
    return kept @ weight + bias


def without_the_columns(merged, weight, bias, num_heads, head):
    size = len(weight) // num_heads
    kept = weight.copy()
    kept[:, head * size : (head + 1) * size] = 0.0
    return merged @ kept + bias


PREDICTIONS = {
    "queries, split": (2, 4, 10, 16),
    "values, split": (2, 4, 7, 16),
    "weights": (2, 4, 10, 7),
    "output": (2, 10, 64),
    "parameters": 16640,
    "parameters with 8 heads": 16640,
}

RIGHT = {
    check.heads_predict: PREDICTIONS,
    check.heads_side_by_side: side_by_side,
    check.heads_output_without: output_without,
    check.heads_attention: MyAttention,
}


@pytest.mark.parametrize("checked", RIGHT, ids=lambda c: c.__name__)
def test_the_right_answer_is_solved_and_an_empty_one_is_not(checked):
    assert checked(RIGHT[checked]), checked(RIGHT[checked])
    for empty in (nothing, ..., None):
        assert not checked(empty)


def test_the_stubs_of_the_page_are_not_solved():
    assert not check.heads_predict(dict.fromkeys(PREDICTIONS, ...))
    assert not check.heads_attention(Empty)
    assert "None" in check.heads_attention(Empty).cases[-1].came


def test_our_own_layer_passes():
    assert check.heads_attention(MultiHeadAttention)


@pytest.mark.parametrize(
    ("checked", "wrong", "claim", "hint"),
    [
        (check.heads_predict, {**PREDICTIONS, "queries, split": (2, 10, 4, 16)},
            "queries, split", "moves in front"),
        (check.heads_predict, {**PREDICTIONS, "weights": (2, 4, 7, 10)}, "weights", "Rows are"),
        (check.heads_predict, {**PREDICTIONS, "output": (2, 7, 64)}, "output", "Each query"),
        (check.heads_predict, {**PREDICTIONS, "parameters": 4 * 64 * 64}, "parameters", "bias"),
        (check.heads_predict, {**PREDICTIONS, "parameters with 8 heads": 33280},
            "parameters with 8 heads", "divide"),
        (check.heads_side_by_side, lambda q, k, v, h: side_by_side(q, k, v, h, root=q.shape[1]),
            "two heads of one number each", "terms in a head"),
        (check.heads_side_by_side, lambda q, k, v, h: side_by_side(q, k, v, h, root=1),
            "one head is attention as you know it", ""),
        (check.heads_side_by_side, lambda q, k, v, h: side_by_side(q, k, v, h, root=q.shape[1] / 2),
            "one head is attention as you know it", ""),
        (check.heads_side_by_side, lambda q, k, v, h: side_by_side(q, k, v, 1),
            "two heads of one number each", "single head"),
        (check.heads_side_by_side, lambda q, k, v, h: side_by_side(
            q, k, v, h, root=2 if h == 1 else q.shape[1] // 2),
            "three heads of two numbers", ""),
        (check.heads_output_without, lambda m, w, b, n, i: m @ w + b,
            "without the first of two heads", "still speak"),
        (check.heads_output_without, lambda m, w, b, n, i: output_without(m, w, b, n, 0),
            "without the last of two heads", ""),
        (check.heads_output_without, lambda m, w, b, n, i: output_without(m, w, 0 * b, n, i),
            "keeps the bias", "bias"),
        (check.heads_output_without, without_the_columns,
            "without the middle one of three", "rows"),
        (check.heads_attention, OnlyReshaped, "two heads of two numbers", "mixes the tokens"),
        (check.heads_attention, NotMovedBack, "two heads of two numbers", "move back"),
        (check.heads_attention, Unmasked, "two heads and a causal mask", "mask is not used"),
        (check.heads_attention, Unprojected, "two heads of two numbers", "out_proj"),
        (check.heads_attention, OneHead, "two heads, plain projections", "num_heads"),
        (check.heads_attention, WithoutGradient, "gradients reach every parameter", ".data"),
        (check.heads_attention, NoDropoutArgument, "takes the place of ours in a model", "dropout"),
    ],
)  # fmt: skip
def test_a_plausible_wrong_answer_fails_where_it_is_wrong(checked, wrong, claim, hint):
    report = checked(wrong)
    assert not report
    assert report.cases[-1].claim == claim
    assert hint in report.cases[-1].hint


def test_switching_off_in_place_fails():
    def in_place(merged, weight, bias, num_heads, head):
        size = merged.shape[1] // num_heads
        merged[:, head * size : (head + 1) * size] = 0.0
        return merged @ weight + bias

    report = check.heads_output_without(in_place)
    assert not report
    assert "`merged` is no longer" in report.cases[-1].came
