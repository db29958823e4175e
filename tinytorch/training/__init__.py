"""Training a model: the loop, what is measured and what is kept; and the model of this book."""
