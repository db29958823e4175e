"""JSON, read strictly: complete, in UTF-8, and without repeated names in an object."""

import json
from collections import Counter
from typing import Any


def parse_json(content: bytes, **options: Any) -> Any:
    """The value of a JSON text.

    Args:
        content: the text in UTF-8.
        options: passed on to `json.loads`, for instance `parse_int=`.

    Raises:
        ValueError: it is not UTF-8 or not JSON, is nested too deeply, or has a name twice, which
            would be ambiguous.

    Example:
        >>> parse_json(b'{"size": 1, "size": 2}')
        Traceback (most recent call last):
        ...
        ValueError: it has the name 'size' twice
    """
    try:
        return json.loads(content.decode(), object_pairs_hook=_without_repetition, **options)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is incomplete or not JSON: {error}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"it has the name {name!r:.80} twice")
    return result
