"""The loss on answers alone, beside that of `GPT2LMHeadModel` with labels of -100.

Its labels are the ids themselves, which it shifts; ours are targets, shifted already. So the masks
look different: a label is -100 for each of the prompt's tokens, a target for all but one of them.
"""

import numpy as np
import pytest
import torch
from test_transformers import TOLERANCE, V, ours_from, reference_model

from tinytorch import functional
from tinytorch.text.chat import IGNORED, answer_rows

SIZES = [(7, 3), (1, 1), (9, 2), (4, 5)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_loss_on_answers_and_its_gradient(dtype):
    rng = np.random.default_rng(0)
    chats = [tuple(rng.integers(0, V, size=n).tolist() for n in pair) for pair in SIZES]
    longest = max(map(sum, SIZES))
    ids = torch.zeros((len(chats), longest), dtype=torch.long)
    labels = torch.full_like(ids, -100)
    for row, (prompt, answer) in enumerate(chats):
        ids[row, : len(prompt) + len(answer)] = torch.tensor(prompt + answer)
        labels[row, len(prompt) : len(prompt) + len(answer)] = torch.tensor(answer)
    reference = reference_model(dtype)
    found = reference(ids, labels=labels)  # its loss is in float32 whatever the model
    shifted = found.logits[:, :-1].reshape(-1, V), labels[:, 1:].reshape(-1)
    torch.nn.functional.cross_entropy(*shifted, ignore_index=-100).backward()

    model = ours_from(reference, dtype)
    inputs, targets = answer_rows(chats)
    loss = functional.cross_entropy(model(inputs), targets, ignore_index=IGNORED)
    loss.backward()
    assert loss.item() == pytest.approx(found.loss.item(), rel=1e-6)
    wanted = reference.transformer.wte.weight.grad.numpy()
    error = np.abs(model.token_embedding.weight.grad - wanted).max() / np.abs(wanted).max()
    assert error < TOLERANCE[dtype]
