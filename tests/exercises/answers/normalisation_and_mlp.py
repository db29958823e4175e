"""Right and wrong answers to the exercises of "Normalisation and the MLP"."""

import numpy as np

from tinytorch import Linear, Module, Parameter, Tensor, functional, primitive

from . import changed

OUTPUTS = {
    "[0, 2]": [-1, 1],
    "[100, 102]": [-1, 1],
    "[0, -2000]": [1, -1],
    "[5, 5]": [0, 0],
    "[0, 2], gamma 3, beta 1": [-2, 4],
}


# Each token by itself
def over(axis, keepdims=True):
    """A normalisation with what one gets wrong about it."""

    def normalise(x, eps=1e-5):
        variance = x.var(axis=axis, keepdims=keepdims)
        return (x - x.mean(axis=axis, keepdims=keepdims)) / np.sqrt(variance + eps)

    return normalise


def centred_first(x, eps=1e-5):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + eps)


# A layer
class Norm(Module):
    def __init__(self, embed_dim, eps=1e-5):
        self.gamma = Parameter(np.ones(embed_dim))
        self.beta = Parameter(np.zeros(embed_dim))
        self.eps = eps

    def forward(self, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = ((centred * centred).mean(axis=-1, keepdims=True) + self.eps).sqrt()
        return centred / deviation * self.gamma + self.beta


def by_var(self, x):
    y = (x - x.mean(axis=-1, keepdims=True)) / (x.var(axis=-1, keepdims=True) + self.eps) ** 0.5
    return self.beta + self.gamma * y


class PlainTensors(Norm):
    def __init__(self, embed_dim, eps=1e-5):
        self.gamma, self.beta, self.eps = Tensor(np.ones(embed_dim)), Tensor([0.0] * embed_dim), eps


class OthersNames(Norm):
    def __init__(self, embed_dim, eps=1e-5):
        self.weight, self.bias = Parameter(np.ones(embed_dim)), Parameter(np.zeros(embed_dim))
        self.eps = eps

    def forward(self, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        return centred / (x.var(axis=-1, keepdims=True) + self.eps) ** 0.5 * self.weight + self.bias


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


@primitive
def mean_subtracted(x, *, eps=1e-5):
    x = x - mean(x)
    r = np.sqrt(mean(x * x) + eps)
    return x / r, lambda g: (g - x / r * mean(g * x / r)) / r


@primitive
def root_as_a_constant(x, *, eps=1e-5):
    r = np.sqrt(mean(x * x) + eps)
    return x / r, lambda g: g / r


# The MLP
class Two(Module):
    def __init__(self, embed_dim, hidden_dim, dropout_prob=0.0):
        self.linear1 = Linear(embed_dim, hidden_dim)
        self.linear2 = Linear(hidden_dim, embed_dim)

    def bent(self, x):
        return functional.gelu(self.linear1(x))

    def forward(self, x):
        return self.linear2(self.bent(x))


def bent_by_hand(self, x):
    x = x @ self.linear1.weight + self.linear1.bias
    inner = (x + x * x * x * 0.044715) * np.sqrt(2 / np.pi)
    return x * 0.5 * (2 - 2 / ((inner * 2).exp() + 1))


RIGHT = {
    "mlp_layer": [Two, changed(Two, bent=bent_by_hand)],
    "norm_sizes": [
        lambda x: np.sqrt((x * x).mean(axis=-1)),
        lambda x: np.linalg.norm(x, axis=-1) / np.sqrt(x.shape[-1]),
    ],
    "norm_outputs": [OUTPUTS, {name: tuple(pair) for name, pair in OUTPUTS.items()}],
    "norm_each_token": [centred_first, over(-1)],
    "norm_layer": [Norm, changed(Norm, forward=by_var)],
    "norm_rms": [rms, rms_with_a_named_pullback],
}

WRONG = {
    "mlp_layer": {
        "no bend": changed(Two, bent=lambda self, x: self.linear1(x)),
        "another bend": changed(Two, bent=lambda self, x: functional.relu(self.linear1(x))),
        "bends at the end": changed(
            Two, forward=lambda self, x: functional.gelu(self.linear2(self.linear1(x)))
        ),
    },
    "norm_sizes": {"… `std` subtracts the mean": lambda x: x.std(axis=-1)},
    "norm_outputs": {"only the mean subtracted": {**OUTPUTS, "[100, 102]": [99, 101]}},
    "norm_each_token": {
        "… The mean and the deviation are": over(None),
        "… The mean of each token must stay in": over(-1, keepdims=False),
    },
    "norm_layer": {
        "… Make each a Parameter in __init__;": PlainTensors,
        "… PyTorch's names; ours are gamma and": OthersNames,
    },
    "norm_rms": {
        "… No mean is subtracted here.": mean_subtracted,
        "… r is treated as a constant, but": root_as_a_constant,
    },
}
