"""TinyTorch: from tensors and embeddings to a GPT, in NumPy alone.

Packages, each using only those before it: `core` (arrays that know their gradient), `files`,
`text` (text to vectors), `models` (vectors to text), `training` and `inside`; `plots` uses `core`
at most. The names below are the public ones; the book builds each of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from tinytorch.core import blas_threads  # isort: skip (before NumPy)
from tinytorch.core import functional, ops
from tinytorch.core.activations import GELU, ReLU, Sigmoid, Softmax, Tanh
from tinytorch.core.attention import MultiHeadAttention, scaled_dot_product_attention
from tinytorch.core.gradient_clipping import clip_grad_norm
from tinytorch.core.incremental import incremental
from tinytorch.core.layers import Dropout, LayerNorm, Linear, Sequential
from tinytorch.core.losses import CrossEntropyLoss, MSELoss
from tinytorch.core.masks import causal_mask
from tinytorch.core.module import Module, Parameter
from tinytorch.core.optimizers import SGD, Adam, AdamW
from tinytorch.core.schedules import CosineSchedule
from tinytorch.core.seeding import default_rng, manual_seed
from tinytorch.core.sparse import RowSparse
from tinytorch.core.tensor import Tensor, no_grad, primitive
from tinytorch.models.kv_cache import KVCache
from tinytorch.models.llama_parts import RMSNorm, SwiGLU
from tinytorch.models.transformer import GPT, MLP, PostNormBlock, TransformerBlock
from tinytorch.text.batches import Batches
from tinytorch.text.embeddings import (
    Embedding,
    EmbeddingLayer,
    PositionalEncoding,
    create_sinusoidal_embeddings,
)

if TYPE_CHECKING:  # for type checkers and editors
    from tinytorch.core.gradcheck import GradientCheck, check_gradients
    from tinytorch.text.tokenization import BPETokenizer, CharTokenizer
    from tinytorch.training.trainer import Trainer
else:  # imported when first asked for: a third of all modules (bench: import)
    _LATER = {
        **dict.fromkeys(["GradientCheck", "check_gradients"], "tinytorch.core.gradcheck"),
        **dict.fromkeys(["BPETokenizer", "CharTokenizer"], "tinytorch.text.tokenization"),
        "Trainer": "tinytorch.training.trainer",
    }

    def __getattr__(name):
        if name not in _LATER:
            raise AttributeError(f"module 'tinytorch' has no attribute {name!r}")
        globals()[name] = getattr(import_module(_LATER[name]), name)
        return globals()[name]

    def __dir__():
        return sorted({*globals(), *__all__})


__version__ = "1.0.0"

__all__ = [
    "GELU",
    "GPT",
    "MLP",
    "SGD",
    "Adam",
    "AdamW",
    "BPETokenizer",
    "Batches",
    "CharTokenizer",
    "CosineSchedule",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "EmbeddingLayer",
    "GradientCheck",
    "KVCache",
    "LayerNorm",
    "Linear",
    "MSELoss",
    "Module",
    "MultiHeadAttention",
    "Parameter",
    "PositionalEncoding",
    "PostNormBlock",
    "RMSNorm",
    "ReLU",
    "RowSparse",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "SwiGLU",
    "Tanh",
    "Tensor",
    "Trainer",
    "TransformerBlock",
    "causal_mask",
    "check_gradients",
    "clip_grad_norm",
    "create_sinusoidal_embeddings",
    "default_rng",
    "functional",
    "incremental",
    "manual_seed",
    "no_grad",
    "ops",
    "primitive",
    "scaled_dot_product_attention",
]
