"""Training a model: the loop, evaluation, checkpoints, and several processes."""
