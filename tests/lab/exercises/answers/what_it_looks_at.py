"""Right and wrong answers to the exercises of "What it looks at"."""

import numpy as np

from . import guesses

GUESSES = {
    "the stream changes at stage 0": {True: "what enters the first block"},
    "attention of head 0.0 changes": {True: "beside each other"},
    "the loss rises most before": {
        "foods": "more before",
        "names": "hero head",
        "things": "fetched by",
    },
}


# The head
def head(weights, asked, sought):
    share = np.einsum("lbhqk,bq,bk->lh", weights, asked, sought)
    return tuple(int(i) for i in np.argwhere(share == share.max())[0])


def head_text_by_text(weights, asked, sought):
    share = np.einsum("lbhqk,bq,bk->lbh", weights, asked, sought) / asked.sum(1)[:, None]
    return np.unravel_index(share.mean(axis=1).argmax(), weights.shape[0:3:2])


def largest(scores):
    return divmod(int(scores.argmax()), scores.shape[1])


# A fair removal
def removed(x, head, is_read):
    total = np.einsum("btd,bt->d", x, is_read) / np.count_nonzero(is_read)
    result = np.array(x).reshape(*is_read.shape, 4, 16)
    result[:, :, head] = total.reshape(4, 16)[head]
    return result.reshape(x.shape)


def removed_with(mean, copy=np.copy):
    def wrong(x, head, is_read):
        result, mine = copy(x), slice(16 * head, 16 * (head + 1))
        result[:, :, mine] = mean(x[:, :, mine], is_read)
        return result

    return wrong


RIGHT = {
    "inside_head": [head],
    "inside_mean": [removed],
}
WRONG = {
    "inside_ablation": guesses(GUESSES),
    "inside_head": {
        "not at its own token": lambda weights, *given: head(
            weights * np.tri(weights.shape[-1], k=-1), *given
        ),
        "… block comes first": lambda *given: head(*given)[::-1],
        "… before you divide": head_text_by_text,
        "… to what is sought": lambda weights, *given: largest(np.einsum("lbhqk->lh", weights)),
        "… says less": lambda weights, asked, sought: largest(
            np.einsum("lbhqk,bq,bk->lhbqk", weights, asked, sought).max(axis=(2, 3, 4))
        ),
        "… queries in `asked`": lambda weights, asked, sought: head(weights, asked | True, sought),
        "… belongs to the queries": lambda weights, asked, sought: head(weights, sought, asked),
    },
    "inside_mean": {
        "… mean of its own": removed_with(lambda x, is_read: x[is_read].mean()),
        "… only fill the rows": removed_with(lambda x, is_read: x.mean(axis=(0, 1))),
        "… That is zeros": removed_with(lambda x, is_read: 0),
        "… number of tokens that are read": removed_with(
            lambda x, is_read: x[is_read].sum(0) / is_read.size
        ),
        "… for all rows together": removed_with(
            lambda x, is_read: np.einsum("btd,bt->bd", x, is_read / is_read.sum(1)[:, None])[
                :, None
            ]
        ),
        "… this head are replaced": lambda x, head, is_read: 0 * x + x[is_read].mean(axis=0),
        "writes into what it is given": removed_with(
            lambda x, is_read: x[is_read].mean(axis=0), copy=lambda x: x
        ),
    },
}
