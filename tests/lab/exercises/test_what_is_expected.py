"""What the checks expect is what the package computes, and what a chapter says in special cases."""

import numpy as np
import pytest
from answers import optimisation
from reports import solution

from tinytorch import (
    GPT,
    AdamW,
    KVCache,
    MultiHeadAttention,
    PostNormBlock,
    Tensor,
    TransformerBlock,
    clip_grad_norm,
    functional,
)
from tinytorch_book import check


def test_layer_norm_reference_matches_the_package():
    for name, expected in list(solution("norm_outputs").items())[:4]:
        x = np.array([float(n) for n in name.strip("[]").split(",")])
        assert np.allclose(functional.layer_norm(x, np.ones(2), np.zeros(2)), expected, atol=1e-4)


@pytest.mark.parametrize("pre_norm", [True, False])
def test_block_reference_matches_the_package(pre_norm):
    ours = (TransformerBlock if pre_norm else PostNormBlock)(8, 2, dropout_prob=0.0)
    x = np.random.default_rng(0).normal(size=(2, 3, 8))
    parts = ours.ln1, ours.attention, ours.ln2, ours.mlp
    assert np.array_equal(solution("block_forward")(x, *parts, pre_norm).data, ours(x).data)


@pytest.mark.parametrize("d", [4, 64])
def test_predicted_block_size_matches_the_package(d):
    size = sum(p.size for p in TransformerBlock(d, 2).parameters())
    assert size == solution("block_parameters")(d, 4)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("size", [(65, 64, 2, 32), (7, 8, 3, 5)])
def test_predicted_gpt_size_matches_the_package(size, tied):
    V, d, L, T = size
    real = GPT(V, d, L, 4, T, tie_weights=tied).num_parameters()["total"]
    assert solution("gpt_num_parameters")(*size, 4, tied) == real


@pytest.mark.parametrize(("n", "T", "share"), [(20, 3, 0.25), (500, 16, 0.1), (101, 7, 0.3)])
def test_held_out_tokens_are_not_read_in_training(n, T, share):
    training, validation = solution("data_split")(n, T, share)
    assert training.max() + T == n - round(n * share) - 1
    assert validation.max() + T < n


def test_adamw_reference_matches_the_package():
    w = Tensor([1.0, -2.0], requires_grad=True, dtype=np.float64)
    optimizer = AdamW([w], lr=0.1, betas=(0.9, 0.999), weight_decay=0.5)
    expected = w.data.copy(), np.zeros(2), np.zeros(2)
    for t, gradient in enumerate(np.array([[3.0, 0.5], [-1.0, 2.0]]), start=1):
        w.grad = gradient
        optimizer.step()
        expected = solution("optim_adamw")(expected[0], gradient, *expected[1:], t, 0.1, 0.5)
        assert np.allclose(w.data, expected[0])


def test_clipping_reference_matches_the_package():
    a, b = (Tensor(np.zeros(2), requires_grad=True) for _ in range(2))
    a.grad, b.grad = np.array([6.0, 0.0]), np.array([0.0, 8.0])
    clipped = solution("optim_clip")([a.grad, b.grad], 5.0)
    clip_grad_norm([a, b], 5.0)
    assert np.allclose([a.grad, b.grad], clipped)


def test_predicted_cache_cost_matches_the_package():
    cache = KVCache(6, 1024)
    new = np.zeros((1, 8, 40, 64), dtype=np.float16)
    keys = [cache.extend(layer, new, new)[0] for layer in range(6)]
    cost = solution("cache_predict")
    assert keys[0].shape == cost["keys of a layer after the prompt (B, h, T, d/h)"]
    assert cache.nbytes == cost["bytes of the cache"]


# Answers whose report says more than that a number is wrong


class NewLeaf(solution("norm_layer")):
    def forward(self, x):
        return super().forward(Tensor(x.data))


IN_PLACE = "y = x / r", "x /= r\n    y = x"
NO_PULLBACK = "return y, lambda g:", "return y; lambda g:"


def score_gradient_of_tensors(w, v, g):
    scores = Tensor(np.log(w + 1e-300), requires_grad=True, dtype=np.float64)
    (functional.softmax(scores) @ v).backward(g)
    return scores.grad


def attend_at_once(layer, x, mask=None):
    """The function of the page, which does all that is asked."""
    return solution("heads_attention").forward(layer, x, mask), None


class OfThePage(solution("heads_attention")):
    def forward(self, x, mask=None):
        return attend_at_once(self, x, mask)[0]


class WithLayerInside(solution("heads_attention")):
    def forward(self, x, mask=None):
        inner = MultiHeadAttention(x.shape[-1], self.num_heads)
        inner.load_state_dict(self.state_dict())
        return inner(x, mask=mask)


class OthersNames(solution("gpt_assembled")):
    def __init__(self, *sizes, **parts):
        super().__init__(*sizes, **parts)
        self.table = self.__dict__.pop("token_embedding")


def appends_to_the_prompt(f, prompt, *given):
    prompt.extend(solution("sampling_write")(f, prompt, *given)[len(prompt) :])
    return prompt


@pytest.mark.parametrize(
    ("name", "wrong", "got"),
    [
        ("norm_layer", NewLeaf, "does not depend on it"),
        ("norm_rms", solution("norm_rms").__wrapped__, "@primitive"),
        ("norm_rms", solution("norm_rms", *IN_PLACE), "no longer what it was"),
        ("norm_rms", solution("norm_rms", *NO_PULLBACK), "without a pullback"),
        ("heads_attention", WithLayerInside, "it makes a MultiHeadAttention"),
        ("heads_attention", OfThePage, "it calls attend_at_once"),
        ("attend_score_gradient", score_gradient_of_tensors, "the package's Tensor"),
        ("gpt_assembled", OthersNames, "missing: table.weight"),
        ("heads_attention", lambda d, h: 3, "which is not a Module"),
        ("cache_step", lambda *given: (1, 2), "which is not (output, keys, values)"),
        ("sampling_write", appends_to_the_prompt, "`prompt` is no longer what it was"),
        ("fast_pieces", lambda f, x, size: x * x, "f was never called"),
    ],
)
def test_wrong_results_are_described_helpfully(name, wrong, got):
    assert got in getattr(check, name)(wrong).cases[-1].got


def test_a_report_names_a_toy_model_by_what_it_does():
    report = check.sampling_write(lambda *given: [])
    assert report.cases[-1].given.startswith("sure_of_last_plus_1")


def test_memory_to_be_predicted_is_hidden():
    assert check.optim_bytes(lambda n, name: 0).cases[-1].expected == ""


def test_a_layer_whose_forward_is_still_a_stub_is_untouched():
    class Stub(solution("heads_attention")):
        def forward(self, x, mask=None): ...

    assert check.heads_attention(Stub).untouched


def test_counting_forward_passes_leaves_the_model_unchanged():
    before = GPT.forward
    for wrong in (lambda model, prompt, n: 1 / 0, lambda model, prompt, n: model([prompt] * 2)):
        assert not check.cache_readings(wrong)
        assert GPT.forward is before


def test_a_negative_rate_is_reported_before_training():
    report = check.optim_budget(optimisation.settings(batch_size=50), lambda step, steps: -step)
    assert report.cases[0].got == "a rate of -1 at step 1 of 10"
