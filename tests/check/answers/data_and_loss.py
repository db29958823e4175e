"""Right and wrong answers to the exercises of "Data and loss"."""

import math

import numpy as np

from tinytorch import Tensor, functional
from tinytorch.text import batches

LN_2 = math.log(2)

# Numbers on paper -----------------------------------------------------------------------------

NUMBERS = {
    "windows of 8 tokens in a text of 100": 92,
    "training windows, 20 tokens held out": 72,
    "bits, if every target was given 1/8": 3,
    "perplexity, if every target was given 1/8": 8,
    "bits per byte, at 4 bits and 2.5 bytes a token": 1.6,
}

# Windows of stories ---------------------------------------------------------------------------


def windows(ids, T, newline, skip=0, shift=1, room=0):
    """The solution; `skip`, `shift` and `room` are what one gets wrong."""
    starts = np.flatnonzero(ids == newline) + skip
    starts = starts[starts + T + room < len(ids)]
    return ids[starts[:, None] + np.arange(T)], ids[starts[:, None] + shift + np.arange(T)]


def windows_by_loop(ids, T, newline):
    inputs, targets = [], []
    for s in range(len(ids) - T):
        if ids[s] == newline:
            inputs.append(ids[s : s + T])
            targets.append(ids[s + 1 : s + T + 1])
    return np.array(inputs), np.array(targets)


def windows_by_view(ids, T, newline):
    rows = np.lib.stride_tricks.sliding_window_view(ids, T + 1)
    rows = rows[rows[:, 0] == newline]
    return rows[:, :-1], rows[:, 1:]


def windows_of_lists(ids, T, newline):
    starts = [s for s, i in enumerate(ids) if i == newline and s + T < len(ids)]
    rows = np.stack([ids[s : s + T + 1] for s in starts])
    return rows[:, :T], rows[:, -T:]


def without_the_last_newline(ids, T, newline):
    starts = np.flatnonzero(ids == newline)[:-1]
    starts = starts[starts + T < len(ids)]
    rows = ids[starts[:, None] + np.arange(T + 1)]
    return rows[:, :-1], rows[:, 1:]


def late_newlines_too(ids, T, newline):
    rows = ids[np.flatnonzero(ids == newline)[:, None] + np.arange(T + 1)]
    return rows[:, :-1], rows[:, 1:]


def filled_up(ids, T, newline):
    """Late windows are filled up with newlines, not left out."""
    longer = np.concatenate([ids, np.full(T, newline)])
    return late_newlines_too(longer[: len(ids) + T], T, newline)


def up_to_the_next_story(ids, T, newline):
    """Leaves out the stories that are shorter than a window."""
    inputs, targets = windows(ids, T, newline)
    whole = (inputs[:, 1:] != newline).all(axis=1)
    return inputs[whole], targets[whole]


def backwards(ids, T, newline):
    return tuple(part[::-1] for part in windows(ids, T, newline))


def windows_of_the_package(ids, T, newline):
    return batches.windows(ids, T, np.flatnonzero(ids[:-T] == newline))


def every_position(ids, T, newline):
    rows = np.lib.stride_tricks.sliding_window_view(ids, T + 1)
    return rows[:, :-1], rows[:, 1:]


# A split without a leak -----------------------------------------------------------------------


def split(n, T, share, last=0, cut=None):
    cut = n - round(n * share) if cut is None else cut(n, share)
    return np.arange(cut - T + last), np.arange(cut, n - T, T)


def split_by_ranges(n, T, share):
    held_out = round(share * n)
    return range(n - held_out - T), range(n - held_out, n - T, T)


def split_by_lists(n, T, share):
    cut = n - round(n * share)
    training = [s for s in range(n) if s + T < cut]
    validation, s = [], cut
    while s + T < n:
        validation.append(s)
        s += T
    return training, validation


def split_as_a_list(n, T, share):
    cut = n - round(n * share)
    starts = np.arange(n - T)
    return [starts[starts + T <= cut - 1], starts[cut::T]]


# Cross-entropy --------------------------------------------------------------------------------


