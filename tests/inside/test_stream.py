"""The stream of a GPT, against the same computed by hand."""

import numpy as np
import pytest

from tinytorch import (
    GPT,
    causal_mask,
    functional,
)
from tinytorch.inside.ablation import ablated
from tinytorch.inside.heads import attention_weights
from tinytorch.inside.patching import patched
from tinytorch.inside.stream import logit_lens, recorded, residual_stream, stage_name

IDS = np.array([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]])


def lively(**options):
    return GPT(7, 8, 3, 2, max_seq_len=16, init_std=0.5, rng=0, **options)


@pytest.fixture
def model():
    return lively()


def test_every_stage_is_its_block_applied_to_the_previous_one(model):
    stream = residual_stream(model, IDS)
    x = model.position_embedding(model.token_embedding(IDS))
    np.testing.assert_allclose(stream[0], x.data, atol=1e-6)
    for stage, block in enumerate(model.blocks):
        x = block(x, mask=causal_mask(5))
        np.testing.assert_allclose(stream[stage + 1], x.data, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"tie_weights": False}])
def test_the_lens_scores_every_stage_with_the_last_norm_and_the_output_layer(options):
    model = lively(**options)
    stream = residual_stream(model, IDS)
    table = model.token_embedding.weight.data.T if options == {} else model.lm_head.weight.data
    for x, seen in zip(stream, logit_lens(model, stream), strict=True):
        centred = x - x.mean(axis=-1, keepdims=True)
        normed = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
        scores = normed @ table  # the norm of a new model has neither gain nor shift
        scores -= np.log(np.exp(scores).sum(axis=-1, keepdims=True))
        np.testing.assert_allclose(seen, scores, atol=1e-4)
    final = functional.log_softmax(model(IDS)).data
    np.testing.assert_allclose(logit_lens(model, stream)[-1], final, atol=1e-5)


@pytest.mark.parametrize("encoding", ["learned", "rotary", "alibi"])
def test_recorded_attention_weights_reproduce_the_layers_output(encoding):
    model = lively(pos_encoding=encoding)
    weights = attention_weights(model, IDS)
    for i, block in enumerate(model.blocks):
        name = f"blocks.{i}.attention"
        values, mixed = recorded(model, IDS, f"{name}.v_proj", name)
        values = values.reshape(2, 5, 2, 4).swapaxes(1, 2)  # (batch, heads, keys, size)
        taken = (weights[i] @ values).swapaxes(1, 2).reshape(2, 5, 8)
        np.testing.assert_allclose(block.attention.out_proj(taken).data, mixed, atol=1e-5)


def test_a_part_that_is_ablated_adds_nothing_to_the_stream(model):
    with ablated(model, "blocks.1.mlp"):
        stream = residual_stream(model, IDS)
        (added,) = recorded(model, IDS, "blocks.1.attention")
    np.testing.assert_allclose(stream[2], stream[1] + added, atol=1e-6)
    with ablated(model, "blocks.1"):
        stream = residual_stream(model, IDS)
    np.testing.assert_array_equal(stream[2], stream[1])


def test_a_part_can_always_add_its_mean_instead(model):
    (added,) = recorded(model, IDS, "blocks.0.mlp")
    mean = added.mean(axis=(0, 1))
    with ablated(model, "blocks.0.mlp", value=mean):
        (same,) = recorded(model, IDS, "blocks.0.mlp")
    np.testing.assert_allclose(same, np.broadcast_to(mean, same.shape), atol=1e-6)


def test_a_head_that_is_ablated_is_missing_from_the_sum_of_the_heads(model):
    part, name = model.blocks[2].attention, "blocks.2.attention"
    (whole,) = recorded(model, IDS, name)
    seen = []
    for head in (0, 1):
        with ablated(model, name, head=head):
            seen.append(recorded(model, IDS, name)[0])
    bias = part.out_proj.bias.data
    np.testing.assert_allclose(sum(seen) - bias, whole, atol=1e-5)  # each lacks the other
    assert np.abs(seen[0] - whole).max() > 0.01 < np.abs(seen[1] - whole).max()


def test_patching_a_position_does_not_change_earlier_ones(model):
    other = residual_stream(model, IDS[::-1])[1]
    plain = residual_stream(model, IDS)
    with patched(model, stage_name(1), other[:, 2], positions=2):
        stream = residual_stream(model, IDS)
    np.testing.assert_array_equal(stream[1][:, 2], other[:, 2])
    np.testing.assert_array_equal(stream[1][:, [0, 1, 3, 4]], plain[1][:, [0, 1, 3, 4]])
    np.testing.assert_array_equal(stream[3][:, :2], plain[3][:, :2])
    assert not np.allclose(stream[3][:, 3:], plain[3][:, 3:])


def test_unknown_heads_are_refused(model):
    with pytest.raises(ValueError, match=r"blocks\.0\.attention has heads 0 to 1, not 2"):
        ablated(model, "blocks.0.attention", head=2)
    with pytest.raises(ValueError, match=r"'blocks\.0\.mlp' has no heads; name an attention"):
        ablated(model, "blocks.0.mlp", head=0)
    with pytest.raises(TypeError, match="head must be an integer, got True"):
        ablated(model, "blocks.0.attention", head=True)
    with (
        pytest.raises(ValueError, match=r"no part 'blocks\.3\.mlp'; its parts"),
        ablated(model, "blocks.3.mlp"),
    ):
        pass


def test_a_value_of_another_size_is_refused(model):
    with pytest.raises(ValueError, match=r"value must be a number or \(\d+,\), got shape \(3,\)"):
        ablated(model, "blocks.0.attention", head=1, value=np.ones(3))
    with (
        pytest.raises(ValueError, match=r"value must be a number or \(\d+,\), got shape \(3,\)"),
        ablated(model, "blocks.0", value=np.ones(3)),
    ):
        model(IDS)


def test_a_part_that_is_never_called_is_not_recorded(model):
    model.spare = lively().blocks[0]
    with pytest.raises(ValueError, match="the model has spare but did not call it"):
        recorded(model, IDS, "spare")
