"""Right and wrong answers to the exercises of "Preferences"."""

import numpy as np

from tinytorch_book.experiments.preferences import tiny_world

from . import guesses

GUESSES = {
    "best of 4, at most": {1.386: "taken off again"},
    "best of 4, if all texts earn the same": {0.636: "here nothing is chosen"},
    "best of a million, if 1/8 of all texts earn the most": {12.816: "upper bound", 8: "In nats"},
    "chance that at least one of 4 texts is in the better half": {
        0.0625: "chance that none",
        0.25: "chance of 1/2",
    },
    "points below the best, at a divergence of 2 from it, β 0.5": {2: "what does one cost"},
}


# The optimum
def tilted_in_logs(probs, rewards, beta):
    scores = np.log(probs) + np.asarray(rewards) / beta
    return np.exp(scores - np.logaddexp.reduce(scores))


# The gradient
def gradient_by_others(logits, reference, rewards, drawn, beta):
    logs = logits - np.logaddexp.reduce(logits)
    score = (rewards - beta * (logs - np.log(reference)))[drawn]
    others = (score.sum() - score) / (len(drawn) - 1)
    return np.bincount(drawn, score - others, len(logits)) / len(drawn)


SIGN, OWN = ("- beta", "+ beta"), (" * m / (m - 1)", "")
ONCE = "np.add.at(gradient, drawn, advantage)", "gradient[drawn] += advantage"


# DPO
def dpo(won, lost, won_before, lost_before, beta):
    won, lost = beta * (won - won_before), beta * (lost - lost_before)
    return (np.logaddexp(won, lost) - won).mean()


# The project
def scores_of(x, won, lost, ridge=1.0, steps=25):
    """A logistic regression by Newton's method."""
    more = x[won] - x[lost]
    weight = np.zeros(x.shape[1])
    for _ in range(steps):
        wrong = 1 / (1 + np.exp(more @ weight))
        bend = (more * (wrong * (1 - wrong))[:, None]).T @ more + ridge * np.eye(len(weight))
        weight += np.linalg.solve(bend, more.T @ wrong - ridge * weight)
    return x @ weight


def by_words(reference, counts, won, lost, beta, **options):
    return tilted_in_logs(reference, scores_of(counts, won, lost, **options), beta)


def by_stories(reference, counts, won, lost, beta):
    return by_words(reference, np.eye(len(reference)), won, lost, beta)


def by_the_page(reference, counts, won, lost, beta):
    """Knows the rewards, and needs no pairs."""
    return tilted_in_logs(reference, tiny_world()[2], beta)


RIGHT = {
    "prefer_optimum": [tilted_in_logs],
    "prefer_gradient": [gradient_by_others],
    "prefer_dpo": [dpo],
    "prefer_words": [by_words],
}
WRONG = {
    "prefer_optimum": {
        "… exp(1000) is infinite": (" - rewards.max()", ""),
        "… Divide by Z": (" / weights.sum()", ""),
        "… Divide the reward by beta": (") / beta", ") * beta"),
        "… Where is the reference": ("probs * np", "np"),
        "… still to come": ("np.exp((rewards - rewards.max()) / beta)", "rewards / beta"),
        "the best alone": lambda p, r, beta: np.eye(len(p))[np.argmax(r)],
    },
    "prefer_costs": guesses(GUESSES),
    "prefer_gradient": {
        "… exp(5000)": (" - logits.max()", ""),
        "no divergence": ("- beta * np.log(policy / reference)[drawn]", ""),
        "weighed by the reference": ("gradient / m", "gradient / m * (reference / policy).mean()"),
        "… its baseline": OWN,
        "… others is the baseline": ("(score - score.mean()) * m / (m - 1)", "score"),
        "… the sign of the whole": ("return gradient", "return -gradient"),
        "… Begin with the divergence": (*SIGN, *OWN, *ONCE),
        "… and it is a cost": SIGN,
        "… counts twice": ONCE,
        "… The divergence is": (*SIGN, *OWN),
        "… The divergence is the mean": (*SIGN, *ONCE),
        "… the mean of the others": (*OWN, *ONCE),
        "… not their sum": ("gradient / m", "gradient"),
    },
    "prefer_dpo": {
        "… np.exp overflows": ("logaddexp(0, ", "log1p(np.exp(", "before)))", "before))))"),
        "… Where is beta": ("-beta * ", "-"),
        "… not over it": ("-beta", "-1 / beta"),
        "… The mean": ("mean", "sum"),
        "… Each with its own": ("won - won", "won - lost", "(lost - lost", "(lost - won"),
        "… The preferred one": ("-beta", "beta"),
        "… Compare with the model before": (" - won_before", "", " - lost_before", ""),
    },
    "prefer_words": {
        "… and much about each word": by_stories,
        "… from `won` and `lost`": by_the_page,
        "six words": lambda p, c, won, lost, b: by_words(p, c[:, :6], won, lost, b),
        "the reference": lambda p, c, won, lost, b: p,
    },
}
