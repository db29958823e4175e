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


def decay_after_the_step(w, g, m, v, t, lr, decay):
    w, m, v = adamw(w, g, m, v, t, lr, 0.0)
    return w - lr * decay * w, m, v


def decay_without_lr(w, g, m, v, t, lr, decay):
    new, m, v = adamw(w, g, m, v, t, lr, 0.0)
    return new - decay * w, m, v


def corrected_means_returned(w, g, m, v, t, lr, decay):
    new, m, v = adamw(w, g, m, v, t, lr, decay)
    return new, m / (1 - 0.9**t), v / (1 - 0.999**t)


def means_of_before(w, g, m, v, t, lr, decay):
    m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)
    step = m_hat / (np.sqrt(v_hat) + 1e-8)
    return w - lr * (step + decay * w), *adamw(w, g, m, v, t, lr, decay)[1:]


def nesterov(w, g, m, v, t, lr, decay):
    _, m, v = adamw(w, g, m, v, t, lr, decay)
    m_hat, v_hat = (0.9 * m + 0.1 * g) / (1 - 0.9**t), v / (1 - 0.999**t)
    return w - lr * (m_hat / (np.sqrt(v_hat) + 1e-8) + decay * w), m, v


def sign_of_the_gradient(w, g, m, v, t, lr, decay):
    _, m, v = adamw(w, g, m, v, t, lr, decay)
    return w - lr * (np.sign(g) + decay * w), m, v


def eps_before_the_correction(w, g, m, v, t, lr, decay):
    _, m, v = adamw(w, g, m, v, t, lr, decay)
    step = m / (1 - 0.9**t) * np.sqrt(1 - 0.999**t) / (np.sqrt(v) + 1e-8)
    return w - lr * (step + decay * w), m, v


def norm_of_the_gradient(w, g, m, v, t, lr, decay):
    """One mean square for the whole array."""
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * (g * g).mean()
    step = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return w - lr * (step + decay * w), m, v


def in_place(w, g, m, v, t, lr, decay):
    new, m[...], v[...] = adamw(w, g, m, v, t, lr, decay)
    return new, m, v


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


def rate_clipped(step, lr, warmup, total, cooldown):
    rise = np.clip((1 + step) / warmup, 0, 1)
    return float(lr * np.minimum(rise, np.clip((total - step) / cooldown, 0, 1)))


def cosine(step, lr, warmup, total, cooldown):
    left = (total - step) / cooldown
    return rate(step, lr, warmup, total, cooldown) if left >= 1 else lr * math.sin(left * np.pi / 2)


def slope_of_the_warmup(step, lr, warmup, total, cooldown):
    if step < warmup:
        return lr / warmup + (lr - lr / warmup) * step / (warmup - 1)
    return lr * min(1, (total - step) / cooldown)


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


def largest_number(gradients):
    return max(np.abs(g).max() for g in gradients)


def divides_by_zero(gradients, max_norm):
    with np.errstate(all="ignore"):
        norm = np.sqrt(sum(np.sum(g * g) for g in gradients))
        return [g / norm * np.minimum(norm, max_norm) for g in gradients]


def clip_in_place(gradients, max_norm):
    factor = min(1, max_norm / max(norm_of(gradients), 1e-12))
    for g in gradients:
        g *= factor
    return gradients


# Memory ---------------------------------------------------------------------------------------

ARRAYS = {"sgd": 2, "momentum": 3, "adamw": 4}


def memory(num_parameters, name):
    return 4 * ARRAYS[name] * num_parameters


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
    "optim_adamw": [adamw, adamw_decay_first, adamw_as_a_list],
    "optim_schedule": [rate, rate_in_branches, rate_interpolated, rate_clipped],
    "optim_clip": [clip, clip_flat, clip_by_norms],
    "optim_bytes": [memory, memory_in_branches, memory_by_dtype],
    "optim_budget": [
        (SINGLES | {"pos_encoding": "alibi"}, warmed),
        (SINGLES | {"num_heads": 1}, level_then_down),
        (settings(batch_size=2, pos_encoding="alibi"), level_then_down),
    ],
}

