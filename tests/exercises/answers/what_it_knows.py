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
def lens_by_layers(stream, gamma, beta, table):
    norm = LayerNorm(len(gamma))
    norm.gamma.data, norm.beta.data = gamma, beta
    with no_grad():
        x = norm(Tensor(stream, dtype=np.float64))
        return functional.log_softmax(x @ Tensor(table.T, dtype=np.float64))


def log_softmax(x, table):
    return x @ table.T - np.logaddexp.reduce(x @ table.T, axis=-1, keepdims=True)


# A probe that is too good
def r2(x, y):
    n = 2 * len(x) // 3
    left = y[n:] - LinearProbe(x[:n], y[:n], 0.03)(x[n:])
    return 1 - np.mean(left**2, axis=0).sum() / y[n:].var(axis=0).sum()


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
        "… largest logit": ("logits = logits - logits.max(axis=-1, keepdims=True)", ""),
        "… Scale by gamma": (" * gamma + beta", ""),
        "… the logarithms": ("return logits - np.log(", "return np.exp(logits) / ("),
        "… a log-softmax follows": (
            "    logits = logits - logits.max(axis=-1, keepdims=True)\n",
            "",
            " - np.log(np.exp(logits).sum(axis=-1, keepdims=True))",
            "",
        ),
        "… the deviation too": (" / np.sqrt(variance + 1e-5)", ""),
    },
    "inside_control": {
        "… the rows that it is tried on": ("x[:fit], y[:fit]", "x, y"),
        "… not about 0": (" - y[fit:].mean(axis=0)", ""),
        "… ridge is to be 0.03": ("0.03", "1e-4"),
        "… mean of its own": ("mean(axis=0)", "mean()"),
        "… Which rows has the probe seen?": (
            "x[:fit], y[:fit]",
            "x, y",
            " - y[fit:].mean(axis=0)",
            "",
        ),
        "… The probe has seen": ("x[:fit], y[:fit]", "x, y", "[fit:]", ""),
        "… fit it to the first two thirds": ("[:fit]", "[fit:]"),
        "… tried on all rows": ("[fit:]", ""),
        "… 1 minus it": ("return 1 - ", "return "),
        "… The ridge": ("0.03", "0.0"),
    },
    "inside_unseen": {
        "… does not carry over": lambda x, belief, new: LinearProbe(x, belief, ridge=0.03)(new),
        "… nothing but x and belief": by_the_nearest_story,
        "reads other stories": lambda *given: study_stories(2) and by_the_mlp(*given),
    },
}
