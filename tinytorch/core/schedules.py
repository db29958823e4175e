"""Schedules: the learning rate of every step."""

import math

from tinytorch.core.arguments import check_not_negative


class CosineSchedule:
    """The learning rate of every step: a linear warm-up, then half a cosine down.

    Loshchilov and Hutter, 2017, section 3, without restarts; the warm-up is that of Goyal et al.,
    2017, section 2.2.

    Args:
        lr: the largest learning rate, reached at the end of the warm-up.
        warmup_steps: how many steps the warm-up takes; the first has `lr / warmup_steps`.
        total_steps: the step from which the rate stays at `min_lr`.
        min_lr: the rate at the end.

    Raises:
        TypeError: an argument is not a number.
        ValueError: the warm-up is longer than `total_steps`, or a rate is negative.

    Example:
        >>> schedule = CosineSchedule(lr=1.0, warmup_steps=2, total_steps=6)
        >>> [round(schedule(step), 3) for step in range(7)]
        [0.5, 1.0, 1.0, 0.854, 0.5, 0.146, 0.0]
    """

    def __init__(self, lr: float, warmup_steps: int, total_steps: int, min_lr: float = 0.0) -> None:
        check_not_negative(lr=lr, warmup_steps=warmup_steps, total_steps=total_steps, min_lr=min_lr)
        if not warmup_steps < total_steps:
            steps = f"the {total_steps} steps do"
            raise ValueError(f"the warm-up of {warmup_steps} steps must end before {steps}")
        if min_lr > lr:
            raise ValueError(
                f"min_lr {min_lr} is above lr {lr}; the schedule decays from lr to min_lr"
            )
        self.lr, self.min_lr = lr, min_lr
        self.warmup_steps, self.total_steps = warmup_steps, total_steps

    def __call__(self, step: int) -> float:
        """The learning rate of a step, counted from 0.

        Raises:
            TypeError: the step is not a number.
            ValueError: it is negative.
        """
        check_not_negative(step=step)
        if step < self.warmup_steps:
            return self.lr * (step + 1) / self.warmup_steps
        done = (step - self.warmup_steps) / (self.total_steps - self.warmup_steps)
        cosine = (1 + math.cos(math.pi * min(done, 1.0))) / 2  # from 1 down to 0
        return self.min_lr + (self.lr - self.min_lr) * cosine

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"CosineSchedule({settings})"