WRONG = {
    "optim_adamw": {
        "no corrections": variant(corrected=False),
        "counted from 0": variant(shift=1),
        "uphill": variant(sign=-1),
        "no root": variant(root=lambda v: v),
        "eps under the root": variant(inside=1e-8, outside=0.0),
        "no eps": variant(outside=0.0),
        "a larger eps": variant(outside=1e-6),
        "eps before the correction": eps_before_the_correction,
        "beta2 of 0.99": variant(betas=(0.9, 0.99)),
        "the betas exchanged": variant(betas=(0.999, 0.9)),
        "decay through the means": with_l2,
        "no decay": lambda w, g, m, v, t, lr, decay: adamw(w, g, m, v, t, lr, 0.0),
        "decay not multiplied by lr": decay_without_lr,
        "decay of the new weights": decay_after_the_step,
        "decay away from zero": lambda w, g, m, v, t, lr, decay: adamw(w, g, m, v, t, lr, -decay),
        "corrected means returned": corrected_means_returned,
        "the means of the step before": means_of_before,
        "the sign alone": sign_of_the_gradient,
        "a look ahead": nesterov,
        "one size for all weights": norm_of_the_gradient,
        "the means exchanged": lambda *given: tuple(adamw(*given)[i] for i in (0, 2, 1)),
        "the weights alone": lambda *given: adamw(*given)[0],
        "the weights last": lambda *given: adamw(*given)[1:] + adamw(*given)[:1],
        "lr is 0.1": lambda w, g, m, v, t, lr, decay: adamw(w, g, m, v, t, 0.1, decay),
        "t is 1": lambda w, g, m, v, t, lr, decay: adamw(w, g, m, v, 1, lr, decay),
        "the means overwritten": in_place,
        "the package's optimiser": by_the_package,
    },
    "optim_schedule": {
        "constant": lambda step, lr, warmup, total, cooldown: lr,
        "starts at 0": lambda step, lr, warmup, total, cooldown: (
            lr * min(1, step / warmup, (total - step) / cooldown)
        ),
        "0 at the last step": lambda step, lr, warmup, total, cooldown: (
            lr * min(1, (step + 1) / warmup, (total - 1 - step) / cooldown)
        ),
        "falls a step too late": lambda step, lr, warmup, total, cooldown: (
            lr * min(1, (step + 1) / warmup, (total + 1 - step) / cooldown)
        ),
        "no warm-up": lambda step, lr, warmup, total, cooldown: (
            lr * min(1, (total - step) / cooldown)
        ),
        "no cool-down": lambda step, lr, warmup, total, cooldown: lr * min(1, (step + 1) / warmup),
        "no lr": lambda step, lr, warmup, total, cooldown: rate(step, 1, warmup, total, cooldown),
        "falls from the end of the warm-up": lambda step, lr, warmup, total, cooldown: (
            lr * min((step + 1) / warmup, (total - step) / (total - warmup))
        ),
        "rise and fall multiplied": lambda step, lr, warmup, total, cooldown: (
            lr * min(1, (step + 1) / (warmup + 1)) * min(1, (total - step) / cooldown)
        ),
        "the cool-down as long as the warm-up": lambda step, lr, warmup, total, cooldown: (
            lr * min(1, (step + 1) / warmup, (total - step) / warmup)
        ),
        "whole numbers": lambda step, lr, warmup, total, cooldown: (
            lr * min(1, (step + 1) // warmup, (total - step) // cooldown)
        ),
        "a cosine at the end": cosine,
        "no warm-up of one step": slope_of_the_warmup,
        "low in the first step alone": lambda step, lr, warmup, total, cooldown: (
            lr * min(1 if step else 1 / warmup, (total - step) / cooldown)
        ),
        "0 in the last step": lambda step, lr, warmup, total, cooldown: (
            0.0 if step == total - 1 else rate(step, lr, warmup, total, cooldown)
        ),
        "in steps of a tenth": lambda *given: round(rate(*given), 1),
    },
    "optim_clip": {
        "nothing": lambda gradients, max_norm: gradients,
        "always": scaled_by(lambda gs, limit: limit / max(norm_of(gs), 1e-12)),
        "each by itself": each_alone,
        "each number": lambda gradients, limit: [np.clip(g, -limit, limit) for g in gradients],
        "norms added": scaled_by(
            lambda gs, limit: limit / max(sum(norm_of([g]) for g in gs), limit)
        ),
        "no root": scaled_by(lambda gs, limit: limit / max(norm_of(gs) ** 2, limit)),
        "the root of the mean": scaled_by(
            lambda gs, limit: limit / max(norm_of(gs) / sum(g.size for g in gs) ** 0.5, limit)
        ),
        "the largest norm": scaled_by(
            lambda gs, limit: limit / max(*(norm_of([g]) for g in gs), 0, limit)
        ),
        "the largest number": scaled_by(lambda gs, limit: limit / max(largest_number(gs), limit)),
        "the spectral norm of a matrix": scaled_by(
            lambda gs, limit: limit / max(norm_of([np.linalg.norm(g, 2) for g in gs]), limit)
        ),
        "the first norm": scaled_by(lambda gs, limit: limit / max(norm_of(gs[:1]), limit)),
        "to a norm of 1": scaled_by(
            lambda gs, limit: 1 / norm_of(gs) if norm_of(gs) > limit else 1.0
        ),
        "the sum of the numbers": scaled_by(
            lambda gs, limit: limit / max(abs(sum(g.sum() for g in gs)), limit)
        ),
        "not a number for zeros": divides_by_zero,
        "the norm as well": lambda gradients, limit: (clip(gradients, limit), norm_of(gradients)),
        "in place": clip_in_place,
    },
    "optim_bytes": {
        "AdamW for all": arrays(4, 4, 4),
        "numbers, not bytes": arrays(2, 3, 4, size=1),
        "float64": arrays(2, 3, 4, size=8),
        "float16": arrays(2, 3, 4, size=2),
        "no gradients": arrays(1, 2, 3),
        "the memory alone": arrays(0, 1, 2),
        "one mean in AdamW": arrays(2, 3, 3),
        "a mean in SGD": arrays(3, 3, 4),
        "momentum without memory": arrays(2, 2, 4),
        "the count of steps as well": lambda n, name: memory(n, name) + 8,
        "off by a hundred in millions": lambda n, name: memory(n, name) + 100 * (n > 1000),
        "rounded": lambda n, name: float(f"{memory(n, name):.4g}"),
        "in megabytes": lambda n, name: memory(n, name) / 1e6,
    },
    "optim_budget": {
        "the page's": (settings(), warmed),
        "ALiBi alone": (settings(pos_encoding="alibi"), warmed),
        "ten steps": (settings(batch_size=50), lambda step, steps: 0.01),
        "a rate that throws it out": (settings(batch_size=20), lambda step, steps: 5.0),
        "too wide": (settings(embed_dim=128), warmed),
        "too deep": (settings(embed_dim=16, num_layers=5), warmed),
        "a batch too large": (settings(batch_size=51), warmed),
        "half a window": (settings(batch_size=0.5), warmed),
        "heads that do not fit": (settings(num_heads=7), warmed),
        "more windows asked for": (settings(windows=5000), warmed),
        "a setting left out": ({"embed_dim": 64, "batch_size": 1}, warmed),
        "a rate below zero": (settings(), lambda step, steps: -0.01),
        "a rate for the first steps only": (settings(), lambda step, steps: [0.01] * (step < 9)),
        "no function": (settings(), 0.01),
        "a warm-up longer than the run": (settings(batch_size=50), warmed),
    },
}

HINTS = {
    "optim_budget": {"the page's": "How many steps", "too wide": "embed_dim^2"},
}

HINTS = {
    "optim_adamw": {"the weights last": "return w, m, v in this order"},
}
