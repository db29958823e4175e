"""The checks of the chapter on normalisation: right answers pass, wrong ones do not."""

import numpy as np
import pytest

from tinytorch import GPT, LayerNorm, Module, Parameter, Tensor, functional, primitive
from tinytorch.check import normalisation_and_mlp as check


def failed_at(report):
    """The claim that a report stopped at."""
    assert not report
    return report.cases[-1].claim


def hint_of(report):
    assert not report
    return report.cases[-1].hint


# outputs -------------------------------------------------------------------------------------

OUTPUTS = {
    "[0, 2]": [-1, 1],
    "[100, 102]": [-1, 1],
    "[0, -2000]": [1, -1],
    "[5, 5]": [0, 0],
    "[0, 2], gamma 3, beta 1": [-2, 4],
}


def test_outputs_are_solved():
    assert check.norm_outputs(OUTPUTS)
    assert check.norm_outputs({name: tuple(pair) for name, pair in OUTPUTS.items()})


@pytest.mark.parametrize("stub", [..., None, {}, dict.fromkeys(OUTPUTS, ...)])
def test_outputs_stub_is_not(stub):
    assert "nothing yet" in repr(check.norm_outputs(stub))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("[0, 2]", [0, 1]),
        ("[100, 102]", [99, 101]),
        ("[0, -2000]", [-1, 1]),
        ("[0, -2000]", [1000, -1000]),
        ("[5, 5]", [5, 5]),
        ("[0, 2], gamma 3, beta 1", [0, 6]),
    ],
)
def test_a_wrong_output_is_found_and_the_right_one_not_told(name, wrong):
    report = check.norm_outputs({**OUTPUTS, name: wrong})
    assert failed_at(report) == name
    assert "expected" not in repr(report)


def test_the_outputs_are_those_of_the_package():
    for name, expected in list(OUTPUTS.items())[:4]:
        x = np.array([float(n) for n in name.strip("[]").split(",")])
        assert np.allclose(functional.layer_norm(x, np.ones(2), np.zeros(2)), expected, atol=1e-4)


# each token ----------------------------------------------------------------------------------


def each_token(x, eps=1e-5):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + eps)


def over(axis, keepdims=False):
    def normalise(x, eps=1e-5):
        mean, variance = (f(x, axis=axis, keepdims=keepdims) for f in (np.mean, np.var))
        return (x - mean) / np.sqrt(variance + eps)

    return normalise


def test_each_token_is_solved():
    assert check.norm_each_token(each_token)


def test_each_token_stub_normalises_over_everything():
    report = check.norm_each_token(over(None))
    assert failed_at(report) == "normalises each of two tokens"
    assert "all the numbers" in hint_of(report)


@pytest.mark.parametrize(
    ("wrong", "claim", "hint"),
    [
        (lambda x: ..., "normalises one token", "Subtract"),
        (lambda x: np.array([-1, -1 / 3, -1 / 3, 5 / 3]), "normalises each of two", "last axis"),
        (lambda x: over(0 if x.ndim > 1 else None)(x), "normalises each of two", "batch norm"),
        (over(-1), "normalises each of two", "keepdims"),
        (lambda x: over(min(x.ndim - 1, 1), True)(x), "normalises each token of", "axis=-1"),
    ],
)
def test_each_token_wrong(wrong, claim, hint):
    report = check.norm_each_token(wrong)
    assert failed_at(report).startswith(claim)
    assert hint in hint_of(report)


def test_each_token_with_eps_outside_the_root_is_not_solved():
    def outside(x):
        return (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5)

    assert failed_at(check.norm_each_token(outside)) == "keeps eps inside the root"


def test_each_token_without_eps_is_not_solved():
    report = check.norm_each_token(lambda x: over(-1, True)(x, 0.0))
    assert failed_at(report) == "keeps eps inside the root"


# the layer -----------------------------------------------------------------------------------


