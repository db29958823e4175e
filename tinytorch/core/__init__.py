"""Arrays that know their gradient, and the layers, losses and optimisers built on them."""
