"""Right and wrong answers to the exercises of "Optimisation"."""

import math

import numpy as np

from tinytorch import AdamW, CosineSchedule, Tensor

# One step of AdamW ----------------------------------------------------------------------------


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


def adamw_as_a_list(w, g, m, v, t, lr, decay, beta1=0.9, beta2=0.999, eps=1e-8):
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * np.square(g)
    root = np.sqrt(v / (1 - beta2**t))
    step = np.divide(m / (1 - beta1**t), root + eps) + decay * w
    return [np.subtract(w, lr * step), m, v]


def variant(
    betas=(0.9, 0.999), corrected=True, shift=0, root=np.sqrt, inside=0.0, outside=1e-8, sign=1
):
    """AdamW with one thing about its step changed."""

    def step(w, g, m, v, t, lr, decay):
        m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g
        c1, c2 = (1 - b ** (t + shift) if corrected else 1.0 for b in betas)
        with np.errstate(all="ignore"):
            moved = m / c1 / (root(v / c2 + inside) + outside)
            return w - sign * lr * moved - lr * decay * w, m, v

    return step


def with_l2(w, g, m, v, t, lr, decay):
    return adamw(w, g + decay * w, m, v, t, lr, 0.0)


def decay_without_lr(w, g, m, v, t, lr, decay):
    new, m, v = adamw(w, g, m, v, t, lr, 0.0)
    return new - decay * w, m, v


def corrected_means_returned(w, g, m, v, t, lr, decay):
    new, m, v = adamw(w, g, m, v, t, lr, decay)
    return new, m / (1 - 0.9**t), v / (1 - 0.999**t)


def by_the_package(w, g, m, v, t, lr, decay):
    weight = Tensor(w, requires_grad=True, dtype=np.float64)
    optimizer = AdamW([weight], lr=lr, weight_decay=decay)
    weight.grad = g
    optimizer.step()
    new = weight.data if t == 1 else adamw(w, g, m, v, t, lr, decay)[0]
    return new, *adamw(w, g, m, v, t, lr, decay)[1:]


# Rise, stay, fall -----------------------------------------------------------------------------


def rate(step, lr, warmup, total, cooldown):
    return lr * min(1, (step + 1) / warmup, (total - step) / cooldown)


def rate_in_branches(step, lr, warmup, total, cooldown):
    if step < warmup:
        return lr * (step + 1) / warmup
    if step <= total - cooldown:
        return lr
    return lr * (total - step) / cooldown


def rate_interpolated(step, lr, warmup, total, cooldown):
    corners = [0, warmup - 1, total - cooldown, total]
    return np.interp(step, corners, [lr / warmup, lr, lr, 0.0])


# Clipping -------------------------------------------------------------------------------------


def norm_of(gradients):
    return math.sqrt(sum(float(np.sum(g * g)) for g in gradients))


def clip(gradients, max_norm):
    norm = np.sqrt(sum(np.sum(g * g) for g in gradients))
    return [g * (max_norm / max(norm, max_norm)) for g in gradients]


def clip_flat(gradients, max_norm):
    norm = np.linalg.norm(np.concatenate([g.reshape(-1) for g in gradients]))
    return [g / norm * max_norm for g in gradients] if norm > max_norm else gradients


def clip_by_norms(gradients, max_norm):
    norm = np.linalg.norm([np.linalg.norm(g) for g in gradients])
    factor = 1.0 if norm <= max_norm else max_norm / norm
    return list(map(lambda g: factor * g, gradients))


def scaled_by(factor):
    return lambda gradients, max_norm: [g * factor(gradients, max_norm) for g in gradients]


def each_alone(gradients, max_norm):
    return [g * min(1, max_norm / max(norm_of([g]), 1e-12)) for g in gradients]


def divides_by_zero(gradients, max_norm):
    with np.errstate(all="ignore"):
        norm = np.sqrt(sum(np.sum(g * g) for g in gradients))
        return [g / norm * np.minimum(norm, max_norm) for g in gradients]


# Memory ---------------------------------------------------------------------------------------


def memory_in_branches(num_parameters, name):
    weights = gradients = 4 * num_parameters
    means = 0 if name == "sgd" else 4 * num_parameters if name == "momentum" else 8 * num_parameters
    return weights + gradients + means


