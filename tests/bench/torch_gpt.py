"""The same GPT in PyTorch eager, as one would write it there: the partner of every benchmark.

It uses what makes eager fast: one product for queries, keys and values, fused attention, inference
mode, a preallocated cache.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tinytorch import GPT


class Block(nn.Module):
    """A pre-norm block; `cache` is this layer's pair of preallocated keys and values."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.linear1, self.linear2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x: torch.Tensor, cache: Any = None, past: int = 0) -> torch.Tensor:
        batch, seq, d = x.shape
        split = self.qkv(self.ln1(x)).view(batch, seq, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = split.unbind(0)  # each (batch, heads, seq, d / heads)
        if cache is not None:
            keys, values = cache
            keys[:, :, past : past + seq], values[:, :, past : past + seq] = k, v
            k, v = keys[:, :, : past + seq], values[:, :, : past + seq]
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=seq > 1)
        x = x + self.out_proj(mixed.transpose(1, 2).reshape(batch, seq, d))
        return x + self.linear2(F.gelu(self.linear1(self.ln2(x)), approximate="tanh"))


class TorchGPT(nn.Module):
    """A GPT with learned positions and tied weights, holding the weights of one of ours."""

    def __init__(self, ours: GPT) -> None:
        super().__init__()
        d, heads = ours.embed_dim, ours.blocks[0].attention.num_heads
        self.heads, self.max_seq_len = heads, ours.max_seq_len
        self.tokens = nn.Embedding(ours.vocab_size, d)
        self.positions = nn.Embedding(ours.max_seq_len, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in ours.blocks)
        self.ln_f = nn.LayerNorm(d)
        self._copy(ours)

    def forward(
        self, ids: torch.Tensor, cache: Any = None, past: int = 0, last_only: bool = False
    ) -> torch.Tensor:
        where = torch.arange(past, past + ids.shape[1])
        x = self.tokens(ids) + self.positions(where)
        for i, block in enumerate(self.blocks):
            x = block(x, None if cache is None else cache[i], past)
        x = self.ln_f(x[:, -1:] if last_only else x)
        return F.linear(x, self.tokens.weight)

    @torch.inference_mode()
    def generate(self, ids: torch.Tensor, new: int) -> torch.Tensor:
        """Greedy text with a preallocated cache."""
        size = (
            ids.shape[0],
            self.heads,
            self.max_seq_len,
            self.tokens.weight.shape[1] // self.heads,
        )
        cache = [(torch.empty(size), torch.empty(size)) for _ in self.blocks]
        past, unread = 0, ids
        for _ in range(new):
            logits = self(unread, cache, past, last_only=True)
            past += unread.shape[1]
            unread = logits[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, unread], dim=1)
        return ids

    def _copy(self, ours: GPT) -> None:
        state = {name: torch.tensor(p.data) for name, p in ours.named_parameters()}
        with torch.no_grad():
            self.tokens.weight.copy_(state["token_embedding.weight"])
            self.positions.weight.copy_(state["position_embedding.position_embeddings"])
            for i, block in enumerate(self.blocks):
                at = f"blocks.{i}."
                qkv = [at + f"attention.{name}_proj" for name in "qkv"]
                block.qkv.weight.copy_(torch.cat([state[n + ".weight"].T for n in qkv]))
                block.qkv.bias.copy_(torch.cat([state[n + ".bias"] for n in qkv]))
                for mine, name in (
                    (block.out_proj, "attention.out_proj"),
                    (block.linear1, "mlp.linear1"),
                    (block.linear2, "mlp.linear2"),
                ):
                    mine.weight.copy_(state[f"{at}{name}.weight"].T)
                    mine.bias.copy_(state[f"{at}{name}.bias"])
                for mine, name in ((block.ln1, "ln1"), (block.ln2, "ln2")):
                    mine.weight.copy_(state[f"{at}{name}.gamma"])
                    mine.bias.copy_(state[f"{at}{name}.beta"])
            self.ln_f.weight.copy_(state["ln_f.gamma"])
            self.ln_f.bias.copy_(state["ln_f.beta"])
