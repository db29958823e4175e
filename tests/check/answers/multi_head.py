"""Right and wrong answers to the exercises of "Multi-head attention"."""

import numpy as np

from tinytorch import (
    Linear,
    Module,
    MultiHeadAttention,
    Tensor,
    functional,
    scaled_dot_product_attention,
)

# Six predictions ------------------------------------------------------------------------------

SHAPES = {
    "queries, split": (2, 4, 10, 16),
    "values, split": (2, 4, 7, 16),
    "weights": (2, 4, 10, 7),
    "output": (2, 10, 64),
}
COUNTS = {"parameters": 16640, "parameters with 8 heads": 16640}
PREDICTIONS = {**SHAPES, **COUNTS}


# Attention in several heads -------------------------------------------------------------------


def softmax(scores, axis=-1):
    e = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def head_by_head(q, k, v, num_heads, root=None, axis=-1, transpose=False):
    """The solution; `root`, `axis` and `transpose` are what one gets wrong."""
    outputs = []
    for part in np.split(np.arange(q.shape[1]), num_heads):
        scores = q[:, part] @ k[:, part].T / np.sqrt(root or len(part))
        outputs.append(softmax(scores.T if transpose else scores, axis) @ v[:, part])
    return np.concatenate(outputs, axis=1)


def heads_at_once(q, k, v, num_heads):
    q, k, v = (x.reshape(len(x), num_heads, -1).transpose(1, 0, 2) for x in (q, k, v))
    weights = softmax(q @ k.transpose(0, 2, 1) / q.shape[-1] ** 0.5)
    return (weights @ v).transpose(1, 0, 2).reshape(q.shape[1], -1)


def heads_by_einsum(q, k, v, num_heads):
    q, k, v = (x.reshape(len(x), num_heads, -1) for x in (q, k, v))
    scores = np.einsum("qhi,khi->hqk", q, k) * q.shape[-1] ** -0.5
    return np.einsum("hqk,khi->qhi", softmax(scores), v).reshape(len(q), -1)


def every_nth_column(q, k, v, num_heads):
    output = np.empty_like(v)
    for i in range(num_heads):
        output[:, i::num_heads] = head_by_head(*(x[:, i::num_heads] for x in (q, k, v)), 1)
    return output


def merged_backwards(q, k, v, num_heads):
    parts = np.split(head_by_head(q, k, v, num_heads), num_heads, axis=1)
    return np.concatenate(parts[::-1], axis=1)


def unshifted_softmax(q, k, v, num_heads):
    with np.errstate(all="ignore"):
        outputs = []
        for part in np.split(np.arange(q.shape[1]), num_heads):
            e = np.exp(q[:, part] @ k[:, part].T / np.sqrt(len(part)))
            outputs.append(e / e.sum(axis=1, keepdims=True) @ v[:, part])
    return np.concatenate(outputs, axis=1)


