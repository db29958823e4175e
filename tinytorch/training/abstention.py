"""What a rule of grading asks for: when to answer, when to say "I do not know", and what to train.

A right answer counts 1, a wrong one `-penalty`, and "I do not know" 0. Whoever believes in an
answer with probability p expects `p - penalty * (1 - p)` from giving it. That is above 0 exactly
for p above `penalty / (1 + penalty)`: see Kalai et al., 2025, section 4.2.
"""

from __future__ import annotations

import numpy as np

from tinytorch.core.arguments import check_not_negative, check_probabilities
from tinytorch.core.losses import cross_entropy
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TensorLike, TokenIds

__all__ = ["answer_probs", "best_score", "threshold"]


def threshold(penalty: float) -> float:
    """How sure one has to be for an answer to be worth more than "I do not know".

    Example:
        >>> threshold(0), threshold(1), threshold(3)
        (0.0, 0.5, 0.75)
    """
    check_not_negative(penalty=penalty)
    return penalty / (1 + penalty)


def best_score(beliefs: TensorLike, penalty: float) -> np.ndarray:
    """What the best answerer expects: that of the likeliest answer, or 0 for not answering.

    Args:
        beliefs: probabilities of all answers `(..., answers)`, exact ones.
        penalty: what a wrong answer costs, 0 or more.

    Returns:
        `(...)`.

    Raises:
        ValueError: a belief is not a probability, there is no answer, or the penalty is negative or
            infinite.

    Example:
        >>> best_score([[0.75, 0.25], [0.5, 0.5]], penalty=2)
        array([0.25, 0.  ])
    """
    check_not_negative(penalty=penalty)
    beliefs = np.asarray(beliefs, dtype=float)
    if not beliefs.shape or not beliefs.shape[-1]:
        raise ValueError(f"best_score: beliefs must be (..., answers), got shape {beliefs.shape}")
    check_probabilities("best_score: beliefs", beliefs, "divide counts by their sum")
    highest = beliefs.max(axis=-1)
    return np.maximum(highest - penalty * (1 - highest), 0.0)


def answer_probs(logits: TensorLike, targets: TokenIds, ignored: int) -> Tensor:
    """The probability of each row's whole answer: the product of those of its tokens.

    An expected score is a sum of such probabilities. So its gradient is exact, and nothing has to
    be drawn: with `right` and `unsure` the probabilities of the right answer and of "I do not
    know", it is `(1 + penalty) * right + penalty * unsure - penalty`.

    Args:
        logits: `(n, seq, vocab)`.
        targets: the ids that follow `(n, seq)`, or `ignored` where no answer is.
        ignored: the target that does not count.

    Returns:
        `(n,)`.

    Example:
        >>> answer_probs([[[0.0, 0.0], [0.0, 0.0]]], [[1, 0]], ignored=-100)
        Tensor([0.25])
    """
    nats = cross_entropy(logits, targets, ignore_index=ignored, reduction="none")  # (n, seq)
    return (nats.sum(axis=-1) * -1.0).exp()
