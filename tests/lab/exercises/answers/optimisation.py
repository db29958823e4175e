"""Right and wrong answers to the exercises of "Optimisation"."""

import math

import numpy as np

from tinytorch import CosineSchedule


def adamw_decay_first(w, g, m, v, t, lr, decay):
    shrunk = w * (1 - lr * decay)
    m, v = m + (1 - 0.9) * (g - m), v + (1 - 0.999) * (g**2 - v)
    scale = math.sqrt(1 - 0.999**t)
    return shrunk - lr / (1 - 0.9**t) * m / (v**0.5 / scale + 1e-8), m, v


def rate_in_branches(step, lr, warmup, total, cooldown):
    if step < warmup:
        return lr * (step + 1) / warmup
    if step <= total - cooldown:
        return lr
    return lr * (total - step) / cooldown


def clip_by_norms(gradients, max_norm):
    norm = np.linalg.norm([np.linalg.norm(g) for g in gradients])
    factor = 1.0 if norm <= max_norm else max_norm / norm
    return list(map(lambda g: factor * g, gradients))


def memory_in_branches(num_parameters, name):
    weights = gradients = 4 * num_parameters
    means = 0 if name == "sgd" else 4 * num_parameters if name == "momentum" else 8 * num_parameters
    return weights + gradients + means


def settings(**changed):
    """Those of the page's stub, some of them changed."""
    page = {"embed_dim": 48, "num_layers": 2, "num_heads": 4, "pos_encoding": "rotary"}
    return {**page, "init_std": 0.1, "batch_size": 3, **changed}


def warmed(step, steps):
    return CosineSchedule(8e-3, 50, steps)(step)


def level_then_down(step, steps):
    return 0.01 * min(1, (step + 1) / 50, (steps - step) / (steps / 2))


RIGHT = {
    "optim_adamw": [adamw_decay_first],
    "optim_schedule": [rate_in_branches],
    "optim_clip": [clip_by_norms],
    "optim_bytes": [memory_in_branches],
    "optim_budget": [
        (settings(batch_size=1, num_layers=1, num_heads=1, embed_dim=64), level_then_down)
    ],
}

EACH_NORM = "[g * min(1, max_norm / max(1e-12, np.linalg.norm(g))) for g in gradients]"
CLIPPED = "[g * (max_norm / max(norm, max_norm)) for g in gradients]"
WRONG = {
    "optim_adamw": {
        "… The decay is missing": (" + decay * w", ""),
        "… The decay went through the means": (
            "m = 0.9",
            "g = g + decay * w\n    m = 0.9",
            " + decay * w)",
            ")",
        ),
        "… The decay is multiplied by lr too": ("(step + decay * w)", "step - decay * w"),
        "… Decay pulls towards zero": ("step + decay", "step - decay"),
        "… The step goes uphill": ("(step + decay", "(decay", "* w)", "* w - step)"),
        "… The means begin at zero: divide": ("m / (1 - 0.9**t), v / (1 - 0.999**t)", "m, v"),
        "… t counts from 1": ("**t", "**(t + 1)"),
        "… Divide by the square root of v": ("np.sqrt(v_hat)", "v_hat"),
        "… Return the means as they are; only": ("decay * w), m, v", "decay * w), m_hat, v_hat"),
        "… Return three things": ("decay * w), m, v", "decay * w)"),
        "… First m, then v": ("decay * w), m, v", "decay * w), v, m"),
        "… whose gradient is 0 as well": ("decay * w)", "decay * w * (g != 0))"),
        "no mean of a zero": lambda w, g, m, *rest: adamw_decay_first(
            w, g, np.where(g, m, m / 0.9), *rest
        ),
    },
    "optim_schedule": {
        "… Multiply by lr": ("lr * min", "min"),
        "… Steps count from 0": ("(step + 1)", "step"),
        "… would be 0 at step total": ("(total - step)", "(total - 1 - step)"),
        "… and would be 0 at step total": ("(total - step)", "(total + 1 - step)"),
    },
    "optim_clip": {
        "the caller's arrays": (CLIPPED, f"gradients if norm <= max_norm else {CLIPPED}"),
        "… above the limit, and it stayed": (CLIPPED, "[g.copy() for g in gradients]"),
        "… A norm below the limit stays": ("max(norm, max_norm)", "norm"),
        "… Compare the ratio of the two norms": (CLIPPED, EACH_NORM),
        "… Each number was clipped by itself": (
            CLIPPED,
            "[g.clip(-max_norm, max_norm) for g in gradients]",
        ),
        "… Norms do not add": ("np.sqrt(sum(np.sum(g * g)", "(sum(np.sqrt(np.sum(g * g))"),
        "… Take the root of the sum": ("np.sqrt(sum(", "(sum("),
        "… The new norm is to be max_norm": (CLIPPED, "[g / norm for g in gradients]"),
    },
    "optim_bytes": {"… Bytes, not numbers: float32 takes": ("4 * arrays", "arrays")},
    "optim_budget": {"… How many steps": (settings(), warmed)},
}
