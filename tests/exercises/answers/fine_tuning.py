"""Right and wrong answers to the exercises of "Fine-tuning"."""

import operator
from functools import partial

from tinytorch import AdamW, CosineSchedule, Module, Parameter, Tensor, Trainer, default_rng
from tinytorch.models.lora import ATTENTION, EVERY_LINEAR, add_lora

from . import changed, guesses

GUESSES = {
    "numbers that learn, rank 8, q_proj and v_proj": {
        24_576: "are 12 blocks",
        147_456: "Two weights a block",
        14_155_776: "stay frozen",
    },
    "the same with rank 16": {1_179_648: "one side of each thin"},
    "numbers that learn, rank 8, all six Linears": {
        110_592: "There are 12",
        884_736: "longer on one side",
    },
    "rank at which A and B of q_proj are as large as its weight": {768: "twice as large"},
    "bytes of AdamW's means, rank 8, q_proj and v_proj": {
        1_179_648: "two means",
        589_824: "float32 takes 4 bytes",
    },
    "numbers in the model after the merge": {124_734_720: "gone after"},
}


# Forward and back by hand
def by_the_whole_product(x, W, A, B, alpha, g, scale=lambda alpha, r: alpha / r):
    s = scale(alpha, len(B))
    whole = s * x.T @ g  # the gradient of A B
    return x @ (W + s * A @ B), whole @ B.T, A.T @ whole


def with_scale(scale):
    return lambda *given: by_the_whole_product(*given, scale)


def gradients_without_scale(*given):
    return by_the_whole_product(*given)[0], *with_scale(lambda alpha, r: 1)(*given)[1:]


# A LoRA that is stuck
class Repaired(Module):
    a, b, learns, scale, biases = 0.1, 0.0, Parameter, operator.truediv, 0

    def __init__(self, linear, rank, alpha):
        self.linear = linear
        rows, columns = linear.weight.shape
        rng = default_rng(0)
        self.A = self.learns(self.a * rng.normal(size=(rows, rank)))
        self.B = self.learns(self.b * rng.normal(size=(rank, columns)))
        self.factor = type(self).scale(alpha, rank)
        for p in linear.parameters():
            p.requires_grad = False

    def forward(self, x):
        y = self.linear(x) + (x @ self.A) @ self.B * self.factor
        return y + self.biases * self.linear.bias if self.biases else y


class AnotherName(Repaired):
    """What it wraps may have any name."""

    def __init__(self, linear, rank, alpha):
        super().__init__(linear, rank, alpha)
        del self.linear
        self.base = linear

    def forward(self, x):
        return self.base(x) + (x @ self.A) @ self.B * self.factor


# Several at once
def merged_by_sum(W, A, B, scale):
    return (scale[:, None, None] * (A @ B)).sum(0) + W


# Other names
class Taken:
    def __init__(self, batches, take):
        self.batches, self.take, self.batch_size = batches, take, batches.batch_size
        self.seq_len = batches.seq_len

    def __getitem__(self, i):
        return self.take(self.batches, i)


def adapt(rank=3, targets=("out_proj", "linear2"), steps=60, take=lambda batches, i: batches[i]):
    def answer(model, batches):
        add_lora(model, rank, targets=targets, rng=0)
        optimizer = AdamW(model.trainable_parameters(), betas=(0.9, 0.99), weight_decay=0.0)
        schedule = CosineSchedule(lr=0.03, warmup_steps=6, total_steps=60)
        read = Taken(batches, take)
        Trainer(model, read, optimizer=optimizer, schedule=schedule, progress=False).run(steps)
        return model

    return answer


def by_a_loop_of_its_own(model, batches):
    from tinytorch import clip_grad_norm, functional

    add_lora(model, 3, targets=["linear2", "out_proj"], rng=1)
    optimizer = AdamW(model.trainable_parameters(), lr=0.03, betas=(0.9, 0.99), weight_decay=0.0)
    for step in range(60):
        inputs, targets = batches[step]
        optimizer.lr = 0.03 * min(1, (step + 1) / 6, (60 - step) / 40)
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), targets).backward()
        clip_grad_norm(optimizer.params, 1.0)
        optimizer.step()
    return model


class BiasLearns(Repaired):
    def __init__(self, linear, rank, alpha):
        super().__init__(linear, rank, alpha)
        linear.bias.requires_grad = True


class Detached(Repaired):
    def forward(self, x):
        return self.linear(x) + (Tensor(x.data) @ self.A) @ self.B * self.factor


RIGHT = {
    "lora_by_hand": [by_the_whole_product],
    "lora_stuck": [changed(AnotherName, a=0.0, b=0.1)],
    "lora_merged": [merged_by_sum],
    "lora_names": [adapt(), by_a_loop_of_its_own],
}
WRONG = {
    "lora_predict": guesses(GUESSES),
    "lora_by_hand": {
        "… r is a side of A": with_scale(lambda alpha, r: alpha),
        "… in both gradients": gradients_without_scale,
        "… not r / alpha": with_scale(lambda alpha, r: r / alpha),
        "… alpha / r times": with_scale(lambda alpha, r: 1),
        "… without a root": with_scale(lambda alpha, r: alpha / r**0.5),
        "… then B's": lambda *given: [by_the_whole_product(*given)[i] for i in (0, 2, 1)],
    },
    "lora_stuck": {
        "x cut off": (Detached),
        "… bias is missing": changed(Repaired, biases=-1),
        "… added twice": changed(Repaired, biases=1),
        "… upside down": changed(Repaired, scale=lambda alpha, rank: rank / alpha),
        "… Divide alpha": changed(Repaired, scale=lambda alpha, rank: alpha),
        "… counts alpha / rank times": changed(Repaired, scale=lambda alpha, rank: 1),
        "the bias learns": (BiasLearns),
        "… let only B be 0": changed(Repaired, a=0.0),
        "… one of A and B is 0": changed(Repaired, b=0.1),
        "… two Parameters": changed(Repaired, learns=partial(Tensor, requires_grad=True)),
    },
    "lora_merged": {
        "… a scale of its own": lambda W, A, B, scale: merged_by_sum(W, A, B, scale / scale),
        "… not averaged": lambda W, A, B, scale: merged_by_sum(W, A, B, scale / len(A)),
        "… do not divide": lambda W, A, B, scale: merged_by_sum(W, A, B, scale / A.shape[-1]),
        "squeezed": lambda *given: merged_by_sum(*given).squeeze(),
        "… Add them to W": lambda W, *given: merged_by_sum(0, *given),
        "… sum over the first": lambda W, A, B, scale: W + (A.T * scale).T @ B,
        "… with its own B": lambda W, A, B, scale: W + sum(A) @ sum(B) * sum(scale),
    },
    "lora_names": {
        "… compared with the token table": adapt(rank=1, targets=ATTENTION),
        "… At most 60 steps": adapt(steps=180, take=lambda b, i: b[i % 60]),
        "too many numbers": adapt(rank=4, targets=EVERY_LINEAR, steps=1),
    },
}
