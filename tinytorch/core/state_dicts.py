"""Restoring saved arrays strictly: all of them or none, and every mismatch named."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinytorch.core.types import TensorLike


def restore(own: Mapping[str, np.ndarray], saved: Mapping[str, TensorLike], who: str) -> None:
    """Copy saved arrays into those of the same names, converting to their dtype."""
    arrays = {name: np.asarray(array) for name, array in saved.items()}
    problems = [f"missing: {name} {own[name].shape}" for name in own if name not in arrays]
    problems += [f"unexpected: {name} {arrays[name].shape}" for name in arrays if name not in own]
    for name in (name for name in own if name in arrays):
        mine, other = own[name], arrays[name]
        if other.shape != mine.shape:
            problems.append(f"shape of {name}: expected {mine.shape}, got {other.shape}")
        elif not np.can_cast(other.dtype, mine.dtype, casting="same_kind"):
            problems.append(f"dtype of {name}: expected {mine.dtype}, got {other.dtype}")
    if problems:
        raise ValueError(f"load_state_dict: {who} does not match:\n  " + "\n  ".join(problems))
    for name, target in own.items():
        target[...] = arrays[name]
