"""Right and wrong answers to the exercises of "Optimisation"."""

import math

import numpy as np

from tinytorch import CosineSchedule


# One step of AdamW
def adamw(w, g, m, v, t, lr, decay):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)
    return w - lr * (m_hat / (np.sqrt(v_hat) + 1e-8) + decay * w), m, v


def adamw_decay_first(w, g, m, v, t, lr, decay):
    shrunk = w * (1 - lr * decay)
    m, v = m + (1 - 0.9) * (g - m), v + (1 - 0.999) * (g**2 - v)
    scale = math.sqrt(1 - 0.999**t)
    return shrunk - lr / (1 - 0.9**t) * m / (v**0.5 / scale + 1e-8), m, v


def adamw_as_a_list(w, g, m, v, t, lr, decay):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * np.square(g)
    step = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8) + decay * w
    return [np.subtract(w, lr * step), m, v]


def corrected_means_returned(w, g, m, v, t, lr, decay):
    new, m, v = adamw(w, g, m, v, t, lr, decay)
    return new, m / (1 - 0.9**t), v / (1 - 0.999**t)


# Rise, stay, fall
def rate_in_branches(step, lr, warmup, total, cooldown):
    if step < warmup:
        return lr * (step + 1) / warmup
    if step <= total - cooldown:
        return lr
    return lr * (total - step) / cooldown


def rate_interpolated(step, lr, warmup, total, cooldown):
    corners = [0, warmup - 1, total - cooldown, total]
    return np.interp(step, corners, [lr / warmup, lr, lr, 0.0])


# Clipping
def norm_of(gradients):
    return math.sqrt(sum(float(np.sum(g * g)) for g in gradients))


def clip_by_norms(gradients, max_norm):
    norm = np.linalg.norm([np.linalg.norm(g) for g in gradients])
    factor = 1.0 if norm <= max_norm else max_norm / norm
    return list(map(lambda g: factor * g, gradients))


# Memory
def memory_in_branches(num_parameters, name):
    weights = gradients = 4 * num_parameters
    means = 0 if name == "sgd" else 4 * num_parameters if name == "momentum" else 8 * num_parameters
    return weights + gradients + means


def arrays(sgd, momentum, adamw, size=4):
    kept = {"sgd": sgd, "momentum": momentum, "adamw": adamw}
    return lambda n, name: size * kept[name] * n


# A fixed budget
def settings(**changed):
    """Those of the page, some of them changed."""
    page = {"embed_dim": 48, "num_layers": 2, "num_heads": 4, "pos_encoding": "rotary"}
    return {**page, "init_std": 0.1, "batch_size": 3, **changed}


def warmed(step, steps):
    return CosineSchedule(8e-3, 50, steps)(step)


def level_then_down(step, steps):
    return 0.01 * min(1, (step + 1) / 50, (steps - step) / (steps / 2))


SINGLES = settings(batch_size=1, num_layers=1, embed_dim=64)


def clip_flat(gradients, max_norm):
    norm = np.linalg.norm(np.concatenate([g.reshape(-1) for g in gradients]))
    return [g / norm * max_norm for g in gradients] if norm > max_norm else gradients


RIGHT = {
    "optim_adamw": [adamw_decay_first, adamw_as_a_list],
    "optim_schedule": [rate_in_branches, rate_interpolated],
    "optim_clip": [
        clip_by_norms,
        lambda gradients, max_norm: [g / max(1, norm_of(gradients) / max_norm) for g in gradients],
    ],
    "optim_bytes": [
        memory_in_branches,
        lambda n, name: (
            np.float32(0).nbytes * len({"sgd": "wg", "momentum": "wgm", "adamw": "wgmv"}[name]) * n
        ),
    ],
    "optim_budget": [
        (SINGLES | {"pos_encoding": "alibi"}, warmed),
        (SINGLES | {"num_heads": 1}, level_then_down),
    ],
}

WRONG = {
    "optim_adamw": {
        "no decay without a gradient": (
            lambda w, g, m, v, t, lr, decay: adamw(
                w, g, m, v, t, lr, np.where((v == 0) & (g == 0), 0, decay)
            )
        ),
        "no mean of a zero": (lambda w, g, m, *rest: adamw(w, g, np.where(g, m, m / 0.9), *rest)),
        "… The means begin at zero: divide": lambda *given: adamw(*given[:4], np.inf, *given[5:]),
        "… The decay went through the means": lambda w, g, m, v, t, lr, decay: adamw(
            w, g + decay * w, m, v, t, lr, 0.0
        ),
        "… Return the means as they are; only": corrected_means_returned,
    },
    "optim_schedule": {
        "falls a step too late": lambda step, lr, warmup, total, cooldown: (
            lr * min(1, (step + 1) / warmup, (total + 1 - step) / cooldown)
        )
    },
    "optim_clip": {
        "the caller's arrays": (clip_flat),
        "… Compare the ratio of the two norms": lambda gradients, max_norm: (
            [g * min(1, max_norm / max(norm_of([g]), 1e-12)) for g in gradients]
        ),
    },
    "optim_bytes": {"… Bytes, not numbers: float32 takes": arrays(2, 3, 4, size=1)},
    "optim_budget": {"… How many steps": (settings(), warmed)},
}
