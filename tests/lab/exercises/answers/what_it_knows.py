"""Right and wrong answers to the exercises of "What it knows"."""

import numpy as np

from tinytorch import LayerNorm, Tensor, functional, no_grad
from tinytorch.inside.probes import LinearProbe
from tinytorch.inside.stream import logit_lens
from tinytorch_book.exercises.what_it_knows import _studied
from tinytorch_book.experiments.story_gpt import load_story_gpt, story_tokenizer
from tinytorch_book.experiments.what_it_learned import study_stories
from tinytorch_book.stories import StoryGrammar, hidden_values

from . import guesses

GUESSES = {
    "R² of the posterior itself": {0: "No error is left"},
    "R² of always saying the mean": {1: "always being right"},
    "selectivity, if the random targets of each place are read as well": {1: "not read at all"},
    "a new random target in every story is read as well": {True: "could hold"},
    "a probe on an untrained model reads nothing": {"False": "Without quotes"},
}


# The lens
def lens(stream, gamma, beta, table):
    x = stream - stream.mean(-1, keepdims=True)
    x = x / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma + beta
    logits = np.einsum("...d,vd->...v", x, table)
    high = logits.max(-1, keepdims=True)
    return logits - high - np.log(np.exp(logits - high).sum(-1, keepdims=True))


def lens_by_layers(stream, gamma, beta, table):
    norm = LayerNorm(len(gamma))
    norm.gamma.data, norm.beta.data = gamma, beta
    with no_grad():
        x = norm(Tensor(stream, dtype=np.float64))
        return functional.log_softmax(x @ Tensor(table.T, dtype=np.float64))


def log_softmax(x, table):
    return x @ table.T - np.logaddexp.reduce(x @ table.T, axis=-1, keepdims=True)


def lens_that_overflows(stream, gamma, beta, table):
    x = (stream - stream.mean(-1, keepdims=True)) / np.sqrt(stream.var(-1, keepdims=True) + 1e-5)
    logits = (x * gamma + beta) @ table.T
    return np.log(np.exp(logits) / np.exp(logits).sum(-1, keepdims=True))


# A probe that is too good
def first_part(rows):
    return rows[: 2 * len(rows) // 3]


def last_part(rows):
    return rows[2 * len(rows) // 3 :]


def every(rows):
    return rows


def r2(x, y):
    n = 2 * len(x) // 3
    left = y[n:] - LinearProbe(x[:n], y[:n], 0.03)(x[n:])
    return 1 - np.mean(left**2, axis=0).sum() / y[n:].var(axis=0).sum()


def r2_with(fit=first_part, tried=last_part, mean=lambda y: y.mean(axis=0), ridge=0.03):
    def wrong(x, y):
        probe = LinearProbe(fit(x), fit(y), ridge)
        x, y = tried(x), tried(y)
        return 1 - ((y - probe(x)) ** 2).sum() / ((y - mean(y)) ** 2).sum()

    return wrong


# A place never seen
FIRST = [story_tokenizer().encode(f" {a}")[0] for a in hidden_values(StoryGrammar(), "animal")]


OUTPUT = load_story_gpt().token_embedding.weight.data[FIRST].T  # (64, 12), of the model itself


def by_the_mlp(x, belief, new):
    model, stream = load_story_gpt(), Tensor(new)
    with no_grad():
        stream = stream + model.blocks[1].mlp(model.blocks[1].ln2(stream))
        return functional.softmax(model.ln_f(stream) @ OUTPUT)


GRAMMAR = StoryGrammar()  # has tables of its own, which are no story's


def by_the_mlp_and_the_grammar(x, belief, new):
    first = [story_tokenizer().encode(f" {a}")[0] for a in hidden_values(GRAMMAR, "animal")]
    block = load_story_gpt().blocks[1]
    with no_grad():
        stream = Tensor(new) + block.mlp(block.ln2(Tensor(new)))
        return functional.softmax(logit_lens(load_story_gpt(), stream.data)[:, first]).data


STAGE, BELIEFS = (array[::7].tolist() for array in _studied()[:2])  # some stories of every place


def by_the_nearest_story(x, belief, new):
    apart = ((new[:, None] - np.array(STAGE)) ** 2).sum(axis=-1)
    return np.array(BELIEFS)[apart.argmin(axis=1)]


RIGHT = {
    "inside_lens": [lens_by_layers],
    "inside_control": [r2],
    "inside_unseen": [by_the_mlp, by_the_mlp_and_the_grammar],
}
WRONG = {
    "inside_selective": guesses(GUESSES),
    "inside_lens": {
        "… last norm": lambda stream, gamma, beta, table: log_softmax(stream, table),
        "… largest logit": lens_that_overflows,
        "… Scale by gamma": lambda stream, gamma, beta, table: lens(stream, 1, 0, table),
        "… the logarithms": lambda *given: np.exp(lens(*given)),
        "… a log-softmax follows": lambda x, gamma, beta, table: (
            (
                (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma
                + beta
            )
            @ table.T
        ),
        "… the deviation too": lambda x, gamma, beta, table: log_softmax(
            (x - x.mean(-1, keepdims=True)) * gamma + beta, table
        ),
    },
    "inside_control": {
        "… the rows that it is tried on": r2_with(fit=every),
        "… not about 0": r2_with(mean=lambda y: 0),
        "… ridge is to be 0.03": r2_with(ridge=1e-4),
        "… mean of its own": r2_with(mean=np.mean),
        "… Which rows has the probe seen?": r2_with(fit=every, mean=lambda y: 0),
        "… The probe has seen": r2_with(fit=every, tried=every),
        "… fit it to the first two thirds": r2_with(fit=last_part),
        "… tried on all rows": r2_with(tried=every),
        "… 1 minus it": lambda x, y: 1 - r2(x, y),
        "… The ridge": r2_with(ridge=0.0),
    },
    "inside_unseen": {
        "… does not carry over": lambda x, belief, new: LinearProbe(x, belief, ridge=0.03)(new),
        "… nothing but x and belief": by_the_nearest_story,
        "reads other stories": lambda *given: study_stories(2) and by_the_mlp(*given),
    },
}
