"""A model of which one part is in float64: both forms give logits of the same dtype."""

from functools import partial

import numpy as np
import pytest

from tinytorch import GPT, MultiHeadAttention, RMSNorm, SwiGLU, no_grad
from tinytorch.models.generation import logits_of
from tinytorch.models.lora import EVERY_LINEAR, add_lora

grouped = partial(MultiHeadAttention, num_kv_heads=2)
llama = {"pos_encoding": "rotary", "norm": RMSNorm, "mlp": SwiGLU, "attention": grouped}
MODELS = {
    "untied": lambda: GPT(11, 8, 1, 4, max_seq_len=8, tie_weights=False),
    "llama": lambda: GPT(11, 8, 1, 4, max_seq_len=8, **llama),
    "post-norm": lambda: GPT(11, 8, 1, 4, max_seq_len=8, pre_norm=False),
    "lora": lambda: add_lora(GPT(11, 8, 1, 4, max_seq_len=8), 2, targets=EVERY_LINEAR),
}


@pytest.mark.parametrize("kind", MODELS)
def test_array_form_and_forward_agree_on_the_dtype_whichever_parameter_is_wide(kind):
    names = [name for name, _ in MODELS[kind]().named_parameters()]
    for wide in (*names, "none"):
        model, rng = MODELS[kind]().eval(), np.random.default_rng(0)
        for name, p in model.named_parameters():
            p.data = rng.normal(0, 0.5, p.shape).astype(float if name == wide else np.float32)
        read, cache = logits_of(model, model.new_cache()), model.new_cache()
        for ids in ([[1, 2, 3]], [[4]]):
            with no_grad():
                found, expected = read(np.array(ids)), model(ids, cache=cache).data[:, -1]
            assert found.dtype == expected.dtype == (np.float32 if wide == "none" else float), wide
            np.testing.assert_allclose(found, expected, atol=1e-5)
