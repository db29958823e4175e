"""The published GPT-2 in our own `GPT`: its weights and its tokenizer (Radford et al., 2019).

The model is the one that the book builds, with the weights that OpenAI trained. From a terminal it
continues a text (`__main__.py`):

    python -m tinytorch.models.gpt2 "Once upon a time" --tokens 50 --temperature 0.8 --seed 0

and `--verify` compares what it generates with what GPT-2 small is known to generate.
"""

from tinytorch.models.gpt2.hub_files import ADDRESS, PUBLISHED
from tinytorch.models.gpt2.loading import load_gpt2, published_tensors
from tinytorch.models.gpt2.verifying import KNOWN, Comparison, compare, verify
from tinytorch.models.streamed_text import stream_text

__all__ = [
    "ADDRESS",
    "KNOWN",
    "PUBLISHED",
    "Comparison",
    "compare",
    "load_gpt2",
    "published_tensors",
    "stream_text",
    "verify",
]
