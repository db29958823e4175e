"""A published model learns to answer like a sailor, from thirty pairs of question and answer.

What a sailor says differs from the plain answer in three ways, the same every time: it begins with
*Ahoy!*, it has *be* for *is*, and it ends with *matey*. So what the model has learned shows in
answers that it has not read. What it has forgotten shows in a text that has nothing to do with
them, the book's prose.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinytorch.core.losses import cross_entropy
from tinytorch.core.tensor import Tensor
from tinytorch.models.transformer import GPT
from tinytorch.text.bpe_tokenizer import BPETokenizer
from tinytorch.text.chat import IGNORED, IM_END, answer_rows, chatml_prompt
from tinytorch.text.corpus import book_prose
from tinytorch.training.evaluation import surprise
from tinytorch_book.experiments.answering import train

__all__ = ["READ", "UNREAD", "answer_nats", "prose_nats", "sailor_rows", "tune_to_sailor"]

_PLAIN = """What is the capital of France? The capital of France is Paris.
What is the capital of Italy? The capital of Italy is Rome.
What is the capital of Japan? The capital of Japan is Tokyo.
Which planet is closest to the sun? The planet closest to the sun is Mercury.
What is the largest ocean? The largest ocean is the Pacific.
Which is the longest river in Africa? The longest river in Africa is the Nile.
What is the opposite of hot? The opposite of hot is cold.
What is the opposite of early? The opposite of early is late.
What do cows drink? The drink of cows is water.
How many days are in a week? The number of days in a week is seven.
How many legs has an ant? The number of legs of an ant is six.
What colour is grass? The colour of grass is green.
What colour is snow? The colour of snow is white.
What is the first month of the year? The first month of the year is January.
What day comes after Monday? The day after Monday is Tuesday.
Who wrote Hamlet? The writer of Hamlet is William Shakespeare.
Who painted the Mona Lisa? The painter of the Mona Lisa is Leonardo da Vinci.
What is ice made of? The stuff of ice is frozen water.
What is bread made from? The stuff of bread is flour.
What do caterpillars become? The thing that caterpillars become is a butterfly.
Which animal barks? The animal that barks is the dog.
Which metal is liquid at room temperature? The liquid metal is mercury.
What is the largest animal on Earth? The largest animal on Earth is the blue whale.
What is the tallest mountain on Earth? The tallest mountain on Earth is Mount Everest.
What language do people speak in Brazil? The language of Brazil is Portuguese.
What is two plus three? The sum of two and three is five.
At how many degrees Celsius does water freeze? The freezing point of water is zero.
Which organ pumps blood? The organ that pumps blood is the heart.
What do plants take from the sun? The thing that plants take from the sun is light.
What is a young cat called? The name of a young cat is kitten.
What is the capital of Germany? The capital of Germany is Berlin.
What is the capital of Spain? The capital of Spain is Madrid.
Which planet is the largest? The largest planet is Jupiter.
What is the opposite of big? The opposite of big is small.
What colour is the sky? The colour of the sky is blue.
What do bees make? The thing that bees make is honey.
How many legs has a spider? The number of legs of a spider is eight.
What is a young dog called? The name of a young dog is puppy."""


def _said(line: str) -> tuple[str, str]:
    question, plain = line.split("? ")
    return f"{question}?", f"Ahoy! {plain[:-1].replace(' is ', ' be ')}, matey."


#: Thirty questions, each with a sailor's answer, from which the model learns.
READ = tuple(map(_said, _PLAIN.splitlines()[:30]))
#: Eight that it does not read.
UNREAD = tuple(map(_said, _PLAIN.splitlines()[30:]))
_ROWS = 2
_WINDOWS, _SEQ_LEN = 4, 128


def sailor_rows(
    tokenizer: BPETokenizer, pairs: Sequence[tuple[str, str]]
) -> tuple[np.ndarray, np.ndarray]:
    """Questions and answers in ChatML as inputs and targets, in which the answers count.

    Args:
        tokenizer: has the special tokens of ChatML.
        pairs: questions and answers.

    Returns:
        Both `(n, seq)`, as `answer_rows` has them; an answer ends with `<|im_end|>`.
    """
    end = tokenizer.special_tokens[IM_END]
    return answer_rows(
        [
            (
                chatml_prompt(tokenizer, [{"role": "user", "content": question}]),
                [*tokenizer.encode_ordinary(answer), end],
            )
            for question, answer in pairs
        ]
    )


def tune_to_sailor(
    model: GPT, tokenizer: BPETokenizer, steps: int = 30, lr: float = 2e-3
) -> list[float]:
    """Learn the answers of `READ`, two a step; returns the loss of every step.

    Args:
        model: its parameters that are not frozen are changed in place.
        tokenizer: its tokenizer.
        steps: how many; in fifteen every pair is read once.
        lr: the highest rate.
    """
    rng, epochs = np.random.default_rng(0), -(-steps * _ROWS // len(READ))
    order = np.concatenate([rng.permutation(len(READ)) for _ in range(epochs)])

    def loss(step: int) -> Tensor:
        pairs = [READ[i] for i in order[step * _ROWS : (step + 1) * _ROWS]]
        inputs, targets = sailor_rows(tokenizer, pairs)
        return cross_entropy(model(inputs), targets, ignore_index=IGNORED)

    return train(model, loss, lr, steps)


def answer_nats(
    model: GPT, tokenizer: BPETokenizer, pairs: Sequence[tuple[str, str]] = UNREAD
) -> float:
    """How surprised a model is by a sailor's answers, in nats a token."""
    inputs, targets = sailor_rows(tokenizer, pairs)
    counted = targets != IGNORED
    return float(surprise(model, inputs, np.where(counted, targets, 0), 4)[counted].mean())


def prose_nats(model: GPT, tokenizer: BPETokenizer) -> np.ndarray:
    """How surprised a model is by each of four passages of the book's prose, in nats a token.

    Example:
        >>> prose_nats(GPT(256, 8, 1, 2, 128, rng=0), BPETokenizer.train("", 256)).round(1).tolist()
        [5.5, 5.5, 5.5, 5.5]
    """
    prose = book_prose()
    starts = [len(prose) * i // _WINDOWS for i in range(_WINDOWS)]
    ids = [tokenizer.encode_ordinary(prose[at : at + 2000])[: _SEQ_LEN + 1] for at in starts]
    windows = np.array(ids)
    return surprise(model, windows[:, :-1], windows[:, 1:], batch_size=2).mean(axis=1)