class Mine(Module):
    """The solution; each wrong answer below changes one thing about it."""

    def __init__(self, embed_dim, eps=1e-5):
        self.gamma = Parameter(np.ones(embed_dim))
        self.beta = Parameter(np.zeros(embed_dim))
        self.eps = eps

    def deviation(self, centred):
        return ((centred * centred).mean(axis=-1, keepdims=True) + self.eps).sqrt()

    def forward(self, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        return centred / self.deviation(centred) * self.gamma + self.beta


def test_layer_is_solved():
    assert check.norm_layer(Mine)
    assert check.norm_layer(LayerNorm)


def test_layer_stub_is_not():
    class Stub(Module):
        def __init__(self, embed_dim, eps=1e-5): ...

        def forward(self, x): ...

    assert failed_at(check.norm_layer(Stub)) == "has the parameters gamma and beta"
    assert not check.norm_layer(...)
    assert "nothing yet" in repr(check.norm_layer(lambda d: ...))
    assert "not a Module" in repr(check.norm_layer(lambda d: 3))


def test_layer_with_plain_tensors_has_no_parameters():
    class Wrong(Mine):
        def __init__(self, embed_dim):
            self.gamma, self.beta = Tensor(np.ones(embed_dim)), Tensor(np.zeros(embed_dim))
            self.eps = 1e-5

    assert "Parameter" in hint_of(check.norm_layer(Wrong))


def test_layer_with_other_names_could_not_load_a_checkpoint():
    class Wrong(Module):
        def __init__(self, embed_dim):
            self.weight = Parameter(np.ones(embed_dim))
            self.bias = Parameter(np.zeros(embed_dim))

    assert "PyTorch" in hint_of(check.norm_layer(Wrong))


def test_layer_without_a_forward_is_not_solved():
    class Wrong(Mine):
        def forward(self, x): ...

    assert failed_at(check.norm_layer(Wrong)) == "normalises one token"


def test_layer_that_divides_by_d_minus_one_is_not_solved():
    class Wrong(Mine):
        def deviation(self, centred):
            d = centred.shape[-1]
            return ((centred * centred).sum(axis=-1, keepdims=True) / (d - 1) + self.eps).sqrt()

    report = check.norm_layer(Wrong)
    assert failed_at(report) == "normalises one token"
    assert "d - 1" in hint_of(report)


def test_layer_over_the_whole_batch_is_not_solved():
    class Wrong(Mine):
        def forward(self, x):
            centred = x - x.mean()
            return centred / ((centred * centred).mean() + self.eps).sqrt() * self.gamma + self.beta

    assert failed_at(check.norm_layer(Wrong)) == "normalises each token of a batch by itself"


def test_layer_with_eps_outside_the_root_is_not_solved():
    class Wrong(Mine):
        def deviation(self, centred):
            return (centred * centred).mean(axis=-1, keepdims=True).sqrt() + self.eps

    assert failed_at(check.norm_layer(Wrong)) == "keeps eps inside the root"


def test_layer_without_eps_is_not_solved():
    class Wrong(Mine):
        def __init__(self, embed_dim):
            super().__init__(embed_dim, eps=0.0)

    assert failed_at(check.norm_layer(Wrong)) == "keeps eps inside the root"


def test_layer_that_ignores_gamma_and_beta_is_not_solved():
    class Wrong(Mine):
        def forward(self, x):
            centred = x - x.mean(axis=-1, keepdims=True)
            return centred / self.deviation(centred)

    report = check.norm_layer(Wrong)
    assert failed_at(report) == "multiplies by gamma, then adds beta"
    assert "does not use" in hint_of(report)


def test_layer_whose_deviation_is_a_constant_is_not_solved():
    class Wrong(Mine):
        def deviation(self, centred):
            return super().deviation(centred).data

    report = check.norm_layer(Wrong)
    assert failed_at(report).startswith("has the gradient of its input")
    assert "deviation" in hint_of(report)


def test_layer_whose_mean_is_a_constant_is_not_solved():
    class Wrong(Mine):
        def forward(self, x):
            centred = x - x.data.mean(axis=-1, keepdims=True)
            return centred / self.deviation(centred) * self.gamma + self.beta

    report = check.norm_layer(Wrong)
    assert failed_at(report).startswith("has the gradient of its input")
    assert "mean" in hint_of(report)


def test_layer_computed_in_numpy_is_not_solved():
    class Wrong(Mine):
        def forward(self, x):
            x = np.asarray(x.data)
            n = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + self.eps)
            return Tensor(n * self.gamma.data + self.beta.data)

    assert "without a gradient" in repr(check.norm_layer(Wrong))