def divides_in_place(q, k, v, num_heads):
    q /= np.sqrt(q.shape[1] // num_heads)
    return head_by_head(q, k, v, num_heads, root=1)


# One head switched off ------------------------------------------------------------------------


def columns_to_zero(merged, weight, bias, num_heads, head):
    size = merged.shape[1] // num_heads
    kept = merged.copy()
    kept[:, head * size : (head + 1) * size] = 0.0
    return kept @ weight + bias


def masked_columns(merged, weight, bias, num_heads, head):
    of_head = np.arange(merged.shape[1]) // (merged.shape[1] // num_heads)
    return (merged * (of_head != head)) @ weight + bias


def part_subtracted(merged, weight, bias, num_heads, head):
    size = merged.shape[1] // num_heads
    own = slice(head * size, (head + 1) * size)
    return merged @ weight + bias - merged[:, own] @ weight[own]


def rows_deleted(merged, weight, bias, num_heads, head):
    size = merged.shape[1] // num_heads
    own = np.arange(head * size, (head + 1) * size)
    return np.delete(merged, own, axis=1) @ np.delete(weight, own, axis=0) + bias


def head_alone(merged, weight, bias, num_heads, head):
    size = merged.shape[1] // num_heads
    own = slice(head * size, (head + 1) * size)
    return merged[:, own] @ weight[own] + bias


def weight_columns(merged, weight, bias, num_heads, head):
    size = len(weight) // num_heads
    kept = weight.copy()
    kept[:, head * size : (head + 1) * size] = 0.0
    return merged @ kept + bias


def output_columns(merged, weight, bias, num_heads, head):
    size = merged.shape[1] // num_heads
    output = merged @ weight + bias
    output[:, head * size : (head + 1) * size] = 0.0
    return output


def strided_columns(merged, weight, bias, num_heads, head):
    kept = merged.copy()
    kept[:, head::num_heads] = 0.0
    return kept @ weight + bias


def slice_as_long_as_the_heads(merged, weight, bias, num_heads, head):
    kept = merged.copy()
    kept[:, head * num_heads : (head + 1) * num_heads] = 0.0
    return kept @ weight + bias


def two_columns_a_head(merged, weight, bias, num_heads, head):
    kept = merged.copy()
    kept[:, head * 2 : (head + 1) * 2] = 0.0
    return kept @ weight + bias


def up_to_the_head(merged, weight, bias, num_heads, head):
    kept = merged.copy()
    kept[:, : (head + 1) * (merged.shape[1] // num_heads)] = 0.0
    return kept @ weight + bias


def rescaled_like_dropout(merged, weight, bias, num_heads, head):
    scale = num_heads / max(num_heads - 1, 1)
    return columns_to_zero(merged * scale, weight, bias, num_heads, head)


def in_place(merged, weight, bias, num_heads, head):
    size = merged.shape[1] // num_heads
    merged[:, head * size : (head + 1) * size] = 0.0
    return merged @ weight + bias


# A layer --------------------------------------------------------------------------------------


class Attention(Module):
    """The solution in small steps; each answer below changes one of them."""

    def __init__(self, embed_dim, num_heads, dropout_prob=0.0):
        self.num_heads = num_heads
        self.q_proj = Linear(embed_dim, embed_dim)
        self.k_proj = Linear(embed_dim, embed_dim)
        self.v_proj = Linear(embed_dim, embed_dim)
        self.out_proj = Linear(embed_dim, embed_dim)

    def project(self, x):
        return self.q_proj(x), self.k_proj(x), self.v_proj(x)

    def split(self, y):
        B, T, _ = y.shape
        return y.reshape(B, T, self.num_heads, -1).permute(0, 2, 1, 3)

    def attend(self, q, k, v, mask):
        return scaled_dot_product_attention(q, k, v, mask)[0]

    def merge(self, mixed):
        B, h, T, size = mixed.shape
        return mixed.permute(0, 2, 1, 3).reshape(B, T, h * size)

    def forward(self, x, mask=None):
        q, k, v = (self.split(y) for y in self.project(x))
        return self.out_proj(self.merge(self.attend(q, k, v, mask)))


class Fused(Attention):
    def attend(self, q, k, v, mask):
        return functional.attention(q, k, v, mask=mask)


class Composed(Attention):
    scale, masked, axis = -0.5, True, -1

    def attend(self, q, k, v, mask):
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** self.scale
        if mask is not None and self.masked:
            scores = scores + mask
        return functional.softmax(scores, axis=self.axis) @ v


class WithoutBatchAxis(Attention):
    """Sequence by sequence, head by head: slow, and right."""

    def forward(self, x, mask=None):
        B, T, d = x.shape
        size = d // self.num_heads
        rows = []
        for b in range(B):
            q, k, v = (p(x[b]) for p in (self.q_proj, self.k_proj, self.v_proj))
            for i in range(self.num_heads):
                own = slice(i * size, (i + 1) * size)
                head = scaled_dot_product_attention(
                    q[:, own].reshape(1, T, size),
                    k[:, own].reshape(1, T, size),
                    v[:, own].reshape(1, T, size),
                    mask,
                )[0]
                part = head.reshape(T, size) @ self.out_proj.weight[own]
                total = part if i == 0 else total + part  # noqa: F821
            rows.append((total + self.out_proj.bias).reshape(1, T, d))
        output = rows[0] * 0.0
        for b, row in enumerate(rows):
            output = output + row * (np.arange(B) == b).reshape(B, 1, 1).astype(np.float32)
        return output


class OutputFirst(Attention):
    """The parameters in another order."""

    def __init__(self, embed_dim, num_heads, dropout_prob=0.0):
        self.out_proj = Linear(embed_dim, embed_dim)
        super().__init__(embed_dim, num_heads)


class OnlyReshaped(Attention):
    def split(self, y):
        return y.reshape(y.shape[0], self.num_heads, y.shape[1], -1)

    def merge(self, mixed):
        B, h, T, size = mixed.shape
        return mixed.reshape(B, T, h * size)


class NotMovedBack(Attention):
    def merge(self, mixed):
        B, h, T, size = mixed.shape
        return mixed.reshape(B, T, h * size)


class Unmasked(Attention):
    def attend(self, q, k, v, mask):
        return super().attend(q, k, v, None)


class MaskedAfterwards(Attention):
    def attend(self, q, k, v, mask):
        weights = functional.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5)
        return weights * (1.0 if mask is None else (mask == 0)) @ v


class Unprojected(Attention):
    def forward(self, x, mask=None):
        return self.merge(self.attend(*(self.split(y) for y in self.project(x)), mask))


class OneHead(Attention):
    def __init__(self, embed_dim, num_heads, dropout_prob=0.0):
        super().__init__(embed_dim, 1)


class TwoHeads(Attention):
    def __init__(self, embed_dim, num_heads, dropout_prob=0.0):
        super().__init__(embed_dim, min(num_heads, 2))


class OverTheWholeWidth(Composed):
    def attend(self, q, k, v, mask):
        return super().attend(q * self.num_heads**-0.5, k, v, mask)


class WithoutRoot(Composed):
    scale = 0.0


class OverTheQueries(Composed):
    axis = -2


class ValuesAreKeys(Attention):
    def project(self, x):
        return self.q_proj(x), self.k_proj(x), self.k_proj(x)


class QueriesAreKeys(Attention):
    def project(self, x):
        return self.k_proj(x), self.q_proj(x), self.v_proj(x)


class Unprojecting(Attention):
    def project(self, x):
        return tuple(x @ p.weight for p in (self.q_proj, self.k_proj, self.v_proj))


class InNumpy(Attention):
    def forward(self, x, mask=None):
        return super().forward(x, mask).detach()


class ConstantWeights(Attention):
    def attend(self, q, k, v, mask):
        return Tensor(scaled_dot_product_attention(q, k, v, mask)[1].data) @ v


class NoDropoutArgument(Attention):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)


class OthersNames(Attention):
    def __init__(self, embed_dim, num_heads, dropout_prob=0.0):
        super().__init__(embed_dim, num_heads)
        self.w_o = self.__dict__.pop("out_proj")


class WithLayerInside(Attention):
    def forward(self, x, mask=None):
        d = x.shape[-1]
        inner = MultiHeadAttention(d, self.num_heads)
        inner.load_state_dict(self.state_dict())
        inner.q_proj, inner.k_proj = self.q_proj, self.k_proj
        inner.v_proj, inner.out_proj = self.v_proj, self.out_proj
        return inner(x, mask=mask)


def attend_at_once(layer, x, mask=None):
    """The function of the page, which does all that is asked."""
    return Attention.forward(layer, x, mask), None


class OfThePage(Attention):
    def forward(self, x, mask=None):
        return attend_at_once(self, x, mask)[0]


class Inherited(MultiHeadAttention):
    def forward(self, query, key=None, value=None, mask=None, cache=None):
        return super().forward(query, mask=mask)


RIGHT = {
    "heads_owner": [
        lambda d, h: np.arange(d) // (d // h),
        lambda d, h: np.repeat(np.arange(h), d // h),
        lambda d, h: np.indices((h, d // h))[0].ravel(),
        lambda d, h: np.arange(d) * h // d,
    ],
    "heads_predict": [
        PREDICTIONS,
        {name: np.array(shape).tolist() for name, shape in SHAPES.items()} | COUNTS,
        {**SHAPES, **{name: np.int64(4 * (64 * 64 + 64)) for name in COUNTS}},
    ],
    "heads_side_by_side": [head_by_head, heads_at_once, heads_by_einsum],
    "heads_output_without": [columns_to_zero, masked_columns, part_subtracted, rows_deleted],
    "heads_attention": [Attention, Fused, Composed, WithoutBatchAxis, OutputFirst],
}

WRONG = {
    "heads_owner": {
        "every h-th": lambda d, h: np.arange(d) % h,
        "width and number exchanged": lambda d, h: np.arange(d) // h,
        "from 1": lambda d, h: np.arange(d) // (d // h) + 1,
        "the place in the head": lambda d, h: np.arange(d) % (d // h),
        "heads alone": lambda d, h: np.arange(h),
        "backwards": lambda d, h: h - 1 - np.arange(d) // (d // h),
        "fractions": lambda d, h: np.arange(d) / (d // h),
        "in a loop": lambda d, h: np.array([i // (d // h) for i in range(d)]),
        "floats": lambda d, h: np.floor(np.arange(d) / (d // h)),
    },
    "heads_predict": {
        "the heads behind the positions": {**PREDICTIONS, "queries, split": (2, 10, 4, 16)},
        "values as long as the queries": {**PREDICTIONS, "values, split": (2, 4, 10, 16)},
        "one table of weights for all heads": {**PREDICTIONS, "weights": (2, 10, 7)},
        "weights with rows of keys": {**PREDICTIONS, "weights": (2, 4, 7, 10)},
        "an output for every key": {**PREDICTIONS, "output": (2, 7, 64)},
        "an output that is not merged": {**PREDICTIONS, "output": (2, 10, 16)},
        "no biases": {**PREDICTIONS, "parameters": 4 * 64 * 64},
        "one bias for all": {**PREDICTIONS, "parameters": 4 * 64 * 64 + 64},
        "parameters off by one": {**PREDICTIONS, "parameters": 16641},
        "twice the heads, twice the matrices": {**PREDICTIONS, "parameters with 8 heads": 33280},
        "the last one forgotten": {**PREDICTIONS, "parameters with 8 heads": ...},
    },
    "heads_side_by_side": {
        "the root of the whole width": lambda q, k, v, h: head_by_head(q, k, v, h, q.shape[1]),
        "the root of the number of heads": lambda q, k, v, h: head_by_head(q, k, v, h, h),
        "no root": lambda q, k, v, h: head_by_head(q, k, v, h, 1),
        "half the width, which fits two heads": lambda q, k, v, h: head_by_head(
            q, k, v, h, q.shape[1] if h == 1 else q.shape[1] // 2
        ),
        "divided by the length, not its root": lambda q, k, v, h: head_by_head(
            q, k, v, h, (q.shape[1] // h) ** 2
        ),
        "a single head": lambda q, k, v, h: head_by_head(q, k, v, 1),
        "at most two heads": lambda q, k, v, h: head_by_head(q, k, v, min(h, 2)),
        "softmax along the queries": lambda q, k, v, h: head_by_head(q, k, v, h, axis=0),
        "keys that look at queries": lambda q, k, v, h: head_by_head(q, k, v, h, transpose=True),
        "keys for values": lambda q, k, v, h: head_by_head(q, k, k, h),
        "every h-th column": every_nth_column,
        "merged in the wrong order": merged_backwards,
        "a softmax that overflows": unshifted_softmax,
        "queries changed": divides_in_place,
    },
    "heads_output_without": {
        "all heads": lambda merged, weight, bias, n, i: merged @ weight + bias,
        "always the first": lambda merged, weight, bias, n, i: columns_to_zero(
            merged, weight, bias, n, 0
        ),
        "counted from one": lambda merged, weight, bias, n, i: columns_to_zero(
            merged, weight, bias, n, i - 1
        ),
        "no bias": lambda merged, weight, bias, n, i: columns_to_zero(merged, weight, 0, n, i),
        "a share of the bias": lambda merged, weight, bias, n, i: columns_to_zero(
            merged, weight, bias * (n - 1) / n, n, i
        ),
        "the head alone": head_alone,
        "columns of the weight": weight_columns,
        "columns of the output": output_columns,
        "the weight transposed": lambda merged, weight, bias, n, i: columns_to_zero(
            merged, weight.T, bias, n, i
        ),
        "every h-th column": strided_columns,
        "as many columns as heads": slice_as_long_as_the_heads,
        "two columns whatever the width": two_columns_a_head,
        "all heads up to it": up_to_the_head,
        "the others made louder": rescaled_like_dropout,
        "in place": in_place,
    },
    "heads_attention": {
        "split by a reshape alone": OnlyReshaped,
        "heads not moved back": NotMovedBack,
        "no mask": Unmasked,
        "masked after the softmax": MaskedAfterwards,
        "no output projection": Unprojected,
        "one head": OneHead,
        "at most two heads": TwoHeads,
        "the root of the whole width": OverTheWholeWidth,
        "no root": WithoutRoot,
        "softmax along the queries": OverTheQueries,
        "keys for values": ValuesAreKeys,
        "queries and keys exchanged": QueriesAreKeys,
        "projections without their biases": Unprojecting,
        "computed without a gradient": InNumpy,
        "weights taken as constants": ConstantWeights,
        "no argument for dropout": NoDropoutArgument,
        "another name for the output": OthersNames,
        "the package's own layer": Inherited,
        "the package's layer inside": WithLayerInside,
        "the page's function": OfThePage,
        "the package's own class": MultiHeadAttention,
    },
}