def cross_entropy(logits, targets):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_q = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    one_hot = np.eye(logits.shape[-1])[targets]
    return -(log_q * one_hot).sum() / targets.size, (np.exp(log_q) - one_hot) / targets.size


def cross_entropy_by_logaddexp(logits, targets):
    log_q = logits - np.logaddexp.reduce(logits, axis=-1)[..., None]
    loss = -np.take_along_axis(log_q, targets[..., None], axis=-1).mean()
    hot = targets[..., None] == np.arange(logits.shape[-1])
    return float(loss), (np.exp(log_q) - hot) / targets.size


def cross_entropy_of_rows(logits, targets):
    rows, flat = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    n = np.arange(len(rows))
    shifted = rows - rows.max(axis=1)[:, None]
    e = np.exp(shifted)
    sums = e.sum(axis=1)
    loss = (np.log(sums) - shifted[n, flat]).sum() / len(rows)
    gradient = e / sums[:, None]
    gradient[n, flat] -= 1.0
    return loss, (gradient / len(rows)).reshape(logits.shape)


def changed(loss=lambda loss, z, y: loss, gradient=lambda g, z, y: g):
    """The right pair with one of the two made wrong."""

    def wrong(logits, targets):
        right = cross_entropy(logits, targets)
        return loss(right[0], logits, targets), gradient(right[1], logits, targets)

    return wrong


def summed(logits, targets):
    loss, gradient = cross_entropy(logits, targets)
    return loss * targets.size, gradient * targets.size


def unstable(logits, targets):
    with np.errstate(all="ignore"):
        q = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        one_hot = np.eye(logits.shape[-1])[targets]
        loss = -np.log((q * one_hot).sum(-1)).mean()
        return loss, (q - one_hot) / targets.size


def logarithm_of_q(logits, targets, axis=-1, floor=0.0):
    with np.errstate(all="ignore"):
        e = np.exp(logits - logits.max(axis=axis, keepdims=True))
        q = e / e.sum(axis=-1, keepdims=True)
        picked = np.take_along_axis(q, targets[..., None], axis=-1)
        return -np.log(picked + floor).mean(), cross_entropy(logits, targets)[1]


def shifted_by_the_largest_of_all(logits, targets):
    with np.errstate(all="ignore"):
        shifted = logits - logits.max()
        log_q = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        one_hot = np.eye(logits.shape[-1])[targets]
        loss = -np.take_along_axis(log_q, targets[..., None], axis=-1).mean()
        return loss, (np.exp(log_q) - one_hot) / targets.size


def over_the_first_axis(logits, targets):
    loss, gradient = cross_entropy(logits, targets)
    n = len(np.atleast_1d(targets))
    return loss * targets.size / n, gradient * targets.size / n


def classes_in_front(logits, targets):
    if logits.ndim == 3:
        loss, gradient = cross_entropy(np.moveaxis(logits, 1, -1), np.zeros_like(targets[:, :1]))
        return loss, np.moveaxis(gradient, -1, 1)
    return cross_entropy(logits, targets)


def in_place(logits, targets):
    logits -= logits.max(axis=-1, keepdims=True)
    return cross_entropy(logits, targets)


def by_the_package(logits, targets):
    z = Tensor(logits, requires_grad=True, dtype=np.float64)
    loss = functional.cross_entropy(z, targets)
    loss.backward()
    return loss.item(), z.grad


def softmax_of_the_package(logits, targets):
    log_q = functional.log_softmax(Tensor(logits, dtype=np.float64)).numpy()
    one_hot = np.eye(logits.shape[-1])[targets]
    return -(log_q * one_hot).sum() / targets.size, (np.exp(log_q) - one_hot) / targets.size


# Comparing tokenisers -------------------------------------------------------------------------


def bits_per_byte(nats, text):
    return nats.sum() / math.log(2) / len(text.encode())


def bits_per_byte_by_log2(nats, text):
    return sum(float(n) for n in nats) * math.log2(math.e) / len(bytes(text, "utf-8"))


def bits_first(nats, text):
    return np.sum(nats / np.log(2)) / len(text.encode("utf-8"))


def bits_per(count, unit=LN_2):
    return lambda nats, text: nats.sum() / unit / count(nats, text)


