"""The checks of "GPT": right answers pass, empty and wrong ones do not."""

import numpy as np
import pytest

from tinytorch import (
    GPT,
    Embedding,
    LayerNorm,
    Module,
    MultiHeadAttention,
    PositionalEncoding,
    TransformerBlock,
    causal_mask,
)
from tinytorch.check import gpt as check


def nothing(*_, **__):
    return None


def tied_gradient(ids, g_in, x, g_logits):
    gradient = g_logits.T @ x
    np.add.at(gradient, ids, g_in)
    return gradient


def num_parameters(V, d, L, T, ratio, tied):
    block = 4 * d * d + 4 * d + 2 * ratio * d * d + ratio * d + d + 4 * d
    return V * d * (1 if tied else 2) + T * d + L * block + 2 * d


def is_causal(model, ids, rows=None, atol=1e-5):
    before = model(ids)
    for t in range(len(ids)) if rows is None else rows(len(ids)):
        changed = ids.copy()
        changed[t] = (changed[t] + 1) % before.shape[1]
        if np.abs(model(changed)[:t] - before[:t]).max(initial=0) > atol:
            return False
    return True


class Assembled(Module):
    """A GPT with switches for the mistakes one can make."""

    def __init__(
        self, V, d, layers, heads, T, norm=LayerNorm, attention=MultiHeadAttention,
        *, shared=False, masked=True, last=None, own=True,
    ):  # fmt: skip
        parts = {"norm": norm, "attention": attention} if own else {}
        self.token_embedding, self.position_embedding = Embedding(V, d), PositionalEncoding(T, d)
        blocks = [TransformerBlock(d, heads, 4, 0.0, **parts) for _ in range(layers)]
        self.blocks = blocks[:1] * layers if shared else blocks
        self.ln_f = (last or norm)(d)
        self.masked = masked

    def forward(self, ids):
        x = self.position_embedding(self.token_embedding(ids))
        for block in self.blocks:
            x = block(x, mask=causal_mask(ids.shape[1]) if self.masked else None)
        return self.ln_f(x) @ self.token_embedding.weight.T


def assembled(**switches):
    return lambda *sizes, **parts: Assembled(*sizes, **parts, **switches)


class NoNorm(LayerNorm):
    def forward(self, x):
        return x


RIGHT = {
    check.gpt_tied_gradient: tied_gradient,
    check.gpt_num_parameters: num_parameters,
    check.gpt_is_causal: is_causal,
    check.gpt_assembled: Assembled,
}


@pytest.mark.parametrize("checked", RIGHT, ids=lambda c: c.__name__)
def test_the_right_answer_is_solved_and_an_empty_one_is_not(checked):
    assert checked(RIGHT[checked])
    assert not checked(nothing)
    assert not checked(...)


@pytest.mark.parametrize(
    ("wrong", "claim"),
    [
        (lambda ids, g_in, x, g: g.T @ x, "the lookup alone"),
        (lambda ids, g_in, x, g: tied_gradient(ids, g_in, x, 0 * g), "the output alone"),
        (lambda ids, g_in, x, g: tied_gradient(ids, g_in, x, g) / (1 + (g.any() and g_in.any())),
            "both uses"),
    ],
)  # fmt: skip
def test_a_tied_gradient_with_a_use_missing_fails(wrong, claim):
    assert check.gpt_tied_gradient(wrong).cases[-1].claim == claim


def test_a_tied_gradient_that_forgets_repeated_tokens_fails():
    def forgetful(ids, g_in, x, g_logits):
        gradient = g_logits.T @ x
        gradient[ids] += g_in
        return gradient

    report = check.gpt_tied_gradient(forgetful)
    assert report.cases[-1].claim == "a token read again"
    assert "np.add.at" in report.cases[-1].hint


@pytest.mark.parametrize(
    ("wrong", "claim", "hint"),
    [
        (lambda *a: 124_439_808, "d = 1, one block", ""),
        (lambda *a: 47, "V, d, L, T, ratio = 65, 64, 2, 32, 4", ""),
        (lambda V, d, L, T, r, tied: num_parameters(V, d, L, T, 4, tied),
            "V, d, L, T, ratio = 7, 8, 3, 5, 2", "not 4 times"),
        (lambda V, d, L, T, r, tied: num_parameters(V, d, L, T, r, True),
            "an untied output", "(d, V)"),
        (lambda V, d, L, T, r, tied: num_parameters(V, d, L, T, r, tied) + (0 if tied else V),
            "an untied output", "no bias"),
    ],
)  # fmt: skip
def test_a_wrong_count_fails_where_it_is_wrong(wrong, claim, hint):
    last = check.gpt_num_parameters(wrong).cases[-1]
    assert last.claim == claim
    assert hint in last.hint


def test_the_expected_counts_are_those_of_the_class():
    for size in ((65, 64, 2, 32), (7, 8, 3, 5)):
        V, d, L, T = size
        for tied in (True, False):
            real = GPT(V, d, L, 4, T, tie_weights=tied).num_parameters()["total"]
            assert num_parameters(*size, 4, tied) == real


@pytest.mark.parametrize(
    ("wrong", "claim"),
    [
        (lambda model, ids: False, "clears an honest model"),
        (lambda model, ids: True, "finds a full leak"),
        (lambda model, ids: is_causal(model, ids, lambda n: [n - 1]), "finds a single leak"),
        (lambda model, ids: is_causal(model, ids, lambda n: [1]), "finds a far look"),
        (lambda model, ids: is_causal(model, ids, atol=0), "forgives rounding"),
    ],
)
def test_a_careless_test_for_causality_fails_where_it_is_careless(wrong, claim):
    assert check.gpt_is_causal(wrong).cases[-1].claim == claim


def test_watching_the_changed_position_itself_fails():
    def too_strict(model, ids):
        changed = ids.copy()
        changed[-1] = (changed[-1] + 1) % 5
        return np.allclose(model(changed), model(ids))

    assert check.gpt_is_causal(too_strict).cases[-1].claim == "clears an honest model"


@pytest.mark.parametrize(
    ("switches", "claim", "hint"),
    [
        ({"shared": True}, "two blocks have the parameters of two", "make two"),
        ({"masked": False}, "one block gives our logits", "mask"),
        ({"masked": False, "last": NoNorm}, "one block gives our logits", "mask"),
        ({"last": NoNorm}, "one block gives our logits", "ln_f"),
        ({"last": LayerNorm}, "the norm is the one passed", "norm(d)"),
        ({"own": False, "last": LayerNorm}, "the norm is the one passed", "norm="),
        ({"own": False}, "the norm is the one passed", "blocks have norms"),
    ],
)
def test_a_wrong_assembly_fails_where_it_is_wrong(switches, claim, hint):
    last = check.gpt_assembled(assembled(**switches)).cases[-1]
    assert last.claim == claim
    assert hint in last.hint


def test_an_attention_that_is_not_passed_on_fails():
    report = check.gpt_assembled(lambda *sizes, norm=LayerNorm, **_: Assembled(*sizes, norm=norm))
    assert report.cases[-1].claim == "the attention is the one passed"
    assert "attention=" in report.cases[-1].hint


def test_another_name_for_a_parameter_is_told():
    class Renamed(Assembled):
        def __init__(self, *sizes, **parts):
            super().__init__(*sizes, **parts)
            self.table = self.__dict__.pop("token_embedding")

    report = check.gpt_assembled(Renamed)
    assert "missing: table.weight" in report.cases[-1].came
    assert "names" in report.cases[-1].hint
