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


def tilted_until_it_overflows(probs, rewards, beta):
    weights = probs * np.exp(rewards / beta)
    return weights / weights.sum()


# The gradient
def policy_of(logits, largest=np.max):
    weights = np.exp(logits - largest(logits))
    return weights / weights.sum()


def gradient_by_others(logits, reference, rewards, drawn, beta, largest=np.max):
    policy = policy_of(logits, largest)
    score = (rewards - beta * (np.log(policy) - np.log(reference)))[drawn]
    others = (score.sum() - score) / (len(drawn) - 1)
    return np.bincount(drawn, score - others, len(logits)) / len(drawn)


def with_slips(sign=1, own=False, once=False):
    def wrong(logits, reference, rewards, drawn, beta):
        score = (rewards - sign * beta * np.log(policy_of(logits) / reference))[drawn]
        n = len(drawn)
        above = (score - score.mean()) * (1 if own else n / (n - 1))
        if once:
            return [above[drawn == i][-1] / n if i in drawn else 0 for i in range(len(logits))]
        return np.bincount(drawn, above, len(logits)) / n

    return wrong


def gradient_without_baseline(logits, reference, rewards, drawn, beta):
    score = rewards - beta * (np.log(policy_of(logits)) - np.log(reference))
    return np.bincount(drawn, score[drawn], len(logits)) / len(drawn)


# DPO
def dpo(won, lost, won_before, lost_before, beta):
    won, lost = beta * (won - won_before), beta * (lost - lost_before)
    return (np.logaddexp(won, lost) - won).mean()


def dpo_that_overflows(won, lost, won_before, lost_before, beta):
    x = beta * ((won - won_before) - (lost - lost_before))
    return -np.log(1 / (1 + np.exp(-x))).mean()


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
        "… exp(1000) is infinite": tilted_until_it_overflows,
        "… Divide by Z": lambda p, r, beta: p * np.exp((r - r.max()) / beta),
        "… Divide the reward by beta": lambda p, r, beta: tilted_in_logs(p, r, 1 / beta),
        "… Where is the reference": lambda p, r, beta: tilted_in_logs(p / p, r, beta),
        "… still to come": lambda p, r, beta: p * r / (p * r).sum(),
        "the best alone": lambda p, r, beta: np.eye(len(p))[np.argmax(r)],
    },
    "prefer_costs": guesses(GUESSES),
    "prefer_gradient": {
        "… exp(5000)": lambda *given: gradient_by_others(*given, largest=lambda logits: 0),
        "no divergence": lambda *given: gradient_by_others(*given[:-1], 0.0),
        "weighed by the reference": lambda logits, reference, *given: (
            gradient_by_others(logits, reference, *given) * (reference / policy_of(logits)).mean()
        ),
        "… its baseline": with_slips(own=True),
        "… others is the baseline": gradient_without_baseline,
        "… the sign of the whole": lambda *given: -gradient_by_others(*given),
        "… Begin with the divergence": with_slips(sign=-1, own=True, once=True),
        "… and it is a cost": with_slips(sign=-1),
        "… counts twice": with_slips(once=True),
        "… The divergence is": with_slips(sign=-1, own=True),
        "… The divergence is the mean": with_slips(sign=-1, once=True),
        "… the mean of the others": with_slips(own=True, once=True),
        "… not their sum": lambda *given: gradient_by_others(*given) * given[3].size,
    },
    "prefer_dpo": {
        "… np.exp overflows": dpo_that_overflows,
        "… Where is beta": lambda *given: dpo(*given[:4], 1),
        "… not over it": lambda *given: dpo(*given[:4], 1 / given[4]),
        "… The mean": lambda *given: dpo(*given) * len(given[0]),
        "… Each with its own": lambda w, x, w0, x0, b: dpo(w, x, x0, w0, b),
        "… The preferred one": lambda w, x, w0, x0, b: dpo(x, w, x0, w0, b),
        "… Compare with the model before": lambda w, x, w0, x0, b: dpo(w, x, 0, 0, b),
    },
    "prefer_words": {
        "… and much about each word": by_stories,
        "… from `won` and `lost`": by_the_page,
        "six words": lambda p, c, won, lost, b: by_words(p, c[:, :6], won, lost, b),
        "the reference": lambda p, c, won, lost, b: p,
    },
}
