"""The weights of a model in a safetensors file (`tinytorch.files.safetensors`)."""

import numpy as np

from tinytorch.core.module import Module
from tinytorch.files.atomic_files import StrPath
from tinytorch.files.safetensors import load_safetensors as load_safetensors
from tinytorch.files.safetensors import save_safetensors as save_safetensors


def save_weights(path: StrPath, model: Module, metadata: dict[str, str] | None = None) -> None:
    """Write the parameters of a model, each under its name in `model.named_parameters()`.

    Args:
        path: the file; an old one is replaced only when the new one is complete.
        model: any `Module`; a shared parameter is written once.
        metadata: strings to store with the weights, such as the model's sizes.

    Raises:
        TypeError: the metadata are not strings.

    Example:
        >>> import pathlib, tempfile
        >>> from tinytorch import Linear
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "linear.safetensors"
        >>> save_weights(path, Linear(3, 2, rng=0))
        >>> sorted(load_safetensors(path)[0])
        ['bias', 'weight']
    """
    save_safetensors(path, {name: p.data for name, p in model.named_parameters()}, metadata)


def load_weights(path: StrPath, model: Module, prefix: str = "") -> dict[str, str]:
    """Copy the weights of a file into the parameters of the same names, all or none.

    Args:
        path: the file.
        model: a model with exactly the file's names and shapes; it keeps its own dtype. Its other
            options, the number of heads for instance, are not compared: the file has none.
        prefix: how the names in the file begin; tensors with other names are skipped.
            The weights in a checkpoint of `Trainer` begin with "model.".

    Returns:
        The metadata of the file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, names or shapes differ (all are listed), or a tensor has
            integers where the model has floats; the model is unchanged.

    Example:
        >>> import pathlib, tempfile
        >>> from tinytorch import Linear
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "linear.safetensors"
        >>> save_weights(path, Linear(3, 2, rng=0), {"made by": "seed 0"})
        >>> other = Linear(3, 2, rng=1)
        >>> load_weights(path, other)
        {'made by': 'seed 0'}
        >>> bool((other.weight.data == Linear(3, 2, rng=0).weight.data).all())
        True
    """
    tensors, metadata = load_safetensors(path)
    try:
        weights, own = without_prefix(tensors, prefix), dict(model.named_parameters())
        for name, array in weights.items():
            if array.dtype.kind != "f" and not (name in own and own[name].dtype == array.dtype):
                raise ValueError(f"weights are floats, but {name} is of {array.dtype}")
        model.load_state_dict(weights)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return metadata


def without_prefix(tensors: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The tensors whose names begin with a prefix, under the rest of their names."""
    return {n.removeprefix(prefix): a for n, a in tensors.items() if n.startswith(prefix)}
