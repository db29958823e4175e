"""What fewer bits cost the story GPT, in nats: five times what was measured is too much.

Two figures: how much the mean loss on held-out stories changes, which may fall as well as rise, and
the divergence of the new predictions from the old ones, which says how far they have moved.
"""

import copy
from types import SimpleNamespace

import numpy as np
import pytest

from tinytorch import AdamW, functional, no_grad
from tinytorch.core.quantization import quantize
from tinytorch_book.experiments.story_gpt import load_story_gpt, story_batches, story_windows


def log_probs(model, windows):
    with no_grad():
        return functional.log_softmax(model(windows.inputs)).data.astype(np.float64)


def loss(logs, windows):
    return -np.take_along_axis(logs, windows.targets[..., None], axis=-1).mean()


def divergence(old, new):
    return (np.exp(old) * (old - new)).sum(axis=-1).mean()


def one_scale_each(model):
    """The model with its matrices rounded to 8 bits, each in units of a single scale."""
    rounded = copy.deepcopy(model)
    for name, p in rounded.named_parameters():
        if name.endswith("weight"):
            scale = np.abs(p.data).max() / 127
            p.data = np.rint(p.data / scale) * scale
    return rounded


def with_an_outlier(model, factor, channel=5):
    """The same function: what a norm gives less of in one channel, larger weights give back."""
    model = copy.deepcopy(model)
    for block in model.blocks:
        attention = block.attention
        for norm, layers in (
            (block.ln1, (attention.q_proj, attention.k_proj, attention.v_proj)),
            (block.ln2, (block.mlp.linear1,)),
        ):
            norm.gamma.data[channel] /= factor
            norm.beta.data[channel] /= factor
            for layer in layers:
                layer.weight.data[channel] *= factor
    return model


@pytest.fixture(scope="module")
def story():
    """The model, held-out windows, and its predictions there."""
    model, windows = load_story_gpt(), story_windows()
    return SimpleNamespace(model=model, windows=windows, logs=log_probs(model, windows))


def test_int8_barely_changes_the_loss_of_the_story_gpt(story):
    logs = log_probs(quantize(story.model), story.windows)
    cost = loss(logs, story.windows) - loss(story.logs, story.windows)
    assert 0 < abs(cost) < 5 * 1.5e-4
    assert 0 < divergence(story.logs, logs) < 5 * 1.45e-5
    gap = loss(story.logs, story.windows) - story.windows.floor.mean()
    assert abs(cost) < gap / 3  # less than what parts the model from the best one there can be


def test_float16_changes_the_loss_even_less_and_not_at_all_for_float16_weights(story):
    """The stored weights are in half precision: some more steps give them the other bits."""
    assert np.array_equal(log_probs(quantize(story.model, "float16"), story.windows), story.logs)
    model, batches = load_story_gpt().train(), story_batches(num_stories=500)
    optimizer = AdamW(model.parameters(), lr=1e-3)
    for step in range(20):
        inputs, targets = batches[step]
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    old, new = (log_probs(m, story.windows) for m in (model.eval(), quantize(model, "float16")))
    assert abs(loss(new, story.windows) - loss(old, story.windows)) < 5 * 3e-6
    assert 0 < divergence(old, new) < 5 * 3e-8


def test_an_outlier_spoils_a_shared_scale_but_not_row_scales(story):
    plain = divergence(story.logs, log_probs(quantize(story.model), story.windows))
    for factor, least in ((1, 2), (30, 30)):
        model = with_an_outlier(story.model, factor)
        rows = divergence(story.logs, log_probs(quantize(model), story.windows))
        single = divergence(story.logs, log_probs(one_scale_each(model), story.windows))
        assert rows == pytest.approx(plain, rel=0.01)
        assert single > least * rows
