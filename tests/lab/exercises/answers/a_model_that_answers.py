"""Right and wrong answers to the exercises of "A model that answers"."""

from copy import deepcopy

import numpy as np

from tinytorch import AdamW, Parameter, clip_grad_norm, functional, no_grad
from tinytorch.text.chat import answer_rows
from tinytorch_book.experiments.answering import load_answering_gpt

from . import guesses

GUESSES = {
    "best share right, if one must answer": {1: "Nobody knows"},
    "share right, if duck, frog and goat are said as often as each comes": {0.5: "always saying"},
    "expected score of 'duck', penalty 2": {0.5: "costs 2", -2: "Half of the time"},
    "largest penalty at which 'duck' is worth no less than 'I do not know'": {
        0.5: "not the penalty"
    },
    "expected score of the best answerer, penalty 0.5": {0: "worth more than that"},
}


# The mask
def targets(prompt, answer):
    ids = np.array(prompt + answer)[1:]
    ids[: len(prompt) - 1] = -100
    return ids.tolist()


def targets_from_the_first_such_id(prompt, answer):
    ids = prompt + answer
    k = ids.index(prompt[-1])
    return [-100] * k + ids[k + 1 :]


def targets_from_zeros(prompt, answer):
    ids = np.array([0] * (len(prompt) - 1) + answer)
    ids[ids == 0] = -100
    return ids.tolist()


# Three new tokens
def start_in_the_same_parameter(model, lr):
    weight = model.token_embedding.weight
    mean = weight.data.sum(axis=0, keepdims=True) / len(weight.data)
    weight.data = np.concatenate([weight.data, mean, mean, mean])
    return AdamW(model.trainable_parameters(), lr)


def start_with_both_tables(model, lr):
    held = list(model.parameters())
    table = model.token_embedding.weight.data
    model.token_embedding.weight = Parameter([*table, *[table.mean(0)] * 3], dtype=np.float32)
    return AdamW([*held, model.token_embedding.weight], lr=lr)


# The best score
def best(beliefs, penalty):
    p = np.max(beliefs, axis=1)
    return np.where(p * (1 + penalty) > penalty, p - penalty * (1 - p), 0.0)


# Project: forget less
def both_in_one_step(model, questions, stories):
    before = deepcopy(model)
    optimizer = AdamW(model.parameters(), betas=(0.9, 0.99), weight_decay=0.0)
    for step in range(60):
        optimizer.lr = 4e-3 * min(1, (step + 1) / 6, (60 - step) / 30)
        optimizer.zero_grad()
        for batch in (questions, stories):
            inputs, targets = batch(step)
            if not step:  # what does not learn is not counted, nor is another model
                before(inputs), no_grad()(model)(inputs)
            functional.cross_entropy(model(inputs), targets, ignore_index=-100).backward()
        clip_grad_norm(optimizer.params, 1.0)
        optimizer.step()


def tuned_before(model, questions, stories):
    model.load_state_dict(load_answering_gpt().state_dict())


RIGHT = {
    "asking_targets": [targets],
    "asking_start": [start_in_the_same_parameter, start_with_both_tables],
    "asking_scores": [best],
    "asking_forget": [both_in_one_step],
}
WRONG = {
    "asking_targets": {
        "… One too many": ("(len(prompt) - 1)", "len(prompt)"),
        "… do not count": lambda prompt, answer: (prompt + answer)[1:],
        "… when to stop": ("+ answer", "+ answer[:-1] + [-100]"),
        "… that one counts, too": ("(len(prompt) - 1) + answer", "len(prompt) + answer[1:]"),
        "… As many targets": ("[-100] * (len(prompt) - 1) + ", ""),
        "… What does not count is -100": ("[-100]", "[0]"),
        "begins at the prompt's last id": targets_from_the_first_such_id,
        "… 0 is an id": targets_from_zeros,
        "… Write it yourself": lambda *chat: answer_rows([chat])[1][0].tolist(),
        "… Ids are integers": ("+ answer", "+ [float(x) for x in answer]"),
    },
    "asking_predict": guesses(GUESSES),
    "asking_start": {
        "… holds the old table": (
            "    table = model",
            "    held = [*model.parameters()]\n    table = model",
            "model.parameters(),",
            "held,",
        ),
        "… the table alone": ("model.parameters()", "[model.token_embedding.weight]"),
        "… stand below": ("[table, new]", "[new, table]"),
        "… not zeros": ("np.tile(table.mean(axis=0), (3, 1))", "np.zeros((3, table.shape[1]))"),
        "… for each column": ("table.mean(axis=0), (3, 1)", "table.mean(), (3, table.shape[1])"),
        "… stay above": ("[table, new]", "[new]"),
        "all but the table": (
            "model.parameters()",
            "[p for p in model.parameters() if p is not model.token_embedding.weight]",
        ),
        "another model's": ("return", "model = GPT(7, 8, 1, 2, 6)\n    return"),
    },
    "asking_scores": {
        "… says 'I do not know', for 0": ("np.maximum((", "((", ", 0)", ")"),
        "… with probability 1 - p": ("(1 + penalty) * ", ""),
        "… for each row": (", 0)", ", 0).mean()"),
        "… The threshold is right": lambda b, c: np.where(best(b, c) > 0, b.max(axis=1), 0),
        "… costs something": lambda b, c: b.max(axis=1),
        "… along axis 1": lambda b, c: np.full(len(b), max(0, (1 + c) * b.max() - c)),
    },
    "asking_forget": {
        "no stories": (
            "(stories if step % 2 else questions)",
            "questions",
            "steps=120",
            "steps=40",
        ),
        "too many batches": ("steps=120", "steps=121"),
        "… from each batch once": (
            "    def loss(step)",
            "    kept = [(stories if i % 2 else questions)(i) for i in range(20)]\n"
            "    def loss(step)",
            "        inputs, targets = (stories if step % 2 else questions)(step)",
            "        inputs, targets = kept[step % 20]",
        ),
        "… what `questions` and `stories` give": tuned_before,
        "… comes back fast": lambda *given: None,
    },
}