def of_bytes(nats, text):
    return len(text.encode())


RIGHT = {
    "data_gather": [
        lambda ids, starts, T: ids[starts[:, None] + np.arange(T)],
        lambda ids, starts, T: np.take(ids, np.add.outer(starts, np.arange(T))),
        lambda ids, starts, T: np.lib.stride_tricks.sliding_window_view(ids, T)[starts],
    ],
    "data_numbers": [
        NUMBERS,
        {name: np.float64(number) for name, number in NUMBERS.items()},
        {name: number * 1.0 for name, number in reversed(NUMBERS.items())},
    ],
    "data_windows": [windows, windows_by_loop, windows_by_view, windows_of_lists],
    "data_split": [split, split_by_ranges, split_by_lists, split_as_a_list],
    "loss_and_gradient": [cross_entropy, cross_entropy_by_logaddexp, cross_entropy_of_rows],
    "loss_bits_per_byte": [bits_per_byte, bits_per_byte_by_log2, bits_first],
}

WRONG = {
    "data_gather": {
        "turned round": lambda ids, starts, T: ids[starts + np.arange(T)[:, None]],
        "the indices": lambda ids, starts, T: starts[:, None] + np.arange(T),
        "targets": lambda ids, starts, T: ids[(starts[:, None] + 1 + np.arange(T)) % len(ids)],
        "one window": lambda ids, starts, T: ids[starts[0] : starts[0] + T],
        "side by side": lambda ids, starts, T: (
            ids.reshape(-1, T)[starts]
            if len(ids) % T == 0 and starts.max() < len(ids) // T
            else ids[:T]
        ),
        "in a loop": lambda ids, starts, T: np.stack([ids[s : s + T] for s in starts]),
        "one token less": lambda ids, starts, T: ids[starts[:, None] + np.arange(T - 1)],
    },
    "data_numbers": {
        "a target too few": {**NUMBERS, "windows of 8 tokens in a text of 100": 93},
        "windows side by side": {**NUMBERS, "windows of 8 tokens in a text of 100": 12},
        "starts up to the cut": {**NUMBERS, "training windows, 20 tokens held out": 80},
        "the last target held out": {**NUMBERS, "training windows, 20 tokens held out": 73},
        "nats": {**NUMBERS, "bits, if every target was given 1/8": math.log(8)},
        "the probability": {**NUMBERS, "bits, if every target was given 1/8": 1 / 8},
        "two to the perplexity": {**NUMBERS, "perplexity, if every target was given 1/8": 256},
        "e to the bits": {**NUMBERS, "perplexity, if every target was given 1/8": math.exp(3)},
        "bytes per bit": {**NUMBERS, "bits per byte, at 4 bits and 2.5 bytes a token": 0.625},
        "a product": {**NUMBERS, "bits per byte, at 4 bits and 2.5 bytes a token": 10},
    },
    "data_windows": {
        "without the last newline": without_the_last_newline,
        "newlines too near to the end": late_newlines_too,
        "filled up at the end": filled_up,
        "one window too few": lambda *given: windows(*given, room=1),
        "one window too many": lambda *given: windows(*given, room=-1),
        "begins after the newline": lambda *given: windows(*given, skip=1),
        "targets are the inputs": lambda *given: windows(*given, shift=0),
        "targets two further on": lambda *given: windows(*given, shift=2, room=1),
        "the newline is 0": lambda ids, T, newline: windows(ids, T, 0),
        "T is 3": lambda ids, T, newline: windows(ids, 3, newline),
        "whole stories only": up_to_the_next_story,
        "the last window first": backwards,
        "a window at every position": every_position,
        "by the package": windows_of_the_package,
        "targets first": lambda *given: windows(*given)[::-1],
        "one row alone": lambda *given: tuple(part[0] for part in windows(*given)),
    },
    "data_split": {
        "reads held-out tokens": lambda n, T, share: split(n, T, share, last=T),
        "the last target is held out": lambda n, T, share: split(n, T, share, last=1),
        "a window too few": lambda n, T, share: split(n, T, share, last=-1),
        "a fixed number of windows off": lambda n, T, share: split(n, T, share, last=T - 3),
        "training up to the end": lambda n, T, share: (np.arange(n - T), split(n, T, share)[1]),
        "validation windows that overlap": lambda n, T, share: (
            split(n, T, share)[0],
            np.arange(n - round(n * share), n - T),
        ),
        "validation past the end": lambda n, T, share: (
            split(n, T, share)[0],
            np.arange(n - round(n * share), n, T),
        ),
        "validation one token late": lambda n, T, share: (
            split(n, T, share)[0],
            split(n, T, share)[1] + 1,
        ),
        "the share is ignored": lambda n, T, share: split(n, T, 0.1),
        "the share is that of training": lambda n, T, share: split(n, T, 1 - share),
        "the cut rounded down": lambda n, T, share: split(
            n, T, share, cut=lambda n, share: int(n * (1 - share))
        ),
        "the validation windows first": lambda n, T, share: split(n, T, share)[::-1],
        "training windows side by side": lambda n, T, share: (
            split(n, T, share)[0][::T],
            split(n, T, share)[1],
        ),
    },
    "loss_and_gradient": {
        "sums": summed,
        "a summed loss": changed(loss=lambda loss, z, y: loss * y.size),
        "a summed gradient": changed(gradient=lambda g, z, y: g * y.size),
        "a mean over the first axis": over_the_first_axis,
        "a mean over the classes too": changed(gradient=lambda g, z, y: g / z.shape[-1]),
        "a negative loss": changed(loss=lambda loss, z, y: -loss),
        "a loss in bits": changed(loss=lambda loss, z, y: loss / math.log(2)),
        "the probability, not its logarithm": changed(loss=lambda loss, z, y: math.exp(-loss)),
        "truth minus softmax": changed(gradient=lambda g, z, y: -g),
        "the softmax alone": changed(gradient=lambda g, z, y: g + np.eye(z.shape[-1])[y] / y.size),
        "the logit of the target": changed(
            loss=lambda loss, z, y: -np.take_along_axis(z, y[..., None], -1).mean()
        ),
        "an exponential that overflows": unstable,
        "the logarithm of a q": logarithm_of_q,
        "the largest of all": shifted_by_the_largest_of_all,
        "a tiny number in the logarithm": lambda z, y: logarithm_of_q(z, y, floor=1e-12),
        "classes on the second axis": classes_in_front,
        "the gradient first": lambda z, y: cross_entropy(z, y)[::-1],
        "the loss alone": lambda z, y: cross_entropy(z, y)[0],
        "logits changed": in_place,
        "the package's loss": by_the_package,
        "the package's softmax": softmax_of_the_package,
    },
    "loss_bits_per_byte": {
        "per character": bits_per(lambda nats, text: len(text)),
        "per token": bits_per(lambda nats, text: len(nats)),
        "per word": bits_per(lambda nats, text: len(text.split())),
        "in nats": bits_per(of_bytes, unit=1.0),
        "times ln 2": bits_per(of_bytes, unit=1 / math.log(2)),
        "by the logarithm of ten": bits_per(of_bytes, unit=math.log(10)),
        "the mean over the bytes": lambda nats, text: bits_per_byte(nats, text) / len(nats),
        "the bytes of another encoding": bits_per(lambda nats, text: len(text.encode("utf-16"))),
        "Latin letters only": bits_per(lambda nats, text: len(text.encode("latin-1", "replace"))),
        "spaces at the ends left out": bits_per(lambda nats, text: len(text.strip().encode())),
        "different bytes": bits_per(lambda nats, text: len(set(text.encode()))),
        "bytes per bit": lambda nats, text: 1 / bits_per_byte(nats, text),
        "the last token left out": lambda nats, text: bits_per_byte(nats[:-1], text),
        "eight bits": lambda nats, text: bits_per_byte(nats, text) / 8,
    },
}

HINTS = {
    "data_windows": {"by the package": "In NumPy alone"},
    "data_split": {
        "reads held-out tokens": "What does the window of start 14 need",
        "training up to the end": "held out, as inputs and as targets",
    },
}
