"""Six tokens on their way through a model, with numbers chosen by hand so that one can read them.

The sentence is "Anna feeds dogs because they bark". A token's vector has six numbers. Four say
whether it is a thing, a plural, an action and a link, two its position as the hand of a clock with
six hours: how far it points right, and how far up. Nothing was trained, and the layers are without
norms, so that every number can be traced by hand.
"""

import numpy as np

from tinytorch.core.functional import softmax
from tinytorch.core.masks import causal_mask

__all__ = ["FEATURES", "HEADS", "IDS", "MLP", "OUTPUT", "POSITIONS", "TABLE", "VOCABULARY"]
__all__ += ["WORDS", "journey"]

#: The six tokens of the sentence.
WORDS = ["Anna", "feeds", "dogs", "because", "they", "bark"]
#: The words in alphabetical order.
VOCABULARY = sorted(WORDS)
#: The place of each word of the sentence in the vocabulary.
IDS = [VOCABULARY.index(word) for word in WORDS]
#: What the six numbers of a vector say.
FEATURES = ["thing", "plural", "action", "link", "x", "y"]

#: A row for each word of the vocabulary: Anna, bark, because, dogs, feeds, they.
TABLE = np.array(
    [
        [1, 0, 0, 0, 0, 0],
        [0, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
    ],
    dtype=float,
)

_HOURS = 2 * np.pi / 6 * np.arange(6)
#: A row for each position: zeros, and a hand that starts at the top and turns clockwise.
POSITIONS = np.stack([*np.zeros((4, 6)), np.sin(_HOURS), np.cos(_HOURS)], axis=1)

_BACK = np.array([[np.cos(_HOURS[1]), np.sin(_HOURS[1])], [-np.sin(_HOURS[1]), np.cos(_HOURS[1])]])


def _matrix(numbers: object, row: int = 0) -> np.ndarray:
    """Place numbers in a (6, 4) matrix of zeros, from a row on."""
    small = np.asarray(numbers, dtype=float)
    matrix = np.zeros((6, 4))
    matrix[row : row + len(small), : small.shape[1]] = small
    return matrix


#: For each head its matrices for queries, keys and values, (6, 4) each.
HEADS = [
    (  # looks for what a token is about
        _matrix([[0, 0, 4, 0], [4, 4, 0, 0], [4, 0, 0, 0], [0, 0, 4, 0]]),
        _matrix(np.diag([1, 1, 1, 0])),  # a link has nothing to be found by,
        _matrix(np.diag([1, 1, 1, 0])),  # and nothing to hand over
    ),
    (  # looks one hour back
        _matrix(16 * _BACK, row=4),
        _matrix(np.eye(2), row=4),
        _matrix([[0, 0, 0, 1]], row=2),  # and takes whether an action stood there
    ),
]

#: From both heads' values, (8,), to what attention adds to the stream, (6,).
OUTPUT = np.zeros((8, 6))
OUTPUT[:4, :4] = np.eye(4)
OUTPUT[7, 2] = 1

#: The MLP: what its four cells look for, from which value on, and what each of them adds.
MLP = (
    np.array(  # a thing without action, an action without plural, both of these, a link
        [[1, 0, 0, 0], [0, -1, 1, 0], [-2, 1, 1, 0], [0, -1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    ),
    np.array([0, 0, -2, 0]),
    np.array(
        [[-2, -1, 4, 0, 0, 0], [2, 2, -3, 0, 0, 0], [-2, -2, -2, 4, 0, 0], [-2, 4, -3, -3, 0, 0]]
    ),
)


def journey() -> dict[str, np.ndarray]:
    """Take the six tokens from their ids to the forecast of the next one.

    Returns:
        `looked up` and `placed` (6 tokens, 6 numbers), `weights` (2 heads, 6, 6), `attention` and
        `mlp`: what each adds (6, 6), `stream` after them (6, 6), and `forecast` (6, 6): after each
        token, the probability of each word of the vocabulary.

    Example:
        >>> forecast = journey()["forecast"]
        >>> [VOCABULARY[i] for i in forecast.argmax(axis=1)]
        ['feeds', 'dogs', 'because', 'they', 'bark', 'because']
    """
    looked_up = TABLE[IDS]
    placed = looked_up + POSITIONS
    weights, values = [], []
    for query, key, value in HEADS:
        scores = (placed @ query) @ (placed @ key).T / np.sqrt(4)
        weights.append(softmax(scores + causal_mask(6)).numpy())
        values.append(weights[-1] @ (placed @ value))
    attention = np.hstack(values) @ OUTPUT
    seek, start, add = MLP
    mlp = np.maximum((placed + attention) @ seek + start, 0) @ add
    stream = placed + attention + mlp
    return {
        "looked up": looked_up,
        "placed": placed,
        "weights": np.array(weights),
        "attention": attention,
        "mlp": mlp,
        "stream": stream,
        "forecast": softmax(stream @ TABLE.T).numpy(),
    }
