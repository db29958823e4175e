"""Text to vectors: corpora, tokenizers, batches, chat templates and embeddings."""