def test_layer_that_uses_the_arrays_of_its_parameters_is_not_solved():
    class Wrong(Mine):
        def forward(self, x):
            centred = x - x.mean(axis=-1, keepdims=True)
            return centred / self.deviation(centred) * self.gamma.data + self.beta.data

    report = check.norm_layer(Wrong)
    assert failed_at(report) == "has the gradients of gamma and beta"
    assert "gamma" in repr(report)


def test_layer_for_one_length_only_is_not_solved():
    class Wrong(Mine):
        def forward(self, x):
            if x.ndim == 3 and x.shape[1] == 4 and x.shape[0] == 1:
                return x
            return super().forward(x)

    assert failed_at(check.norm_layer(Wrong)) == "stands in for ours in a GPT"


def test_the_solution_trains_like_ours_inside_a_gpt():
    ours, own = (GPT(7, 8, 2, 2, max_seq_len=6, norm=norm, rng=0) for norm in (LayerNorm, Mine))
    ids = np.array([[1, 2, 3, 4, 5], [6, 5, 4, 3, 0]])
    for model in (ours, own):
        functional.cross_entropy(model(ids[:, :-1]), ids[:, 1:]).backward()
    for (name, a), (same, b) in zip(ours.named_parameters(), own.named_parameters(), strict=True):
        assert name == same
        assert np.allclose(a.grad, b.grad, atol=1e-5)


# a norm without a mean -----------------------------------------------------------------------


def rms_of(pull, value=None):
    """A primitive with the pullback `pull(g, y, r)`."""

    @primitive
    def rms_norm(x):
        r = np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
        y = x / r if value is None else value(x)
        return y, lambda g: pull(g, y, r)

    return rms_norm


def right(g, y, r):
    return (g - y * (g * y).mean(axis=-1, keepdims=True)) / r


def test_rms_is_solved():
    assert check.norm_rms(rms_of(right))


@pytest.mark.parametrize("stub", [..., primitive(lambda x: ...), primitive(lambda x: None)])
def test_rms_stub_is_not(stub):
    assert "nothing yet" in repr(check.norm_rms(stub))


def test_rms_without_its_decorator_is_not_solved():
    assert "@primitive" in check.norm_rms(rms_of(right).__wrapped__).cases[-1].came


@pytest.mark.parametrize(
    ("value", "claim"),
    [
        (each_token, "divides by the root mean square"),
        (lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True)), "divides by the root mean square"),
        (lambda x: x / (x * x).mean(-1, keepdims=True), "divides by the root mean square"),
        (lambda x: x / np.sqrt((x * x).mean() + 1e-5), "divides each token by its own"),
    ],
)
def test_rms_with_a_wrong_value_is_not_solved(value, claim):
    assert failed_at(check.norm_rms(rms_of(right, value))) == claim


def test_rms_without_eps_is_not_solved():
    def value(x):
        return x / np.sqrt((x * x).mean(-1, keepdims=True))

    with np.errstate(all="ignore"):
        assert failed_at(check.norm_rms(rms_of(right, value))) == "leaves zeros at zero"


@pytest.mark.parametrize(
    ("pull", "hint"),
    [
        (lambda g, y, r: g / r, "constant"),
        (lambda g, y, r: (g - y * (g * y).sum(-1, keepdims=True)) / r, "not its sum"),
        (lambda g, y, r: g - y * (g * y).mean(-1, keepdims=True), "Divide"),
        (
            lambda g, y, r: (
                (g - g.mean(-1, keepdims=True) - y * (g * y).mean(-1, keepdims=True)) / r
            ),
            "No mean",
        ),
        (lambda g, y, r: 1 / r, ""),
    ],
)
def test_rms_with_a_wrong_pullback_is_not_solved(pull, hint):
    report = check.norm_rms(rms_of(pull))
    assert failed_at(report) == "how the first output responds to each input"
    assert hint in hint_of(report)


def test_rms_whose_pullback_mixes_the_tokens_is_not_solved():
    report = check.norm_rms(rms_of(lambda g, y, r: (g - y * (g * y).mean()) / r))
    assert failed_at(report) == "has the gradient of each token"


def test_rms_that_changes_its_input_is_not_solved():
    @primitive
    def wrong(x):
        r = np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
        x /= r
        return x, lambda g: right(g, x, r)

    assert "no longer what it was" in repr(check.norm_rms(wrong))
