"""Published models of Llama's kind in our own `GPT`: their weights and tokenizers.

The parts are `RMSNorm` and `SwiGLU`, rotary positions and grouped queries (`llama_parts`). From a
terminal SmolLM2, a model of 135 million parameters, answers questions (`__main__.py`):

    python -m tinytorch.models.llama "What is the capital of France?"

and `--verify` checks its file, and that it gives the answer which it is known to give.
"""

from tinytorch.models.llama.loading import chat_template, load_llama
from tinytorch.models.llama.published import PUBLISHED, published_file
from tinytorch.models.llama.verifying import verify
from tinytorch.models.streamed_text import stream_answer

__all__ = ["PUBLISHED", "chat_template", "load_llama", "published_file", "stream_answer", "verify"]
