"""Checks for the chapter "Your GPT"."""

from typing import Any

import numpy as np

from tinytorch.check.report import Cases, case, cases, exercise

__all__ = ["capstone_faults", "capstone_share"]


# The part at fault ---------------------------------------------------------------------------


def _faults(parts: dict[str, Any], agrees: Any) -> list[str]:
    return [name for name in parts if not agrees({name: parts[name]})]


def _left_out(parts: dict[str, Any], agrees: Any) -> list[str]:
    return [n for n in parts if agrees({k: v for k, v in parts.items() if k != n})]


def _run_faults(answer: Any, good: tuple[str, ...], bad: tuple[str, ...]) -> Any:
    parts = {name: name in good for name in sorted((*good, *bad))}
    return list(answer(parts, lambda chosen: all(chosen.values())))


_WRONG_FAULTS = [
    (_left_out, "With two at fault, leaving out one still disagrees: put them in one by one."),
    (lambda parts, agrees: _faults(parts, agrees)[:1], "There may be several."),
    (lambda parts, agrees: [n for n in parts if agrees({n: parts[n]})], "Those are the good ones."),
]


@exercise(2, _WRONG_FAULTS, reference=_faults, run=_run_faults)
def capstone_faults(answer: Any) -> Cases:
    """Check the names of all parts that do not agree, in their order.

    Args:
        answer: `answer(parts, agrees)`; `agrees(some)` tells whether a GPT with these parts of
            the reader's, and ours elsewhere, agrees with ours.

    Example:
        >>> bool(
        ...     capstone_faults(
        ...         lambda parts, agrees: [n for n in parts if not agrees({n: parts[n]})]
        ...     )
        ... )
        True
    """
    hint = "Make a GPT with one of the parts and all others ours; do so for each."
    yield from cases(answer, {
        "one of three": (hint, ("heads", "norm"), ("block",)),
        "none of two": ("Then the list is empty.", ("heads", "norm"), ()),
        "two of four": (hint, ("loss", "mlp"), ("heads", "norm")),
        "all of three": (hint, (), ("block", "heads", "norm")),
        "the only one": (hint, (), ("norm",)),
    })  # fmt: skip


# How near to the floor -----------------------------------------------------------------------


def _share(losses: Any, floor: float) -> Any:
    return (losses[0] - losses) / (losses[0] - floor)


_WRONG_SHARES = [
    (lambda losses, floor: losses / losses[0], "The floor counts as zero, not a loss of 0."),
    (
        lambda losses, floor: (losses[0] - losses) / losses[0],
        "The way ends at the floor, not at 0.",
    ),
    (lambda losses, floor: 100 * _share(losses, floor), "A fraction, not a percentage."),
    (lambda losses, floor: 1 - _share(losses, floor), "That is the share that is left."),
]


@exercise(1, _WRONG_SHARES, reference=_share)
def capstone_share(answer: Any) -> Cases:
    """Check which share of the way from the first loss to the floor each loss has come.

    Example:
        >>> bool(capstone_share(_share))
        True
    """
    hint = "What has been gained since the first loss, divided by all that could be gained."
    for losses, floor in (([4.0, 3.0, 2.0], 2.0), ([6.4, 0.9, 0.5, 0.6], 0.119), ([2.0, 5.0], 1.0)):
        claim = f"{len(losses)} losses above a floor of {floor:g}"
        yield case(claim, answer, np.array(losses), floor, hint=hint)
