"""Right and wrong answers to the exercises of "Normalisation and the MLP"."""

import numpy as np

from tinytorch import primitive


@primitive
def rms_with_a_named_pullback(x, *, eps=1e-5):
    d = x.shape[-1]
    scale = (np.sum(x**2, axis=-1, keepdims=True) / d + eps) ** -0.5

    def pullback(g):
        return scale * g - scale**3 * x * np.sum(g * x, axis=-1, keepdims=True) / d

    return x * scale, pullback


GELU_BY_HAND = """\
x = x @ self.linear1.weight + self.linear1.bias
        inner = (x + x * x * x * 0.044715) * np.sqrt(2 / np.pi)
        return self.linear2(x * 0.5 * (2 - 2 / ((inner * 2).exp() + 1)))"""
VARIANCE = "(centred * centred).mean(axis=-1, keepdims=True)"
MLP = "return self.linear2(functional.gelu(self.linear1(x)))"
RIGHT = {
    "mlp_layer": [(MLP, GELU_BY_HAND)],
    "norm_sizes": [lambda x: np.linalg.norm(x, axis=-1) / np.sqrt(x.shape[-1])],
    "norm_each_token": [(VARIANCE, "x.var(axis=-1, keepdims=True)")],
    "norm_layer": [(VARIANCE, "x.var(axis=-1, keepdims=True)")],
    "norm_rms": [rms_with_a_named_pullback],
}

NORMED, MEAN = "centred / (variance + self.eps).sqrt()", ".mean(axis=-1, keepdims=True)"
WRONG = {
    "mlp_layer": {
        "… two linear layers are one": ("functional.gelu", ""),
        "… That is ReLU": ("gelu", "relu"),
        "… GELU stands between": (MLP, "return functional.gelu(self.linear2(self.linear1(x)))"),
        "… The block adds x": ("return self", "return x + self"),
    },
    "norm_sizes": {"… `std` subtracts the mean": lambda x: x.std(axis=-1)},
    "norm_outputs": {"only the mean subtracted": {"[100, 102]": [99, 101]}},
    "norm_each_token": {
        "… The mean and the deviation are": ("axis=-1, keepdims=True", ""),
        "… That is batch normalisation": ("axis=-1, keepdims=True", "axis=0"),
        "… The mean of each token must stay in": (", keepdims=True", ""),
        "… look at keepdims": (MEAN, ".mean(axis=-1)", "(centred * centred).mean", "x.var"),
        "… divide by d, not": (VARIANCE, "x.var(axis=-1, ddof=1, keepdims=True)"),
    },
    "norm_layer": {
        "… Make each a Parameter in __init__;": ("Parameter(", "("),
        "… PyTorch's names; ours are gamma and": ("gamma", "weight", "beta", "bias"),
        "… gamma multiplies, so": ("np.ones", "np.zeros"),
        "… by the root of the variance": (".sqrt()", ""),
        "… not by d - 1": (VARIANCE, f"{VARIANCE} * (x.shape[-1] / (x.shape[-1] - 1))"),
        "… First times gamma": (
            f"{NORMED} * self.gamma + self.beta",
            f"({NORMED} + self.beta) * self.gamma",
        ),
        "… keep it a tensor": ("(variance +", "(type(x)(variance.data) +"),
        "… The mean is treated": ("x - x.mean", "x - x.data.mean"),
        "… forward does not use": (" * self.gamma + self.beta", ""),
    },
    "norm_rms": {
        "… No mean is subtracted here.": ("    r = np", f"    x = x - x{MEAN}\n    r = np"),
        "… No gradient at all": ("(g - y", "0 * (g - y"),
        "… r is treated as a constant, but": (f"(g - y * (g * y){MEAN})", "g"),
        "… The mean of g y, no sum": ("(g * y).mean", "(g * y).sum"),
        "… so no correction for it": ("(g - y", f"(g - g{MEAN} - y"),
        "… Divide the whole by r": (")) / r", "))"),
        "… and return a pair": ("return y, lambda", "return lambda"),
    },
}
