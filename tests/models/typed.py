"""What a type checker knows of the library: `make check` has mypy read this file.

Each comment stands where it must find that error; mypy reports one that it does not need.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tinytorch import GPT, Batches, Embedding, Linear, MultiHeadAttention, Tensor, Trainer, ops
from tinytorch.core import functional
from tinytorch.core.masks import causal_mask
from tinytorch.core.optimizers import AdamW
from tinytorch.models.sampling import next_token_probs
from tinytorch.training.evaluation import evaluate

if TYPE_CHECKING:
    model, layer = GPT(5, 8, 1, 2), Linear(3, 2)
    logits: Tensor = model([[1, 2]])
    wrong: int = layer(logits)  # type: ignore[assignment]
    layer(logits).summ()  # type: ignore[attr-defined]
    ids: Tensor = model.generate([1, 2], 5, temperature=0.5, top_k=3, stop_tokens=[0], rng=0)
    model.generate([1, 2], 5, tempratur=1)  # type: ignore[call-arg]
    model.generate([1, 2], 5, temperature="hot")  # type: ignore[arg-type]
    model.generate("once upon a time", 5)  # type: ignore[arg-type]
    Linear(3, 2, rng="seed")  # type: ignore[arg-type]

    x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True, dtype=np.float64)
    y: Tensor = (2 * x - np.ones(2)) @ x.T / 3 + [1, 2]
    total: Tensor = y[:, 0].sum(axis=(0,), keepdims=True) + ops.exp(x[..., None, [1, 0]]).mean()
    total.backward(np.float32(1.0))
    x.sum(axis="rows")  # type: ignore[arg-type]
    x.reshape("flat")  # type: ignore[arg-type]
    x["first"]  # type: ignore[index]
    Tensor("one")  # type: ignore[arg-type]
    ops.exp(None)  # type: ignore[arg-type]
    ops.exp(x, base=2)  # type: ignore[call-arg]

    loss: Tensor = functional.cross_entropy(logits, [1, 2], reduction="sum")
    functional.cross_entropy(logits, "ab")  # type: ignore[arg-type]
    functional.softmax(logits, axis=None)  # type: ignore[arg-type]
    mixed: Tensor = MultiHeadAttention(8, 2)(x, mask=causal_mask(2))
    MultiHeadAttention(8, 2).forward(x, mask="causal")  # type: ignore[arg-type]
    Embedding(5, 8, rng=np.random.default_rng(0)).forward(["to", "be"])  # type: ignore[list-item]
    next_token_probs({"to": 0.5})  # type: ignore[arg-type]

    batches = Batches(range(100), batch_size=2, seq_len=4, starts=[0, 10])
    Batches("to be or not to be", 2, 4)  # type: ignore[arg-type]
    trainer = Trainer(model, batches, optimizer=AdamW(model.parameters()), checkpoint=Path("run"))
    Trainer(model, batches, validation=batches[0], schedule=0.1)  # type: ignore[arg-type]
    nats: float = evaluate(lambda read: np.zeros((*read.shape, 5)), *batches[0])
    model.load_state_dict(layer.state_dict())
    model.load_state_dict([("weight", 1.0)])  # type: ignore[arg-type]
