"""Where a model has its layers, for `lora` to put others there, and what `add_lora` refuses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tinytorch.core.arguments import check_number, check_sizes
from tinytorch.core.layers import Linear
from tinytorch.core.module import Module
from tinytorch.core.quantization import QuantizedLinear


class Place(NamedTuple):
    """Where a layer is: its path, an attribute's name, what holds it, and under which key."""

    path: str
    attribute: str
    holder: Any
    key: Any
    layer: Any

    def put(self, layer: Module) -> None:
        """Put another layer there."""
        if isinstance(self.holder, Module):
            setattr(self.holder, self.key, layer)
        else:
            self.holder[self.key] = layer


def places_of(model: Module, kind: type[Module]) -> Iterator[Place]:
    """Every layer of this kind in a model's attributes, and in lists and dictionaries there."""
    for path, owner in model.named_modules():
        for name, value in vars(owner).items():
            place = Place(f"{path}.{name}".lstrip("."), name, owner, name, value)
            yield from _inside(place, kind)


def _inside(place: Place, kind: type[Module]) -> Iterator[Place]:
    path, attribute, *_, value = place
    if isinstance(value, kind):
        yield place
    elif isinstance(value, (list, dict)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _inside(Place(f"{path}.{key}", attribute, value, key, part), kind)


# What is refused -----------------------------------------------------------------------------


def check_numbers(rank: int, alpha: float) -> None:
    """Raise unless the rank is a size and `alpha` a finite number greater than 0."""
    check_sizes(rank=rank)
    check_number(alpha, "alpha")
    if not 0 < alpha < math.inf:
        raise ValueError(f"alpha must be a finite number > 0, got {alpha}")


def check_targets(model: Module, targets: Sequence[str]) -> None:
    """Raise unless each target is the name of a `Linear` of the model."""
    names = sorted({place.attribute for place in places_of(model, Linear)})
    wrong = [target for target in targets if target not in names]
    if wrong or not targets:
        got = f"no Linear of {type(model).__name__} is called {', '.join(map(repr, wrong))}"
        allowed = f"its Linears are called {', '.join(names) or 'nothing: it has none'}"
        if any(places_of(model, QuantizedLinear)):
            allowed = "it is quantized; add LoRA to the model that quantize() was given"
        raise ValueError(f"add_lora: {got if wrong else 'no targets'}; {allowed}")


def check_fits(name: str, linear: Linear, rank: int) -> None:
    """Raise if the rank is greater than the smaller length of the weight."""
    if rank > (most := min(linear.weight.shape)):
        what = f"rank {rank} is too large for {name}, whose weight is {linear.weight.shape}"
        raise ValueError(f"{what}; at most {most} is possible")
