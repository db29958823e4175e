"""Right and wrong answers to the exercises of "Learning from the context"."""

import numpy as np

from tinytorch_book.stories import dialect_posterior, family_forecast, listed_forecast

from . import guesses

GUESSES = {
    "belief in each of 8 dialects, before the first word": {8: "beliefs sum to 1"},
    "belief in the 4 of the 8 that say lift, together, after one lift": {0.23: "each of the four"},
    "family reader: autumn rather than fall, after lift and lorry": {0.82: "about the season"},
    "family reader: lift rather than elevator, after one lift": {
        0.9: "Their speakers stray, too",
        0.81: "add 0.1 times 0.1",
    },
    "the listed reader can be surer of a stranger's dialect than of a listed one": {
        "True": "Without quotes"
    },
}


# The posterior
def posterior_word_by_word(prior, table, words):
    belief = np.array(prior, dtype=float)
    for word in words:
        belief = belief * table[:, word]
        belief = belief / belief.sum()
    return belief


def posterior_by_logaddexp(prior, table, words):
    scores = np.log(prior) + np.log(table) @ np.bincount(words, minlength=table.shape[1])
    return np.exp(scores - np.logaddexp.reduce(scores))


def posterior_by_products(prior, table, words):
    weights = prior * table[:, words].prod(axis=1)
    return weights / weights.sum()


# Better than the best
def forecast_word_by_word(table, words):
    belief, rows = np.full(len(table), 1 / len(table)), []
    for word in words:
        rows.append(belief @ table)
        belief = belief * table[:, word]
        belief = belief / belief.sum()
    return rows


def forecast_that_peeks(table, words):
    scores = np.eye(table.shape[1])[words].cumsum(axis=0) @ np.log(table).T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ table


def beliefs_alone(table, words):
    said = np.eye(table.shape[1])[words]
    scores = (said.cumsum(axis=0) - said) @ np.log(table).T
    return np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))


# The evidence
def evidence_by_counts(table, words):
    scores = np.log(table) @ np.bincount(words, minlength=table.shape[1])
    return scores.max() + np.log(np.exp(scores - scores.max()).mean())


def evidence_that_underflows(table, words):
    return np.log(table[:, words].prod(axis=1).mean())


# Both worlds
def mixed_word_by_word(table, words):
    readers = [listed_forecast(table, words), family_forecast(words)]
    belief, rows = np.full((2, len(words)), 0.5), []
    for i in range(words.shape[1]):
        now = np.stack([reader[:, i] for reader in readers])  # (2, speakers, 24)
        rows.append((belief[..., None] * now).sum(axis=0))
        belief = belief * np.take_along_axis(now, words[None, :, i, None], axis=2)[..., 0]
        belief = belief / belief.sum(axis=0)
    return np.stack(rows, axis=1)


def mixed_by_all_speakers(table, words):
    listed, family = listed_forecast(table, words), family_forecast(words)
    lead = np.log(np.take_along_axis(listed / family, words[..., None], axis=2))
    share = 1 / (1 + np.exp(np.clip(lead - lead.cumsum(axis=0), -500, 500)))
    return share * listed + (1 - share) * family


def mixed_with_the_word_itself(table, words):
    listed, family = listed_forecast(table, words), family_forecast(words)
    lead = np.log(np.take_along_axis(listed / family, words[..., None], axis=2))
    share = 1 / (1 + np.exp(-lead.cumsum(axis=1)))
    return share * listed + (1 - share) * family


def plain_mean(table, words):
    return (listed_forecast(table, words) + family_forecast(words)) / 2


RIGHT = {
    "context_posterior": [posterior_word_by_word, posterior_by_logaddexp],
    "context_forecast": [forecast_word_by_word],
    "context_evidence": [evidence_by_counts],
    "context_worlds": [mixed_word_by_word],
}
WRONG = {
    "context_belief": guesses(GUESSES),
    "context_posterior": {
        "… too small for a float": posterior_by_products,
        "… believed before": lambda p, *given: posterior_by_logaddexp(np.ones_like(p), *given),
        "… sum to 1": lambda prior, table, words: prior * np.prod(table[:, words], axis=1),
        "… not the last one alone": lambda p, t, words: posterior_by_products(p, t, words[-1:]),
        "… counts twice": lambda p, t, words: posterior_by_products(p, t, [*{*words.tolist()}]),
        "… return the beliefs": lambda p, t, words: t.T @ posterior_word_by_word(p, t, words),
        "… multiplied, not added": lambda p, t, words: (
            p * t[:, words].sum(axis=1) / (p * t[:, words].sum(axis=1)).sum()
        ),
    },
    "context_forecast": {
        "… is to forecast": forecast_that_peeks,
        "… what each expects": beliefs_alone,
        "not by hand": lambda table, words: dialect_posterior(table, words) @ table,
        "… A forecast is missing": lambda *given: forecast_word_by_word(*given)[1:],
        "… all dialects are as likely": lambda table, words: [
            table[0],
            *forecast_word_by_word(table, words)[1:],
        ],
    },
    "context_evidence": {
        "… has a prior": lambda table, words: evidence_by_counts(table, words) + np.log(len(table)),
        "… too small for a float": evidence_that_underflows,
        "… not of their logarithms": lambda table, words: np.log(table[:, words]).sum(1).mean(),
        "… after the product": lambda table, words: np.log(table[:, words].mean(axis=0)).sum(),
        "… not the likeliest": lambda table, words: np.log(table[:, words]).sum(axis=1).max(),
        "… Return the logarithm": lambda table, words: table[:, words].prod(axis=1).mean(),
        "… the other sign": lambda *given: -evidence_by_counts(*given),
    },
    "context_worlds": {
        "… foreseen the words so far": plain_mean,
        "only the list": listed_forecast,
        "other speakers' words": mixed_by_all_speakers,
        "… only words before i": mixed_with_the_word_itself,
    },
}
