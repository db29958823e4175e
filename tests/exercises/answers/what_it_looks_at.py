"""Right and wrong answers to the exercises of "What it looks at"."""

import numpy as np

from tinytorch.inside.heads import head_scores

ABLATION = {
    "the stream changes at stage 0": False,
    "the stream changes at stage 1": True,
    "attention of head 0.0 changes": False,
    "attention of head 1.0 changes": True,
    "the forecast after the first token changes": True,
    "the loss rises most before": "animals",
}


# The head
def head_by_loops(weights, asked, sought):
    totals = np.zeros((len(weights), weights.shape[2]))
    for row, query in zip(*np.nonzero(asked), strict=True):
        keys = np.flatnonzero(sought[row, : query + 1])
        totals += weights[:, row, :, query, keys].sum(axis=0)
    return divmod(int(totals.argmax()), totals.shape[1])


def head_by_a_sum(weights, asked, sought):
    share = np.einsum("lbhqk,bq,bk->lh", weights, asked, sought)
    return tuple(int(i) for i in np.argwhere(share == share.max())[0])


def head_text_by_text(weights, asked, sought):
    share = np.einsum("lbhqk,bq,bk->lbh", weights, asked, sought) / asked.sum(1)[:, None]
    return np.unravel_index(share.mean(axis=1).argmax(), weights.shape[0:3:2])


def head(weights, asked, sought):
    targets = asked[:, :, None] & sought[:, None, :] & np.tri(weights.shape[-1], dtype=bool)
    return np.unravel_index(head_scores(weights, targets).argmax(), weights.shape[0:3:2])


# A fair removal
def removed(x, head, is_read):
    numbers = np.arange(64) // 16 == head
    return np.where(numbers, x[is_read].mean(axis=0), x)


def removed_by_a_sum(x, head, is_read):
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
    "inside_ablation": [ABLATION, dict(reversed(ABLATION.items()))],
    "inside_head": [head_by_loops, head_by_a_sum],
    "inside_mean": [removed, removed_by_a_sum],
}
WRONG = {
    "inside_ablation": {
        "… beside each other": ABLATION | {"attention of head 0.0 changes": True},
        "… more before": ABLATION | {"the loss rises most before": "foods"},
    },
    "inside_head": {
        "not at its own token": (
            lambda weights, asked, sought: head(
                weights * np.tri(weights.shape[-1], k=-1), asked, sought
            )
        ),
        "… block comes first": lambda *given: head_by_loops(*given)[::-1],
        "… before you divide": head_text_by_text,
    },
    "inside_mean": {
        "… mean of its own": removed_with(lambda x, is_read: x[is_read].mean()),
        "… only fill the rows": removed_with(lambda x, is_read: x.mean(axis=(0, 1))),
        "writes into what it is given": removed_with(
            lambda x, is_read: x[is_read].mean(axis=0), copy=lambda x: x
        ),
    },
}
