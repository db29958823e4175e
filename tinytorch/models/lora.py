"""LoRA: adapt a trained model with a few numbers beside its weights.

Every chosen `Linear` keeps its weight W as it is and gets two thin matrices beside it, A `(in,
rank)` and B `(rank, out)`: it computes `x W + (alpha / rank) (x A) B`. Only A and B learn (Hu et
al., 2021, section 4.1). B begins with zeros, so at first nothing changes; at the end the product
can be added to W, and no extra parameters remain.

    add_lora(model, rank=4)
    Trainer(model, batches).run(200)                         # moves A and B alone
    save_safetensors("adapted.safetensors", lora_state_dict(model))
    merge_lora(model)                                        # a plain model again, adapted
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.array_forms import Reader, reader, reader_of
from tinytorch.core.kernels import dot
from tinytorch.core.layers import Linear
from tinytorch.core.module import Module, Parameter
from tinytorch.core.quantization import Constant
from tinytorch.core.seeding import default_rng
from tinytorch.core.state_dicts import restore
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import Rng, TensorLike
from tinytorch.models.lora_places import Place, check_fits, check_numbers, check_targets, places_of

__all__ = [
    "ATTENTION",
    "EVERY_LINEAR",
    "LoRALinear",
    "add_lora",
    "load_lora_state_dict",
    "lora_state_dict",
    "merge_lora",
]

#: The layers that Hu et al. adapt, section 4.2: those that make the queries and the values.
ATTENTION = ("q_proj", "v_proj")
#: Every `Linear` of a `TransformerBlock` with attention and `MLP`; of a `SwiGLU` all but the gate.
EVERY_LINEAR = ("q_proj", "k_proj", "v_proj", "out_proj", "linear1", "linear2")


class LoRALinear(Module):
    """A `Linear` that stays as it is, and a product of two thin matrices added to it.

    `x W + b + scale (x A) B`, with `scale = alpha / rank`, so that the size of a step depends
    little on the rank (Hu et al., 2021, section 4.1).

    Args:
        linear: the layer; its parameters no longer require a gradient.
        rank: width r of the product, at most the smaller of the two lengths of the weight.
        alpha: the strength of the product, a number greater than 0.
        rng: where A comes from.

    Attributes:
        linear: as given, frozen.
        A: `(in_features, rank)`, normal with variance `1 / in_features` at the start.
        B: `(rank, out_features)`, zeros at the start.
        rank: as given; `alpha` likewise.

    Raises:
        TypeError: the layer is not a `Linear`, or a number is of the wrong type.
        ValueError: the rank is not in `1 .. min(in_features, out_features)`, or alpha not positive.

    Example:
        >>> layer, x = Linear(6, 4, rng=0), np.ones((2, 6))
        >>> adapted = LoRALinear(layer, rank=2, rng=0)
        >>> bool((adapted(x).data == layer(x).data).all())  # B is zero
        True
        >>> [(name, p.shape) for name, p in adapted.named_parameters() if p.requires_grad]
        [('A', (6, 2)), ('B', (2, 4))]
    """

    def __init__(self, linear: Linear, rank: int, alpha: float = 16.0, rng: Rng = None) -> None:
        if not isinstance(linear, Linear):
            raise TypeError(f"LoRALinear wraps a Linear, got {type(linear).__name__}")
        check_numbers(rank, alpha)
        rows, columns = linear.weight.shape
        check_fits("this Linear", linear, rank)
        self.linear, self.rank, self.alpha = linear, rank, alpha
        dtype = linear.weight.dtype
        start = default_rng(rng).normal(0.0, 1 / math.sqrt(rows), size=(rows, rank))
        self.A = Parameter(start, dtype=dtype)
        self.B = Parameter(np.zeros((rank, columns)), dtype=dtype)
        _freeze(linear)

    @property
    def scale(self) -> float:
        """What the product is multiplied by, `alpha / rank`."""
        return float(self.alpha / self.rank)  # a NumPy number would widen what it multiplies

    def forward(self, x: TensorLike) -> Tensor:
        """Map `(..., in_features)` to `(..., out_features)`."""
        thin = functional.linear(x, self.A)  # (..., rank)
        return self.linear(x) + functional.linear(thin, self.B) * self.scale

    def difference(self) -> np.ndarray:
        """What is added to the weight, `scale A B`, `(in_features, out_features)`."""
        return self.scale * (self.A.data @ self.B.data)


@reader_of(LoRALinear.forward)
def _read_lora(part: LoRALinear) -> Reader:
    """A `LoRALinear` on arrays, for generating token by token."""
    base = reader(part.linear)
    return lambda x: base(x) + float(part.scale) * dot(dot(x, part.A.data), part.B.data)


def add_lora(
    model: Module,
    rank: int,
    alpha: float = 16.0,
    targets: Sequence[str] = ATTENTION,
    rng: Rng = None,
) -> Module:
    """Freeze a model and replace every `Linear` with a chosen name by a `LoRALinear`.

    Args:
        model: changed in place.
        rank: width of the products.
        alpha: how much they count; see `LoRALinear`.
        targets: names of attributes that hold a `Linear`, or a list or dictionary with some in it:
            `ATTENTION`, `EVERY_LINEAR`, or others; `"layers"` in a `Sequential`.
        rng: where the matrices A come from.

    Returns:
        The model. `model.trainable_parameters()` are now the matrices A and B.

    Raises:
        ValueError: a name that no `Linear` of the model has, no names, LoRA in the model already,
            or a rank or alpha that `LoRALinear` refuses; the model is unchanged.
        TypeError: the targets are one string, or a number is of the wrong type.

    Example:
        >>> from tinytorch import GPT
        >>> model = add_lora(GPT(65, 64, 2, 4, max_seq_len=32, rng=0), rank=2, rng=0)
        >>> sum(p.size for p in model.trainable_parameters())  # 2 layers, 2 weights
        1024
    """
    if isinstance(targets, str):
        raise TypeError(f"targets is a sequence of names, got one string; write [{targets!r}]")
    if any(places_of(model, LoRALinear)):
        raise ValueError("add_lora: the model has LoRA already; merge_lora(model) first")
    check_numbers(rank, alpha)
    check_targets(model, targets)
    places = [place for place in places_of(model, Linear) if place.attribute in targets]
    for place in places:
        check_fits(place.path, place.layer, rank)
    vars(model)[_FROZEN] = [name for name, p in model.named_parameters() if not p.requires_grad]
    _freeze(model)
    generator, made = default_rng(rng), {}
    for place in places:
        linear = place.layer
        if id(linear) not in made:  # a layer used twice is adapted once
            made[id(linear)] = LoRALinear(linear, rank, alpha, generator).train(linear._training)
        place.put(made[id(linear)])
    return model


def merge_lora(model: Module) -> Module:
    """Add every product to the weight beside it, and train again what was trained before.

    The merged model computes the same up to rounding, at the cost of the original, and its
    parameters have their old names: its checkpoint is that of a plain model.

    Args:
        model: changed in place.

    Returns:
        The model. Its parameters require a gradient, except those frozen before `add_lora`.

    Raises:
        ValueError: there is no LoRA in the model, it lies on quantized weights, or `add_lora` was
            given a larger model, which this is a part of; the model is unchanged.

    Example:
        >>> from tinytorch import GPT
        >>> plain = GPT(65, 64, 2, 4, max_seq_len=32, rng=0)
        >>> names = list(plain.state_dict())
        >>> list(merge_lora(add_lora(plain, rank=2)).state_dict()) == names
        True
    """
    places = _layers(model)
    for place in places:
        if isinstance(place.layer.linear.weight, Constant):
            remedy = "merge the float32 model, then quantize that"
            raise ValueError(f"merge_lora: {place.path} is quantized; {remedy}")
    adapted = [part for _, part in model.named_modules() if _FROZEN in vars(part)]
    if not adapted:
        what = f"this {type(model).__name__} is a part of the model that add_lora was given"
        raise ValueError(f"merge_lora: {what}; merge that model")
    for layer in {id(place.layer): place.layer for place in places}.values():
        layer.linear.weight.data = layer.linear.weight.data + layer.difference()
    for place in places:
        place.put(place.layer.linear)
    for part in adapted:
        frozen = vars(part).pop(_FROZEN)
        for name, parameter in part.named_parameters():
            if not isinstance(parameter, Constant):
                parameter.requires_grad = name not in frozen
    return model


# Only the difference ---------------------------------------------------------------------------


def lora_state_dict(model: Module) -> dict[str, np.ndarray]:
    """A copy of the matrices A and B by name, all that training has changed, and of each alpha.

    `save_safetensors` writes it to a file, a small one.

    Raises:
        ValueError: there is no LoRA in the model, or it has other parameters that are trained.

    Example:
        >>> from tinytorch import GPT
        >>> model = GPT(65, 64, 1, 4, max_seq_len=32, rng=0)
        >>> for name, array in lora_state_dict(add_lora(model, 2, targets=["q_proj"])).items():
        ...     print(name, array.shape)
        blocks.0.attention.q_proj.A (64, 2)
        blocks.0.attention.q_proj.B (2, 64)
        blocks.0.attention.q_proj.alpha ()
    """
    difference = _difference(model)
    if more := [n for n, p in model.named_parameters() if p.requires_grad and n not in difference]:
        what = f"lora_state_dict: {more[0]} is trained as well, but is not part of the LoRA"
        remedy = "freeze it before training, or save the whole model with save_weights"
        raise ValueError(f"{what}; {remedy}")
    return {name: np.array(array) for name, array in difference.items()}


def load_lora_state_dict(model: Module, state: Mapping[str, np.ndarray]) -> None:
    """Load the matrices A and B that `lora_state_dict` returned: all of them, or none.

    Args:
        model: a model whose `add_lora` had the same targets, rank and alpha.
        state: the matrices by name.

    Raises:
        ValueError: there is no LoRA in the model, or its rank, alpha, targets or shapes differ; all
            differences are listed, and the model is unchanged.

    Example:
        >>> from tinytorch import GPT
        >>> two, four = (add_lora(GPT(65, 64, 1, 4, 32, rng=0), rank) for rank in (2, 4))
        >>> load_lora_state_dict(two, lora_state_dict(four))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: the LoRA was saved with rank 4, this model has rank 2; use ...
    """
    own, lines = _difference(model), []
    if set(own) == set(state):
        for what, of in (("rank", _ranks), ("alpha", _alphas)):
            here, saved = of(own), of(state)
            if here != saved:
                told = f"the LoRA was saved with {what} {saved}, this model has {what} {here}"
                lines.append(f"{told}; use add_lora(..., {what}={saved})")
    try:
        restore({n: np.array(a) for n, a in own.items()}, state, "LoRA")  # into a copy, as a trial
    except ValueError as error:
        lines.append(str(error))
    if lines:
        raise ValueError("\n".join(lines))
    for place in _layers(model):
        for letter, parameter in (("A", place.layer.A), ("B", place.layer.B)):
            parameter.data[...] = state[f"{place.path}.{letter}"]
            parameter.mark_changed()


# Helpers -------------------------------------------------------------------------------------

_FROZEN = "_frozen_before_lora"  # an attribute of what add_lora was given: names of parameters


def _layers(model: Module) -> list[Place]:
    """Every LoRA layer of a model, of which there must be at least one."""
    found = list(places_of(model, LoRALinear))
    if not found:
        raise ValueError(f"{type(model).__name__} has no LoRA; add_lora(model, rank=4) comes first")
    return found


def _difference(model: Module) -> dict[str, np.ndarray]:
    """The arrays of A, B and alpha, by name."""
    parts: dict[str, Any] = {}
    for path, *_, layer in _layers(model):
        alpha = np.float64(layer.alpha)
        parts |= {f"{path}.A": layer.A.data, f"{path}.B": layer.B.data, f"{path}.alpha": alpha}
    return parts


def _ranks(state: Mapping[str, np.ndarray]) -> str:
    """The ranks that occur in a state: a single one if `add_lora` made it."""
    return _each(np.shape(array)[-1] for name, array in state.items() if name.endswith(".A"))


def _alphas(state: Mapping[str, np.ndarray]) -> str:
    return _each(float(array) for name, array in state.items() if name.endswith(".alpha"))


def _each(values: Iterable[float]) -> str:
    return " and ".join(f"{value:g}" for value in sorted(set(values)))


def _freeze(module: Module) -> None:
    for parameter in module.parameters():
        parameter.requires_grad = False
        parameter.zero_grad()
