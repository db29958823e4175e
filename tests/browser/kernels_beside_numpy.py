"""Compare the page's products, exp and tanh with NumPy's, in the page (test_live_kernels.py).

Random stacks of random shapes, transposed, cut, reversed and repeated, with NaN and infinity in
some of them, empty axes, and sizes beyond the parts that the library works on at a time.
"""

import numpy as np

from tinytorch.core import kernels
from tinytorch.core.block_formats import BLOCKS, decode_blocks


class Own(np.ndarray):
    """A kind of array that may multiply in its own way."""


def operand(rng, rows, columns, stack):
    """A stack of matrices as they come: in one piece, transposed, cut, reversed, repeated."""
    kind = rng.choice(["plain", "transposed", "cut", "reversed", "repeated", "special"])
    stack = [1 if rng.random() < 0.3 else n for n in stack[rng.integers(len(stack) + 1) :]]
    if kind == "transposed":
        return normal(rng, *stack, columns, rows).swapaxes(-1, -2)
    if kind == "cut":
        return normal(rng, *stack, 2 * rows, 3 * columns)[..., ::2, ::3]
    if kind == "reversed":
        return normal(rng, *stack, rows, columns)[..., ::-1, ::-1]
    if kind == "repeated":
        return np.broadcast_to(normal(rng, rows, 1), (*stack, rows, columns))
    matrices = normal(rng, *stack, rows, columns)
    if kind == "special" and matrices.size:
        matrices.flat[rng.integers(matrices.size)] = rng.choice([np.nan, np.inf, -np.inf])
    return matrices


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def agree(a, b):
    """Whether both give the same, but for the rounding of sums in another order."""
    with np.errstate(all="ignore"):
        mine, numpys = kernels.matmul(a, b), np.matmul(a, b)
        room = 1e-5 * np.matmul(np.abs(a), np.abs(b)) + 1e-30
        near = np.abs(mine - numpys) <= np.where(np.isfinite(room), room, 0)
    alike = near | (mine == numpys) | (np.isnan(mine) & np.isnan(numpys))
    return mine.dtype == numpys.dtype and mine.shape == numpys.shape and alike.all()


def weights(rng, rows, columns):
    """8-bit weights as they come: in one piece, cut, or in an order that NumPy has to take."""
    kind = rng.choice(["plain", "cut", "apart", "transposed"])
    q = rng.integers(-128, 128, (2 * rows, 2 * columns), dtype=np.int8)
    if kind == "transposed":
        return q[:columns, :rows].T
    return {"plain": q[:rows, :columns].copy(), "cut": q[::2, :columns], "apart": q[:rows, ::2]}[
        kind
    ]


def agree_in_8_bits(x, q, transposed):
    """Whether the product with 8-bit weights is that of the widened matrix, but for rounding."""
    multiply = kernels.matmul_int8_transposed if transposed else kernels.matmul_int8
    wide = (q.T if transposed else q).astype(np.float64)
    mine, exact = multiply(x, q), x.astype(np.float64) @ wide
    room = 1e-6 * (np.abs(x) @ np.abs(wide)) + 1e-30
    return (
        mine.dtype == np.float32
        and mine.shape == exact.shape
        and (np.abs(mine - exact) <= room).all()
    )


def compare_in_8_bits(rng):
    """The products with 8-bit weights, of a few rows, and of more than the library takes."""
    assert kernels.matmul_int8 is not kernels.int8_in_blocks, "the library is not used"
    for trial in range(600):
        n, rows, columns = (int(size) for size in rng.integers(0, [12, 40, 40]))
        if trial % 50 == 0:
            rows, columns = 300, 1001
        q = weights(rng, rows, columns)
        for transposed in (False, True):
            x = operand(rng, n, q.shape[transposed], [])
            while not np.isfinite(x).all():
                x = operand(rng, n, q.shape[transposed], [])
            assert agree_in_8_bits(x, q, transposed), (trial, x.shape, q.shape, q.strides)
    x, q = normal(rng, 2, 5), np.ascontiguousarray(weights(rng, 5, 3))
    for others in ((x.astype(np.float64), q), (x, q.astype(np.float16)), (x, q.view(np.uint8))):
        assert agree_in_8_bits(*others, False)
    for mine, numpys in (
        (kernels.matmul_int8, kernels.int8_in_blocks),
        (kernels.matmul_int8_transposed, kernels.int8_transposed_in_blocks),
    ):
        for wrong in ((x[:, 1:], q), (x[0], q), (x, q[0]), (x,), (x, q, q)):
            told = error_of(numpys, *wrong)
            assert error_of(mine, *wrong) == told != "no error", wrong


