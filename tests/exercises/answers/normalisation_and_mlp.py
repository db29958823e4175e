"""Right and wrong answers to the exercises of "Normalisation and the MLP"."""

import numpy as np

from tinytorch import Linear, Module, Parameter, Tensor, functional, primitive

OUTPUTS = {
    "[0, 2]": [-1, 1],
    "[100, 102]": [-1, 1],
    "[0, -2000]": [1, -1],
    "[5, 5]": [0, 0],
    "[0, 2], gamma 3, beta 1": [-2, 4],
}


# Each token by itself
def over(axis, keepdims=True, ddof=0, inside=None, outside=0.0):
    """A normalisation with what one gets wrong about it."""

    def normalise(x, eps=1e-5):
        added = eps if inside is None else inside
        mean = x.mean(axis=axis, keepdims=keepdims)
        variance = x.var(axis=axis, keepdims=keepdims, ddof=ddof)
        with np.errstate(all="ignore"):
            return (x - mean) / (np.sqrt(variance + added) + outside)

    return normalise


def centred_first(x, eps=1e-5):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + eps)


# A layer
class Norm(Module):
    """The solution; each answer below changes one thing about it."""

    def __init__(self, embed_dim, eps=1e-5):
        self.gamma = Parameter(np.ones(embed_dim))
        self.beta = Parameter(np.zeros(embed_dim))
        self.eps = eps

    def mean(self, x):
        return x.mean(axis=-1, keepdims=True)

    def deviation(self, centred):
        return ((centred * centred).mean(axis=-1, keepdims=True) + self.eps).sqrt()

    def forward(self, x):
        centred = x - self.mean(x)
        return centred / self.deviation(centred) * self.gamma + self.beta


class ByVar(Norm):
    def forward(self, x):
        y = (x - x.mean(axis=-1, keepdims=True)) / (x.var(axis=-1, keepdims=True) + self.eps) ** 0.5
        return self.beta + self.gamma * y


class GammaOfZeros(Norm):
    def __init__(self, embed_dim, eps=1e-5):
        super().__init__(embed_dim, eps)
        self.gamma = Parameter(np.zeros(embed_dim))


class PlainTensors(Norm):
    def __init__(self, embed_dim, eps=1e-5):
        self.gamma, self.beta, self.eps = Tensor(np.ones(embed_dim)), Tensor([0.0] * embed_dim), eps


class OthersNames(Norm):
    def __init__(self, embed_dim, eps=1e-5):
        self.weight, self.bias = Parameter(np.ones(embed_dim)), Parameter(np.zeros(embed_dim))
        self.eps = eps

    def forward(self, x):
        centred = x - self.mean(x)
        return centred / self.deviation(centred) * self.weight + self.bias


# A norm without a mean
@primitive
def rms(x, *, eps=1e-5):
    r = np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
    y = x / r
    return y, lambda g: (g - y * (g * y).mean(axis=-1, keepdims=True)) / r


@primitive
def rms_with_a_named_pullback(x, *, eps=1e-5):
    d = x.shape[-1]
    scale = (np.sum(x**2, axis=-1, keepdims=True) / d + eps) ** -0.5

    def pullback(g):
        return scale * g - scale**3 * x * np.sum(g * x, axis=-1, keepdims=True) / d

    return x * scale, pullback


def mean(x):
    return x.mean(axis=-1, keepdims=True)


def norm_of(divisor, pull=lambda g, y, r: (g - y * mean(g * y)) / r, centre=False):
    """A primitive that divides by `divisor(x, eps)`, with a pullback of its own."""

    @primitive
    def norm(x, *, eps=1e-5):
        r = divisor(x, eps)
        y = (x - mean(x) if centre else x) / r
        return y, lambda g: pull(g, y, r)

    return norm


def root(x, eps):
    return np.sqrt(mean(x * x) + eps)


# The MLP
class Two(Module):
    def __init__(self, embed_dim, hidden_dim, dropout_prob=0.0):
        self.linear1 = Linear(embed_dim, hidden_dim)
        self.linear2 = Linear(hidden_dim, embed_dim)

    def bent(self, x):
        return functional.gelu(self.linear1(x))

    def forward(self, x):
        return self.linear2(self.bent(x))


class ByHand(Two):
    def bent(self, x):
        x = x @ self.linear1.weight + self.linear1.bias
        inner = (x + x * x * x * 0.044715) * np.sqrt(2 / np.pi)
        return x * 0.5 * (2 - 2 / ((inner * 2).exp() + 1))


class Straight(Two):
    def bent(self, x):
        return self.linear1(x)


class Relu(Two):
    def bent(self, x):
        return functional.relu(self.linear1(x))


class Late(Two):
    def forward(self, x):
        return functional.gelu(self.linear2(self.linear1(x)))


RIGHT = {
    "mlp_layer": [Two, ByHand],
    "norm_sizes": [
        lambda x: np.sqrt((x * x).mean(axis=-1)),
        lambda x: np.linalg.norm(x, axis=-1) / np.sqrt(x.shape[-1]),
    ],
    "norm_outputs": [OUTPUTS, {name: tuple(pair) for name, pair in OUTPUTS.items()}],
    "norm_each_token": [centred_first, over(-1)],
    "norm_layer": [Norm, ByVar],
    "norm_rms": [rms, rms_with_a_named_pullback],
}

WRONG = {
    "mlp_layer": {"no bend": Straight, "another bend": Relu, "bends at the end": Late},
    "norm_sizes": {
        "… `std` subtracts the mean": lambda x: x.std(axis=-1),
        "the length": lambda x: np.linalg.norm(x, axis=-1),
    },
    "norm_outputs": {
        "not below zero": {**OUTPUTS, "[0, 2]": [0, 1]},
        "only the mean subtracted": {**OUTPUTS, "[100, 102]": [99, 101]},
    },
    "norm_each_token": {
        "… The mean and the deviation are": over(None),
        "… That is batch normalisation, over": over(0),
        "… The mean of each token must stay in": over(-1, keepdims=False),
    },
    "norm_layer": {
        "… gamma multiplies, so it starts at": GammaOfZeros,
        "… Make each a Parameter in __init__;": PlainTensors,
        "… PyTorch's names; ours are gamma and": OthersNames,
    },
    "norm_rms": {
        "… No mean is subtracted here.": norm_of(
            lambda x, eps: root(x - mean(x), eps), centre=True
        ),
        "… r is treated as a constant, but": norm_of(root, lambda g, y, r: g / r),
        "… The mean of g y, no sum.": norm_of(
            root, lambda g, y, r: (g - y * mean(g * y) * y.shape[-1]) / r
        ),
    },
}
