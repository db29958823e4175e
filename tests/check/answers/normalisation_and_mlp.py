"""Right and wrong answers to the exercises of "Normalisation and the MLP"."""

import numpy as np

from tinytorch import MLP, LayerNorm, Linear, Module, Parameter, Tensor, functional, primitive

OUTPUTS = {
    "[0, 2]": [-1, 1],
    "[100, 102]": [-1, 1],
    "[0, -2000]": [1, -1],
    "[5, 5]": [0, 0],
    "[0, 2], gamma 3, beta 1": [-2, 4],
}

# Each token by itself -------------------------------------------------------------------------


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


def by_sums(x, eps=1e-5):
    d = x.shape[-1]
    centred = x - x.sum(-1)[..., None] / d
    return centred * ((centred**2).sum(-1)[..., None] / d + eps) ** -0.5


def rows_of_a_matrix(x, eps=1e-5):
    rows = x.reshape(-1, x.shape[-1]).T  # (d, tokens)
    return ((rows - rows.mean(axis=0)) / np.sqrt(rows.var(axis=0) + eps)).T.reshape(x.shape)


def eps_outside(x, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + eps)


def mean_square_less_squared_mean(x, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    variance = (x * x).mean(-1, keepdims=True) - mean * mean
    with np.errstate(all="ignore"):
        return (x - mean) / np.sqrt(variance + eps)


def not_centred(x, eps=1e-5):
    return x / np.sqrt(x.var(-1, keepdims=True) + eps)


def no_root(x, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) / (x.var(-1, keepdims=True) + eps)


def in_place(x, eps=1e-5):
    x -= x.mean(-1, keepdims=True)
    x /= np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return x


def second_axis(x, eps=1e-5):
    return over(min(x.ndim - 1, 1))(x, eps)


def mean_over_all(x, eps=1e-5):
    return (x - x.mean()) / np.sqrt(x.var(-1, keepdims=True) + eps)


def variance_over_all(x, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var() + eps)


# A layer --------------------------------------------------------------------------------------


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


class BySums(Norm):
    def __init__(self, embed_dim, eps=1e-5):
        super().__init__(embed_dim, eps)
        self.d = embed_dim

    def forward(self, x):
        centred = x - x.sum(axis=-1, keepdims=True) / self.d
        scale = ((centred**2).sum(axis=-1, keepdims=True) / self.d + self.eps) ** -0.5
        return centred * scale * self.gamma + self.beta


class WidthFour(Norm):
    def __init__(self, embed_dim, eps=1e-5):
        super().__init__(4, eps)


class BetaOfOne(Norm):
    def __init__(self, embed_dim, eps=1e-5):
        super().__init__(embed_dim, eps)
        self.beta = Parameter(np.zeros(1))


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


class Unused(Norm):
    def forward(self, x):
        centred = x - self.mean(x)
        return centred / self.deviation(centred)


class ShiftedBeforeScaled(Norm):
    def forward(self, x):
        centred = x - self.mean(x)
        return (centred / self.deviation(centred) + self.beta) * self.gamma


class DividedByOneLess(Norm):
    def deviation(self, centred):
        square = (centred * centred).sum(axis=-1, keepdims=True)
        return (square / (centred.shape[-1] - 1) + self.eps).sqrt()


class DividedByFour(Norm):
    def deviation(self, centred):
        return ((centred * centred).sum(axis=-1, keepdims=True) / 4 + self.eps).sqrt()


class EpsOutside(Norm):
    def deviation(self, centred):
        return (centred * centred).mean(axis=-1, keepdims=True).sqrt() + self.eps


class TinyEps(Norm):
    def __init__(self, embed_dim, eps=1e-5):
        super().__init__(embed_dim, 1e-12)


class OwnEps(Norm):
    def __init__(self, embed_dim, eps=1e-5):
        super().__init__(embed_dim, 1e-5)


class OverTheBatch(Norm):
    def forward(self, x):
        centred = x - x.mean()
        return centred / ((centred * centred).mean() + self.eps).sqrt() * self.gamma + self.beta


class OverThePositions(Norm):
    def forward(self, x):
        axis = max(x.ndim - 2, 0)
        centred = x - x.mean(axis=axis, keepdims=True)
        deviation = ((centred * centred).mean(axis=axis, keepdims=True) + self.eps).sqrt()
        return centred / deviation * self.gamma + self.beta


class ConstantDeviation(Norm):
    def deviation(self, centred):
        return super().deviation(centred).data


class ConstantMean(Norm):
    def mean(self, x):
        return x.data.mean(axis=-1, keepdims=True)


class NewLeaf(Norm):
    def forward(self, x):
        return super().forward(Tensor(x.data))


class ArraysOfParameters(Norm):
    def forward(self, x):
        centred = x - self.mean(x)
        return centred / self.deviation(centred) * self.gamma.data + self.beta.data


class FusedInside(Norm):
    def forward(self, x):
        return functional.layer_norm(x, self.gamma, self.beta, eps=self.eps)


class Inherited(LayerNorm):
    pass


class Borrowed(Norm):
    def forward(self, x):
        return LayerNorm.forward(self, x)


# A norm without a mean ------------------------------------------------------------------------


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


@primitive
def rms_by_einsum(x, *, eps=1e-5):
    r = np.sqrt(np.einsum("...d,...d->...", x, x) / x.shape[-1] + eps)[..., None]
    return (
        x / r,
        lambda g: g / r - x * np.einsum("...d,...d->...", g, x)[..., None] / (x.shape[-1] * r**3),
    )


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


@primitive
def rms_in_place(x, *, eps=1e-5):
    r = root(x, eps)
    x /= r
    return x, lambda g: (g - x * mean(g * x)) / r


@primitive
def rms_with_its_gradient_overwritten(x, *, eps=1e-5):
    r = root(x, eps)
    y = x / r

    def pullback(g):
        g -= y * mean(g * y)
        g /= r
        return g

    return y, pullback


@primitive
def rms_without_a_pullback(x, *, eps=1e-5):
    return x / root(x, eps)


def rms_composed(x, *, eps=1e-5):
    return x / ((x * x).mean(axis=-1, keepdims=True) + eps).sqrt()


# The MLP --------------------------------------------------------------------------------------


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


class Products(Two):
    def forward(self, x):
        h = functional.linear(x, self.linear1.weight, self.linear1.bias)
        return functional.gelu(h) @ self.linear2.weight + self.linear2.bias


class Straight(Two):
    def bent(self, x):
        return self.linear1(x)


class Relu(Two):
    def bent(self, x):
        return functional.relu(self.linear1(x))


class Late(Two):
    def forward(self, x):
        return functional.gelu(self.linear2(self.linear1(x)))


class Added(Two):
    def forward(self, x):
        return x + super().forward(x)


class Cut(Two):
    def forward(self, x):
        return self.linear2(self.bent(x).data)


class Fours(Two):
    def __init__(self, embed_dim, hidden_dim, dropout_prob=0.0):
        super().__init__(embed_dim, 4 * embed_dim)


class OtherNames(Two):
    def __init__(self, embed_dim, hidden_dim, dropout_prob=0.0):
        self.up, self.down = Linear(embed_dim, hidden_dim), Linear(hidden_dim, embed_dim)

    def forward(self, x):
        return self.down(functional.gelu(self.up(x)))


RIGHT = {
    "mlp_layer": [Two, ByHand, Products],
    "norm_sizes": [
        lambda x: np.sqrt((x * x).mean(axis=-1)),
        lambda x: np.linalg.norm(x, axis=-1) / np.sqrt(x.shape[-1]),
        lambda x: (x**2).mean(-1) ** 0.5,
        lambda x: np.sqrt(np.einsum("...d,...d->...", x, x) / x.shape[-1]),
    ],
    "norm_outputs": [
        OUTPUTS,
        {name: tuple(pair) for name, pair in OUTPUTS.items()},
        {name: np.array(pair, dtype=float) for name, pair in OUTPUTS.items()},
    ],
    "norm_each_token": [centred_first, over(-1), by_sums, rows_of_a_matrix],
    "norm_layer": [Norm, ByVar, BySums],
    "norm_rms": [rms, rms_with_a_named_pullback, rms_by_einsum],
}

WRONG = {
    "mlp_layer": {
        "no bend": Straight,
        "another bend": Relu,
        "bends at the end": Late,
        "adds its input": Added,
        "leaves the tensors": Cut,
        "always four times as wide": Fours,
        "other names": OtherNames,
        "the package's": MLP,
    },
    "norm_sizes": {
        "the deviation": lambda x: x.std(axis=-1),
        "the length": lambda x: np.linalg.norm(x, axis=-1),
        "no root": lambda x: (x * x).mean(axis=-1),
        "the mean of the sizes": lambda x: np.abs(x).mean(axis=-1),
        "of everything": lambda x: np.sqrt((x * x).mean()),
        "an axis is kept": lambda x: np.sqrt((x * x).mean(axis=-1, keepdims=True)),
        "the first axis": lambda x: np.sqrt((x * x).mean(axis=0)),
        "in a loop": lambda x: np.array(
            [np.sqrt((row * row).mean()) for row in x.reshape(-1, x.shape[-1])]
        ).reshape(x.shape[:-1]),
    },
    "norm_outputs": {
        "not below zero": {**OUTPUTS, "[0, 2]": [0, 1]},
        "unit length": {**OUTPUTS, "[0, 2]": [-0.7071, 0.7071]},
        "only the mean subtracted": {**OUTPUTS, "[100, 102]": [99, 101]},
        "the shift left in": {**OUTPUTS, "[100, 102]": [100, 102]},
        "the sign lost": {**OUTPUTS, "[0, -2000]": [-1, 1]},
        "the size left in": {**OUTPUTS, "[0, -2000]": [1000, -1000]},
        "zero over zero": {**OUTPUTS, "[5, 5]": [float("nan"), float("nan")]},
        "a constant kept": {**OUTPUTS, "[5, 5]": [5, 5]},
        "beta before gamma": {**OUTPUTS, "[0, 2], gamma 3, beta 1": [0, 6]},
        "beta forgotten": {**OUTPUTS, "[0, 2], gamma 3, beta 1": [-3, 3]},
    },
    "norm_each_token": {
        "over all numbers": over(None),
        "over the tokens": over(0),
        "without keepdims": over(-1, keepdims=False),
        "over the second axis": second_axis,
        "the mean of all numbers": mean_over_all,
        "the variance of all numbers": variance_over_all,
        "divided by d - 1": over(-1, ddof=1),
        "eps outside the root": eps_outside,
        "no eps": over(-1, inside=0.0),
        "a tiny eps": over(-1, inside=1e-12),
        "an eps of its own": over(-1, inside=1e-5),
        "eps in both places": over(-1, outside=1e-5),
        "no root": no_root,
        "no mean subtracted": not_centred,
        "a variance that cancels": mean_square_less_squared_mean,
        "in place": in_place,
    },
    "norm_layer": {
        "four numbers whatever the width": WidthFour,
        "one beta for all elements": BetaOfOne,
        "gamma starts at zero": GammaOfZeros,
        "tensors, not parameters": PlainTensors,
        "PyTorch's names": OthersNames,
        "gamma and beta not used": Unused,
        "beta before gamma": ShiftedBeforeScaled,
        "divided by d - 1": DividedByOneLess,
        "divided by four": DividedByFour,
        "eps outside the root": EpsOutside,
        "a tiny eps": TinyEps,
        "an eps of its own": OwnEps,
        "over the whole batch": OverTheBatch,
        "over the positions": OverThePositions,
        "the deviation a constant": ConstantDeviation,
        "the mean a constant": ConstantMean,
        "a new leaf": NewLeaf,
        "the arrays of the parameters": ArraysOfParameters,
        "the package's fused operation": FusedInside,
        "the package's layer, inherited": Inherited,
        "the package's layer": LayerNorm,
        "the package's method, borrowed": Borrowed,
    },
    "norm_rms": {
        "a mean subtracted": norm_of(lambda x, eps: root(x - mean(x), eps), centre=True),
        "the sum of the squares": norm_of(lambda x, eps: np.sqrt((x * x).sum(-1)[..., None] + eps)),
        "no root": norm_of(lambda x, eps: mean(x * x) + eps),
        "eps outside the root": norm_of(lambda x, eps: np.sqrt(mean(x * x)) + eps),
        "a tiny eps": norm_of(lambda x, eps: root(x, 1e-12)),
        "no eps": norm_of(lambda x, eps: root(x, 0.0)),
        "next to no eps": norm_of(lambda x, eps: root(x, 1e-300)),
        "no eps in the pullback": norm_of(
            root, lambda g, y, r: (g - y * mean(g * y)) / (r * np.sqrt(mean(y * y)))
        ),
        "an eps of its own": norm_of(lambda x, eps: root(x, 1e-5)),
        "over all tokens": norm_of(lambda x, eps: np.sqrt((x * x).mean() + eps)),
        "r a constant": norm_of(root, lambda g, y, r: g / r),
        "the sum of g y": norm_of(root, lambda g, y, r: (g - y * mean(g * y) * y.shape[-1]) / r),
        "not divided by r": norm_of(root, lambda g, y, r: g - y * mean(g * y)),
        "the correction not divided": norm_of(root, lambda g, y, r: g / r - y * mean(g * y)),
        "the gradient of LayerNorm": norm_of(
            root, lambda g, y, r: (g - mean(g) - y * mean(g * y)) / r
        ),
        "g left out": norm_of(root, lambda g, y, r: (1 - y * mean(y)) / r),
        "the pullback mixes tokens": norm_of(root, lambda g, y, r: (g - y * (g * y).mean()) / r),
        "the correction added": norm_of(root, lambda g, y, r: (g + y * mean(g * y)) / r),
        "in place": rms_in_place,
        "the gradient that came is overwritten": rms_with_its_gradient_overwritten,
        "composed, without a pullback": rms_composed,
        "a value alone": rms_without_a_pullback,
        "a pullback that returns nothing": norm_of(root, lambda g, y, r: None),
        "without its decorator": rms.__wrapped__,
    },
}
