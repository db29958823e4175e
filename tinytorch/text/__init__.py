"""Text to vectors: corpora and embeddings."""
