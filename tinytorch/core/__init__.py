"""Arrays that know their gradient, and the layers, losses and optimisers built on them.

Read first: `tensor`, `graph`, `primitive`, `ops`, `backward`; then `functional` (operations of a
model, each with its gradient), `layers`, `attention`, `losses`, `optimizers`. What they share:
`module`, `seeding`, `arguments` (errors), `grad_mode` (`no_grad`), `gradcheck`. For speed alone:
`kernels` (matrix products, `exp` and `tanh`), `chunks`, `array_forms`, `blas_threads`,
`freed_memory`, and the weights in fewer bits, `quantization`, `block_formats`, `block_weights`.
"""
