"""What a type checker knows of a model: `make check` has mypy read this file.

Each comment stands where it must find that error; mypy reports one that it does not need.
"""

from typing import TYPE_CHECKING

from tinytorch import GPT, Linear, Tensor

if TYPE_CHECKING:
    model, layer = GPT(5, 8, 1, 2), Linear(3, 2)
    logits: Tensor = model([[1, 2]])
    wrong: int = layer(logits)  # type: ignore[assignment]
    layer(logits).summ()  # type: ignore[attr-defined]
    ids: Tensor = model.generate([1, 2], 5, temperature=0.5, top_k=3, stop_tokens=[0], rng=0)
    model.generate([1, 2], 5, tempratur=1)  # type: ignore[call-arg]
    model.generate([1, 2], 5, temperature="hot")  # type: ignore[arg-type]