def memory_by_dtype(num_parameters, name):
    kept = {"sgd": "wg", "momentum": "wgm", "adamw": "wgmv"}
    return sum(num_parameters * np.dtype(np.float32).itemsize for _ in kept[name])


def arrays(sgd, momentum, adamw, size=4):
    kept = {"sgd": sgd, "momentum": momentum, "adamw": adamw}
    return lambda n, name: size * kept[name] * n


# A fixed budget -------------------------------------------------------------------------------


def settings(**changed):
    """Those of the page, some of them changed."""
    page = {"embed_dim": 48, "num_layers": 2, "num_heads": 4, "pos_encoding": "rotary"}
    return {**page, "init_std": 0.1, "batch_size": 3, **changed}


def warmed(step, steps):
    return CosineSchedule(8e-3, 50, steps)(step)


def level_then_down(step, steps):
    return 0.01 * min(1, (step + 1) / 50, (steps - step) / (steps / 2))


SINGLES = settings(batch_size=1, num_layers=1, embed_dim=64)


RIGHT = {
    "optim_adamw": [adamw_decay_first, adamw_as_a_list],
    "optim_schedule": [rate_in_branches, rate_interpolated],
    "optim_clip": [
        clip_by_norms,
        lambda gradients, max_norm: [g / max(1, norm_of(gradients) / max_norm) for g in gradients],
    ],
    "optim_bytes": [memory_in_branches, memory_by_dtype],
    "optim_budget": [
        (SINGLES | {"pos_encoding": "alibi"}, warmed),
        (SINGLES | {"num_heads": 1}, level_then_down),
    ],
}

WRONG = {
    "optim_adamw": {
        "no corrections": variant(corrected=False),
        "counted from 0": variant(shift=1),
        "uphill": variant(sign=-1),
        "corrections of ten steps": lambda w, g, m, v, t, *rest: adamw(
            w, g, m, v, min(t, 10), *rest
        ),
        "what it was given": lambda w, g, *rest: adamw(w, g, *rest) if g.any() else (w, *rest[:2]),
        "no root": variant(root=lambda v: v),
        "decay through the means": with_l2,
        "no decay": lambda w, g, m, v, t, lr, decay: adamw(w, g, m, v, t, lr, 0.0),
        "decay not multiplied by lr": decay_without_lr,
        "decay away from zero": lambda w, g, m, v, t, lr, decay: adamw(w, g, m, v, t, lr, -decay),
        "corrected means returned": corrected_means_returned,
        "the means exchanged": lambda *given: tuple(adamw(*given)[i] for i in (0, 2, 1)),
        "the weights alone": lambda *given: adamw(*given)[0],
        "the package's optimiser": by_the_package,
    },
    "optim_schedule": {
        "starts at 0": lambda step, lr, warmup, total, cooldown: (
            lr * min(1, step / warmup, (total - step) / cooldown)
        ),
        "falls a step too late": lambda step, lr, warmup, total, cooldown: (
            lr * min(1, (step + 1) / warmup, (total + 1 - step) / cooldown)
        ),
        "no lr": lambda step, lr, warmup, total, cooldown: rate(step, 1, warmup, total, cooldown),
    },
    "optim_clip": {
        "nothing": lambda gradients, max_norm: gradients,
        "the caller's arrays": clip_flat,
        "each by itself": each_alone,
        "each number": lambda gradients, limit: [np.clip(g, -limit, limit) for g in gradients],
        "norms added": scaled_by(
            lambda gs, limit: limit / max(sum(norm_of([g]) for g in gs), limit)
        ),
        "no root": scaled_by(lambda gs, limit: limit / max(norm_of(gs) ** 2, limit)),
        "to a norm of 1": scaled_by(
            lambda gs, limit: 1 / norm_of(gs) if norm_of(gs) > limit else 1.0
        ),
        "not a number for zeros": divides_by_zero,
    },
    "optim_bytes": {
        "numbers, not bytes": arrays(2, 3, 4, size=1),
        "one mean in AdamW": arrays(2, 3, 3),
        "a mean in SGD": arrays(3, 3, 4),
    },
    "optim_budget": {
        "the page's": (settings(), warmed),
        "a rate that throws it out": (settings(batch_size=20), lambda step, steps: 5.0),
        "too wide": (settings(embed_dim=128), warmed),
    },
}

HINTS = {
    "optim_budget": {"the page's": "How many steps", "too wide": "embed_dim^2"},
}

HINTS = {
    "optim_adamw": {},
}
