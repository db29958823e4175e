"""Vectors to text: the transformer, GPT, and how it generates."""
