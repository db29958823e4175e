"""Right and wrong answers to the exercises of "Data and loss"."""

import math
import unicodedata

import numpy as np

LN_2 = math.log(2)

# Numbers on paper
NUMBERS = {
    "windows of 8 tokens in a text of 100": 92,
    "training windows, 20 tokens held out": 72,
    "bits, if every target was given 1/8": 3,
    "perplexity, if every target was given 1/8": 8,
    "bits per byte, at 4 bits and 2.5 bytes a token": 1.6,
}


# Windows of stories
def windows(ids, T, newline, skip=0):
    starts = np.flatnonzero(ids == newline) + skip
    read = ids[starts[starts + T < len(ids), None] + np.arange(T + 1)]
    return read[:, :-1], read[:, 1:]


def windows_by_loop(ids, T, newline):
    inputs, targets = [], []
    for s in range(len(ids) - T):
        if ids[s] == newline:
            inputs.append(ids[s : s + T])
            targets.append(ids[s + 1 : s + T + 1])
    return np.array(inputs), np.array(targets)


# A split without a leak
def split(n, T, share, last=0):
    cut = n - round(n * share)
    return np.arange(cut - T + last), np.arange(cut, n - T, T)


def split_by_ranges(n, T, share):
    held_out = round(share * n)
    return range(n - held_out - T), range(n - held_out, n - T, T)


# Cross-entropy
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


def softmax_alone(logits, targets):
    loss, gradient = cross_entropy(logits, targets)
    return loss, gradient + np.eye(logits.shape[-1])[targets] / targets.size


# Comparing tokenisers
def bits_per_byte(nats, text):
    return nats.sum() / math.log(2) / len(text.encode())


def bits_per_byte_by_log2(nats, text):
    return sum(float(n) for n in nats) * math.log2(math.e) / len(bytes(text, "utf-8"))


RIGHT = {
    "data_gather": [
        lambda ids, starts, T: ids[starts[:, None] + np.arange(T)],
        lambda ids, starts, T: np.take(ids, np.add.outer(starts, np.arange(T))),
    ],
    "data_numbers": [NUMBERS, {name: np.float64(number) for name, number in NUMBERS.items()}],
    "data_windows": [windows, windows_by_loop],
    "data_split": [split, split_by_ranges],
    "loss_and_gradient": [cross_entropy, cross_entropy_by_logaddexp],
    "loss_bits_per_byte": [bits_per_byte, bits_per_byte_by_log2],
}

WRONG = {
    "data_gather": {"turned round": lambda ids, starts, T: ids[starts + np.arange(T)[:, None]]},
    "data_numbers": {
        "windows side by side": {**NUMBERS, "windows of 8 tokens in a text of 100": 12},
        "starts up to the cut": {**NUMBERS, "training windows, 20 tokens held out": 80},
    },
    "data_windows": {"… A window begins with the newline,": lambda *given: windows(*given, skip=1)},
    "data_split": {
        "… What does the window of start 14 need": lambda n, T, share: split(n, T, share, last=T)
    },
    "loss_and_gradient": {"… Subtract 1 at the target of each": softmax_alone},
    "loss_bits_per_byte": {
        "normalised": (lambda nats, text: bits_per_byte(nats, unicodedata.normalize("NFC", text))),
        "… A character of UTF-8 may have": lambda nats, text: nats.sum() / LN_2 / len(text),
        "… That is in nats: a bit is ln 2": lambda nats, text: nats.sum() / len(text.encode()),
    },
}