def blocks(rng, rows, count, kind):
    """Rows of blocks, as a file stores them; sometimes each second row of twice as many."""
    layout = BLOCKS[kind]
    q = rng.integers(0, 256, (2 * rows, count, layout.itemsize), np.uint8)
    parts = q.view(layout)[..., 0]
    for name in {"scale", "smallest"} & {*layout.names}:
        parts[name] = rng.normal(scale=rng.choice([1e-6, 0.1, 100]), size=parts.shape)
    q = q.reshape(2 * rows, -1)
    return q[::2] if rng.random() < 0.5 else q[:rows]


def compare_in_blocks(rng):
    """The products with weights in blocks: an input is rounded to 16 bits, in blocks as well."""
    for trial in range(400):
        n, rows, count = (int(size) for size in rng.integers(1, [12, 40, 9]))
        if trial % 50 == 0:
            n, rows, count = 30, 700, 50
        for kind in kernels.FAST_BLOCKS:
            x, q = operand(rng, n, count * 32, []), blocks(rng, rows, count, kind)
            mine, wide = kernels.matmul_blocks(x, q, kind), decode_blocks(q, kind)
            assert mine.dtype == np.float32 and mine.shape == (n, rows)
            assert kernels.matmul_blocks(x[:, :0], q[:, :0], kind).tolist() == [[0] * rows] * n
            largest = np.abs(x.reshape(n, count, 32)).max(axis=2).repeat(32, axis=1)
            exact = x.astype(np.float64) @ wide.T
            room = (largest / 65_534 + 1e-6 * np.abs(x)) @ np.abs(wide.T).astype(np.float64)
            near = np.abs(mine - exact) <= 1.01 * room + 1e-30
            assert (near | ~np.isfinite(exact) & ~np.isfinite(mine)).all(), (trial, kind, n)


def near_and_far():
    """Numbers of every size and both signs, with the special ones: as many as six divides."""
    sizes = np.concatenate([np.geomspace(1e-40, 1e3, 5001), np.linspace(0, 110, 6994)])
    sizes = np.append(sizes, [np.inf, np.nan]).astype(np.float32)
    return np.concatenate([sizes, -sizes])[: 2 * len(sizes) // 6 * 6]


def assert_within_three_units(mine, numpys):
    """Compare in units of the last place; the smallest normal number's, for those below it."""
    assert mine.dtype == numpys.dtype and mine.shape == numpys.shape
    same = (mine == numpys) | (np.isnan(mine) & np.isnan(numpys))
    with np.errstate(all="ignore"):
        units = np.abs(mine - numpys) / np.maximum(np.spacing(np.abs(numpys)), 2.0**-149)
    wrong = ~same & ~(units <= 3)
    assert not wrong.any(), (mine[wrong][:5], numpys[wrong][:5], units[wrong].max())


def error_of(product, *operands):
    try:
        product(*operands)
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def main():
    assert kernels.matmul is not np.matmul, "the library is not used"
    rng = np.random.default_rng(0)
    for trial in range(1000):
        large = trial % 100 == 0
        least, most = (100, 600) if large else (int(rng.random() > 0.1), 40)
        m, k, n = (int(size) for size in rng.integers(least, most, 3))
        stack = [int(size) for size in rng.integers(least > 0, 4, 0 if large else rng.integers(4))]
        a, b = operand(rng, m, k, stack), operand(rng, k, n, stack)
        assert agree(a, b), (trial, a.shape, a.strides, b.shape, b.strides)
    x = normal(rng, 3, 4)
    for others in ((x.astype(np.float64), x.T), (x.astype(int), x.T), (x, x[0]), (x[0], x.T)):
        assert agree(*others)  # float64, integers and vectors are NumPy's
    assert type(kernels.matmul(x.view(Own), x.T)) is Own
    assert kernels.matmul(x[:, :3].astype(">f4"), x).dtype == np.float32
    for wrong in ((x, x), (x, 2.0), (x,), (np.ones((2, 3, 4)), np.ones((5, 4, 3))), (x, "a")):
        assert error_of(kernels.matmul, *wrong) == error_of(np.matmul, *wrong), wrong
    compare_in_8_bits(rng)
    compare_in_blocks(rng)
    for mine, numpys in ((kernels.exp, np.exp), (kernels.tanh, np.tanh)):
        assert mine is not numpys, "the library is not used"
        numbers = near_and_far()
        for part in (numbers, numbers[:7], numbers.reshape(-1, 2, 3), numbers[:0], numbers[::2]):
            assert_within_three_units(mine(part), numpys(part))
            out = np.empty_like(part)
            assert mine(part, out) is out
            assert_within_three_units(out, numpys(part))
        assert mine(np.ones(3)).dtype == np.float64 and np.isscalar(mine(np.float32(0.5)))
        for wrong in ((x, x[:1]), ("a",), (), (x, x, x, x)):
            assert error_of(mine, *wrong) == error_of(numpys, *wrong), wrong
    print("the products are NumPy's")


if __name__ == "__main__":
    main()
