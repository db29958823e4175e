"""The parts of today's models: RMSNorm and SwiGLU, and a GPT that is made of them."""

import numpy as np
import pytest
from tiny_models import LLAMA, exact, message, normal, stirred, tiny_gpt

from tinytorch import GPT, MLP, RMSNorm, SwiGLU, Tensor, check_gradients


def size(module):
    return sum(p.size for p in module.parameters())


# RMSNorm -----------------------------------------------------------------------------------------


def test_a_row_is_divided_by_its_root_mean_square_and_scaled():
    norm = RMSNorm(2, eps=0.0)
    norm.gamma.data[...] = [1.0, 10.0]
    expected = [[0.2, 14.0]]  # (1 + 49) / 2 is 25
    np.testing.assert_allclose(norm(Tensor([[1.0, 7.0]])).data, expected, rtol=1e-6)


@pytest.mark.parametrize("shape", [(6,), (2, 3, 6)])
def test_gradients_of_rms_norm_match_finite_differences(shape):
    norm = stirred(RMSNorm(6))
    found = check_gradients(norm, normal(*shape), tol=1e-8)
    assert found and found.count == np.prod(shape) + 6, found


def test_rms_norm_refuses_bad_input():
    told = message(ValueError, lambda: RMSNorm(4)(np.ones((2, 1))))  # 1 would broadcast
    assert told == "RMSNorm: the last axis must have length 4, got shape (2, 1)"
    assert "eps" in message(ValueError, lambda: RMSNorm(4, eps=-1.0))
    assert "size" in message(ValueError, lambda: RMSNorm(0))


# SwiGLU ------------------------------------------------------------------------------------------


def test_every_hidden_unit_is_multiplied_by_its_gate():
    mlp, x = stirred(SwiGLU(4, 6)), exact(2, 3, 4)
    p = {name: parameter.data for name, parameter in mlp.named_parameters()}
    gate = x.data @ p["gate.weight"]
    hidden = gate / (1 + np.exp(-gate)) * (x.data @ p["linear1.weight"])
    np.testing.assert_allclose(mlp(x).data, hidden @ p["linear2.weight"], rtol=1e-12, atol=1e-14)


def test_swiglu_of_two_thirds_width_has_as_many_weights_as_an_mlp():
    assert all(p.ndim == 2 for p in SwiGLU(6).parameters())
    biases = 24 + 6
    assert size(SwiGLU(6, 16)) == size(MLP(6, 24)) - biases


def test_a_gate_far_below_zero_is_closed_without_a_warning():
    mlp = SwiGLU(1, 1)
    for p in mlp.parameters():
        p.data[...] = 1.0
    ids = np.array([[-1e4]], dtype=np.float32)
    assert mlp(Tensor(ids)).data.item() == 0


# In a model --------------------------------------------------------------------------------------


def test_parameters_are_counted_by_part():
    found = tiny_gpt(**LLAMA).num_parameters()
    d, kv, hidden = 8, 4, 32
    assert found["attention"] == 2 * (2 * d * d + 2 * d * kv)
    assert found["mlp"] == 2 * 3 * d * hidden
    assert found["norms"] == 5 * d
    assert found["token_embedding"] == found["lm_head"] == 11 * d


def test_llama_scales_down_the_output_projections():
    model = GPT(50, 64, 8, max_seq_len=8, rng=0, **LLAMA)
    narrow, wide = model.blocks[0].mlp.linear2.weight.data, model.blocks[0].mlp.gate.weight.data
    assert narrow.std() == pytest.approx(0.02 / 4, rel=0.05)
    assert wide.std() == pytest.approx(0.02, rel=0.05)
