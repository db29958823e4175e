"""Right and wrong answers to the exercises of "Data and loss"."""

import math
from unicodedata import normalize

import numpy as np


def windows_by_loop(ids, T, newline):
    inputs, targets = [], []
    for s in range(len(ids) - T):
        if ids[s] == newline:
            inputs.append(ids[s : s + T])
            targets.append(ids[s + 1 : s + T + 1])
    return np.array(inputs), np.array(targets)


def split_by_ranges(n, T, share):
    held_out = round(share * n)
    return range(n - held_out - T), range(n - held_out, n - T, T)


def cross_entropy_by_logaddexp(logits, targets):
    log_q = logits - np.logaddexp.reduce(logits, axis=-1)[..., None]
    loss = -np.take_along_axis(log_q, targets[..., None], axis=-1).mean()
    hot = targets[..., None] == np.arange(logits.shape[-1])
    return float(loss), (np.exp(log_q) - hot) / targets.size


def bits_per_byte_by_log2(nats, text):
    return sum(float(n) for n in nats) * math.log2(math.e) / len(bytes(text, "utf-8"))


RIGHT = {
    "data_gather": [lambda ids, starts, T: np.take(ids, np.add.outer(starts, np.arange(T)))],
    "data_windows": [windows_by_loop],
    "data_split": [split_by_ranges],
    "loss_and_gradient": [cross_entropy_by_logaddexp],
    "loss_bits_per_byte": [bits_per_byte_by_log2],
}

WRONG = {
    "data_gather": {
        "turned round": ("starts[:, None] + np.arange(T)", "starts + np.arange(T)[:, None]")
    },
    "data_numbers": {
        "windows side by side": {"windows of 8 tokens in a text of 100": 12},
        "starts up to the cut": {"training windows, 20 tokens held out": 80},
    },
    "data_windows": {
        "… A window may begin at s": ("starts[starts + T < len(ids)]", "starts"),
        "… A window begins with the newline": ("(ids == newline)", "(ids == newline) + 1"),
        "… Targets are the inputs one": ("rows[:, 1:]", "rows[:, :-1]"),
    },
    "data_split": {
        "… What does the window of start 14 need": ("np.arange(cut - T)", "np.arange(cut)"),
        "… The last target is held out": ("np.arange(cut - T)", "np.arange(cut - T + 1)"),
        "… One window more fits": ("np.arange(cut - T)", "np.arange(cut - T - 1)"),
    },
    "loss_and_gradient": {
        "… A surprise is positive": ("loss = -(", "loss = ("),
        "… softmax minus one-hot": ("(np.exp(log_q) - one_hot)", "(one_hot - np.exp(log_q))"),
        "… Subtract 1 at the target of each": ("np.exp(log_q) - one_hot", "np.exp(log_q)"),
    },
    "loss_bits_per_byte": {
        "normalised": lambda nats, text: bits_per_byte_by_log2(nats, normalize("NFC", text)),
        "… A character of UTF-8 may have": ("text.encode()", "text"),
        "… That is bits per token": ("len(text.encode())", "len(nats)"),
        "… That is in nats: a bit is ln 2": (" / math.log(2)", ""),
        "… a nat is 1.44 bits": ("/ math.log(2)", "* math.log(2)"),
    },
}
