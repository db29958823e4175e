"""Vectors to text: the transformer, GPT, and how it generates."""

import tinytorch.models.gpt_array_forms  # registers a faster form for `generate`
