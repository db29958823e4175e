"""Small random Llamas in the hub's layout and in GGUF, made without the code under test."""

import json

import numpy as np
from gguf_files import write_gguf
from hub_folders import safetensors_bytes, tokenizer_json

__all__ = ["CONFIG", "IN_GGUF", "SIZES", "chat_tokenizer", "gguf_contents", "random_llama",
           "write_llama"]  # fmt: skip

CONFIG = {
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": 16,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-3,
    "rope_theta": 500.0,
    "tie_word_embeddings": True,
    "vocab_size": 261,
}
IN_GGUF = {  # in the hub's layout, in GGUF
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
SIZES = {
    "vocab_size": "vocab_size",
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "rope_theta": "rope.freq_base",
}


def random_llama(config=CONFIG, seed=0):
    """The tensors of such a model, under the hub's names."""
    d, inner, vocab = (config[n] for n in ("hidden_size", "intermediate_size", "vocab_size"))
    shared = d // config["num_attention_heads"] * config["num_key_value_heads"]
    shapes = {"model.embed_tokens": (vocab, d), "model.norm": (d,)}
    if not config["tie_word_embeddings"]:
        shapes["lm_head"] = (vocab, d)
    for i in range(config["num_hidden_layers"]):
        for name, *shape in (
            ("input_layernorm", d), ("post_attention_layernorm", d), ("self_attn.q_proj", d, d),
            ("self_attn.k_proj", shared, d), ("self_attn.v_proj", shared, d),
            ("self_attn.o_proj", d, d), ("mlp.gate_proj", inner, d), ("mlp.up_proj", inner, d),
            ("mlp.down_proj", d, inner),
        ):  # fmt: skip
            shapes[f"model.layers.{i}.{name}"] = tuple(shape)
    rng = np.random.default_rng(seed)
    return {f"{n}.weight": rng.normal(0, 0.3, s).astype(np.float32) for n, s in shapes.items()}


def chat_tokenizer():
    """The vocabulary of `tokenizer_json` with the two special tokens of ChatML."""
    content = tokenizer_json()
    (end,) = content["added_tokens"]
    for i, name in enumerate(("<|im_start|>", "<|im_end|>"), 259):
        content["added_tokens"].append({**end, "id": i, "content": name})
    return content


def gguf_contents(config, tensors):
    """The same model as metadata and tensors of a GGUF."""
    told = chat_tokenizer()
    ids = told["model"]["vocab"] | {token["content"]: token["id"] for token in told["added_tokens"]}
    tokenizer = {
        "model": "gpt2",
        "pre": "gpt-2",
        "tokens": sorted(ids, key=ids.get),
        "token_type": [1] * 258 + [3] * 3,
        "merges": [" ".join(pair) for pair in told["model"]["merges"]],
    }
    metadata = {"general.architecture": "llama"}
    metadata |= {f"llama.{key}": config[name] for name, key in SIZES.items()}
    metadata |= {f"tokenizer.ggml.{key}": value for key, value in tokenizer.items()}
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    stored = {}
    for name, array in tensors.items():
        layer, _, part = name.removesuffix(".weight").removeprefix("model.layers.").partition(".")
        block = layer.isdecimal()
        if part in ("self_attn.q_proj", "self_attn.k_proj"):  # as convert_hf_to_gguf.py permutes
            order = [h + i + half * head_dim // 2 for h in range(0, len(array), head_dim)
                     for i in range(head_dim // 2) for half in (0, 1)]  # fmt: skip
            array = array[order]
        told_as = IN_GGUF[part] if block else IN_GGUF[name.removesuffix(".weight")]
        stored[f"blk.{layer}.{told_as}.weight" if block else f"{told_as}.weight"] = array
    return metadata, stored


def write_llama(path, config=CONFIG, tensors=None):
    """Write a folder, or a file if the path ends in .gguf; returns it."""
    tensors = random_llama(config) if tensors is None else tensors
    if path.suffix == ".gguf":
        return write_gguf(path, *gguf_contents(config, tensors))
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    (path / "tokenizer.json").write_text(json.dumps(chat_tokenizer()))
    (path / "model.safetensors").write_bytes(safetensors_bytes(tensors))
    return path
