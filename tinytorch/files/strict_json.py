"""JSON, read strictly: complete, and without repeated names in an object."""

import json
import math
from collections import Counter
from typing import Any

from tinytorch.files.byte_order_marks import decode_marked

_MOST_COMMAS = 2_000_000  # twice those of the largest published tokenizers


def parse_json(content: bytes, **options: Any) -> Any:
    """The value of a JSON text.

    Example:
        >>> parse_json(b'{"size": 1, "size": 2}')
        Traceback (most recent call last):
        ...
        ValueError: it has the name 'size' twice
    """
    check_commas(content)
    try:
        text, rules = decode_marked(content), {"parse_constant": _refuse, "parse_float": _finite}
        return json.loads(text, object_pairs_hook=_without_repetition, **{**rules, **options})
    except json.JSONDecodeError as error:
        raise ValueError(f"it is incomplete or not JSON: {error}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"it has {constant}, which is no number in JSON")


def _finite(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise ValueError(f"it has the number {digits:.20}, which is too large")
    return number


def check_commas(content: bytes) -> None:
    """Raise if a JSON text has so many values that parsing it would take too long."""
    if (commas := content.count(b",")) > _MOST_COMMAS:
        raise ValueError(f"the JSON has {commas:,} commas; at most {_MOST_COMMAS:,} are read")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"it has the name {name!r:.80} twice")
    return result
