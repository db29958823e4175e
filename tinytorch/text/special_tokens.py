"""The names of special tokens, such as `<|endoftext|>`: checked, and found in a text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from tinytorch.text.token_ids import check_text


def checked_names(names: Iterable[str], what: str = "special_tokens") -> list[str]:
    """The names of special tokens as a list."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"{what} is a list of names such as ['<|end|>'], got {names!r}")
    checked = list(names)
    for name in checked:
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of a special token is one character or more, got {name!r}")
        if checked.count(name) > 1:
            raise ValueError(f"the special token {name!r} is named twice")
        check_text(name)
    return checked


def any_of(names: Collection[str]) -> re.Pattern[str]:
    """A pattern that finds any of the names, the longest first; with no names it finds nothing."""
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) if names else r"(?!)")
