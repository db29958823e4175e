"""Right and wrong answers to the exercises of "What it knows"."""

import numpy as np

from tinytorch import LayerNorm, Tensor, functional, no_grad
from tinytorch.inside.probes import LinearProbe, r_squared
from tinytorch.inside.stream import logit_lens
from tinytorch_book.exercises.what_it_knows import _studied
from tinytorch_book.experiments.story_gpt import load_story_gpt, story_tokenizer
from tinytorch_book.experiments.what_it_learned import study_stories
from tinytorch_book.stories import StoryGrammar, hidden_values

SELECTIVE = {
    "R² of the posterior itself": 1,
    "R² of always saying the mean": 0,
    "R² can be below 0 on new stories": True,
    "selectivity, if the random targets of each place are read as well": 0,
    "a new random target in every story is read as well": False,
    "a probe on an untrained model reads nothing": False,
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


def lens_without_norm(stream, gamma, beta, table):
    logits = stream @ table.T
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def lens_that_overflows(stream, gamma, beta, table):
    x = (stream - stream.mean(-1, keepdims=True)) / np.sqrt(stream.var(-1, keepdims=True) + 1e-5)
    logits = (x * gamma + beta) @ table.T
    return np.log(np.exp(logits) / np.exp(logits).sum(-1, keepdims=True))


# A probe that is too good
def r2(x, y):
    n = 2 * len(x) // 3
    return r_squared(y[n:], LinearProbe(x[:n], y[:n], ridge=0.03)(x[n:]))


def r2_by_hand(x, y):
    n = 2 * len(x) // 3
    left = y[n:] - LinearProbe(x[:n], y[:n], 0.03)(x[n:])
    return 1 - np.mean(left**2, axis=0).sum() / y[n:].var(axis=0).sum()


def r2_with(seen=False, centred=True, ridge=0.03):
    def wrong(x, y):
        n = 2 * len(x) // 3
        probe = LinearProbe(x, y, ridge) if seen else LinearProbe(x[:n], y[:n], ridge)
        x, y = x[n:], y[n:]
        return 1 - ((y - probe(x)) ** 2).sum() / ((y - y.mean(axis=0) * centred) ** 2).sum()

    return wrong


# A place never seen
FIRST = [story_tokenizer().encode(f" {a}")[0] for a in hidden_values(StoryGrammar(), "animal")]


def through_the_lens(x):
    return functional.softmax(logit_lens(load_story_gpt(), x)[:, FIRST]).data


def by_the_mlp(x, belief, new):
    block, stream = load_story_gpt().blocks[1], Tensor(new)
    with no_grad():
        return through_the_lens((stream + block.mlp(block.ln2(stream))).data)


OUTPUT = load_story_gpt().token_embedding.weight.data[FIRST].T  # (64, 12), of the model itself


def by_the_mlp_and_its_own_output(x, belief, new):
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
    "inside_selective": [SELECTIVE, dict(reversed(SELECTIVE.items()))],
    "inside_lens": [lens_by_layers, lambda *given: lens(*given).tolist()],
    "inside_control": [r2_by_hand, lambda x, y: np.float64(r2(x, y))],
    "inside_unseen": [by_the_mlp, by_the_mlp_and_its_own_output, by_the_mlp_and_the_grammar],
}
WRONG = {
    "inside_selective": {
        "… always being right": SELECTIVE | {"R² of always saying the mean": 1},
        "… could hold": SELECTIVE | {"a new random target in every story is read as well": True},
    },
    "inside_lens": {"… last norm": lens_without_norm, "… largest logit": lens_that_overflows},
    "inside_control": {
        "… has seen": r2_with(seen=True),
        "… not about 0": r2_with(centred=False),
        "… ridge is to be 0.03": r2_with(ridge=1e-4),
    },
    "inside_unseen": {
        "… does not carry over": lambda x, belief, new: LinearProbe(x, belief, ridge=0.03)(new),
        "… nothing but x and belief": by_the_nearest_story,
        "reads other stories": lambda *given: study_stories(2) and by_the_mlp(*given),
    },
}
