"""Checks for the chapter "GPT-2"."""

import warnings
from functools import partial
from typing import Any

import numpy as np

from tinytorch_book.exercises.cases import Cases, NotYet, case, cases, one_of, predictions, raises
from tinytorch_book.exercises.drawn_numbers import drawn
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import in_numpy, no_loop
from tinytorch_book.exercises.values import compared, copied, same

__all__ = ["gpt2_head", "gpt2_neighbours", "gpt2_predict", "gpt2_rows", "gpt2_state"]


# Predictions ---------------------------------------------------------------------------------


@exercise(points=1)
def gpt2_predict(answer: Any) -> Cases:
    """Check what is in the file of GPT-2 medium, and what it takes."""
    d, layers = 1024, 24
    learned = (50257 + 1024) * d + layers * (12 * d * d + 13 * d) + 2 * d
    yield from predictions(answer, {
        "arrays in the file, masks included": (
            13 * layers + 4, "13 a block, and 4 outside of them.",
            (12 * layers + 4, "Each block has a mask as well."),
            (13 * layers, "Two tables and the last norm stand outside of the blocks.")),
        "shape of h.0.attn.c_attn.weight": (
            (d, 3 * d), "(in, out), and three projections side by side.",
            ((3 * d, d), "The file keeps (in, out), as our Linear does."),
            ((d, d), "Queries, keys and values stand side by side in it.")),
        "numbers that are learned": (learned, "in_the_file counts them; leave the masks out.",
            (learned + layers * 1024**2, "The masks are not learned."),
            (learned + 50257 * d, "The output is the token table, which is there once.")),
        "bytes of h.0.mlp.c_fc.weight in 8 bits, with its scales": (
            4 * d * d + 4 * d, "A byte a number, and a scale in float32 for each row.",
            (4 * d * d, "The scales are kept too: 4 bytes a row."),
            (4 * d * d + 16 * d, "(in, out): a row for each of the d inputs, not for each output."),
            (4 * d * d + d, "A scale is a float32: 4 bytes.")),
        "numbers that a token leaves in one layer's cache, four heads to a key": (
            2 * d // 4, "A key and a value, of a quarter of the heads.",
            (d // 4, "A key and a value."),
            (2 * d, "Four heads of queries share a key and a value.")),
    })  # fmt: skip


# The names -----------------------------------------------------------------------------------

_PLACES = {
    "ln_1.weight": "ln1.gamma",
    "ln_1.bias": "ln1.beta",
    "attn.c_proj.weight": "attention.out_proj.weight",
    "attn.c_proj.bias": "attention.out_proj.bias",
    "ln_2.weight": "ln2.gamma",
    "ln_2.bias": "ln2.beta",
    "mlp.c_fc.weight": "mlp.linear1.weight",
    "mlp.c_fc.bias": "mlp.linear1.bias",
    "mlp.c_proj.weight": "mlp.linear2.weight",
    "mlp.c_proj.bias": "mlp.linear2.bias",
}
_OUTSIDE = {
    "wte.weight": "token_embedding.weight",
    "wpe.weight": "position_embedding.position_embeddings",
    "ln_f.weight": "ln_f.gamma",
    "ln_f.bias": "ln_f.beta",
}


def _attention(tensors: Any, i: int) -> dict[str, np.ndarray]:
    there, state = f"h.{i}.attn", {}
    for kind in ("weight", "bias"):
        parts = np.split(tensors[f"{there}.c_attn.{kind}"], 3, axis=-1)
        for name, part in zip(("q_proj", "k_proj", "v_proj"), parts, strict=True):
            state[f"{name}.{kind}"] = part
        state[f"out_proj.{kind}"] = tensors[f"{there}.c_proj.{kind}"]
    return state


def _state(tensors: Any) -> dict[str, np.ndarray]:
    state = {ours: tensors[theirs] for theirs, ours in _OUTSIDE.items()}
    for i in range(sum(name.endswith(".attn.bias") for name in tensors)):
        for theirs, ours in _PLACES.items():
            state[f"blocks.{i}.{ours}"] = tensors[f"h.{i}.{theirs}"]
        for name, part in _attention(tensors, i).items():
            state[f"blocks.{i}.attention.{name}"] = part
    return state


def _file(layers: int, d: int = 4, vocab: int = 5, length: int = 3) -> dict[str, np.ndarray]:
    """What a file of such a model holds, with numbers that tell the arrays apart."""
    shapes: dict[str, tuple[int, ...]] = {"wte.weight": (vocab, d), "wpe.weight": (length, d)}
    for i in range(layers):
        for name, (rows, columns) in {
            "attn.c_attn": (d, 3 * d), "attn.c_proj": (d, d),
            "mlp.c_fc": (d, 4 * d), "mlp.c_proj": (4 * d, d),
        }.items():  # fmt: skip
            shapes |= {f"h.{i}.{name}.weight": (rows, columns), f"h.{i}.{name}.bias": (columns,)}
        for name in ("ln_1", "ln_2"):
            shapes |= {f"h.{i}.{name}.{kind}": (d,) for kind in ("weight", "bias")}
    shapes |= {"ln_f.weight": (d,), "ln_f.bias": (d,)}
    numbers = dict(zip(shapes, drawn(*shapes.values()), strict=True))
    numbers |= {f"h.{i}.attn.bias": np.tri(length)[None, None] for i in range(layers)}
    order = sorted(numbers, key=lambda name: name[::-1])  # neither by block nor by alphabet
    return {name: numbers[name] for name in order}


def _names(answer: Any, tensors: Any) -> str:
    """Our names and no others, or which of them are missing and which are not ours."""
    wanted = _state(copied(tensors))  # before the answer can change them
    state = answer(tensors)
    told = [("missing", sorted(wanted.keys() - state.keys()))]
    told += [("not ours", sorted(state.keys() - wanted.keys()))]
    wrong = [f"{what}: {', '.join(names[:4])}{', ...' * (len(names) > 4)}" for what, names in told
             if names]  # fmt: skip
    if wrong:
        raise NotYet("; ".join(wrong))
    return "our names"


def _arrays(answer: Any, tensors: Any) -> str:
    """Every array as it should be, or which is not."""
    wanted = _state(copied(tensors))
    state = answer(tensors)
    for name, array in wanted.items():
        if not same(state[name], array):
            raise NotYet(f"{name} is not as expected")
    return "every array"


def _named(name: str) -> dict[str, Any]:
    return {"part": (name, lambda state: state[name])}


def _recognised(answer: Any, tensors: Any, name: str, hint: str) -> Any:
    """What the answer returns, if its array of this name is no other array of the file."""
    wanted, others = _state(copied(tensors))[name], copied(tensors)
    state = answer(tensors)
    if isinstance(state, dict) and name in state and not same(state[name], wanted):
        for theirs in (n for n, array in others.items() if same(state[name], array)):
            got = compared(wanted, state[name], 1e-5, None)[1]
            raise NotYet(f"{name}: {got}", f"That is {theirs}. {hint}")
    return state


@exercise(points=2, reference=_state)
def gpt2_state(answer: Any) -> Cases:
    """Check the arrays of a file under the names of our `GPT`."""
    hints = {
        "token_embedding.weight": "wte is the token table.",
        "position_embedding.position_embeddings": "wpe is the table of the positions.",
        "blocks.0.ln1.gamma": "ln_1 is the norm of attention; its weight is gamma.",
        "blocks.0.ln2.beta": "ln_2 is the norm of the MLP; its bias is beta.",
        "blocks.0.attention.k_proj.weight": "Keys are the second third of the columns of c_attn.",
        "blocks.0.attention.v_proj.bias": "Values are the last third of c_attn's bias.",
        "blocks.0.attention.out_proj.weight": "c_proj lies as our Linear keeps it: no .T.",
        "blocks.1.mlp.linear1.weight": "c_fc widens: (d, 4d); h.1 is block 1.",
        "blocks.1.mlp.linear2.weight": "mlp.c_proj narrows: (4d, d).",
        "ln_f.gamma": "ln_f is the last norm.",
    }
    two, eleven = _file(2), _file(11, d=6)
    ours = (
        "Our names: sorted(model.state_dict()). h.0.attn.bias is a mask and not a weight: leave it "
        "out. But h.0.attn.c_attn.bias, whose name ends alike, is one."
    )
    others = "The other names are tested as well: compare this one with the table."
    also, shown = "As many blocks as the file has.", {"run": _names, "show_expected": False}
    yield case("has our names and no others", answer, two, hint=ours, **shown)
    for name, hint in hints.items():
        run = partial(_recognised, name=name, hint=hint)
        yield case(f"{name} is right", answer, two, hint=hint, run=run, **_named(name))
    yield case("eleven blocks", answer, eleven, hint=also, **shown)
    last = "blocks.10.attention.q_proj.weight"
    yield case("the queries of the last of eleven", answer, eleven, hint=also, **_named(last))
    shown["run"] = _arrays
    yield case("every array is right", answer, two, hint=others, **shown)
    yield case("and every one of eleven blocks", answer, eleven, hint=others, **shown)


# The head -------------------------------------------------------------------------------------


def _turned(head: Any) -> Any:
    return head.T


def _logits(x: Any, tensors: Any, config: Any, told: bool = False, turned: Any = _turned) -> Any:
    """With the file's own head if it has one; `told`, with what the configuration says."""
    tied = config.get("tie_word_embeddings", True) and (told or "lm_head.weight" not in tensors)
    return x @ turned(tensors["wte.weight" if tied else "lm_head.weight"])


@exercise(points=2, reference=_logits, mistakes=[
    (partial(_logits, turned=lambda head: head if len(head) == len(head.T) else head.T),
        "A square fits either way: the head is (V, d) here, too."),
    (partial(_logits, turned=lambda head: head.reshape(head.T.shape)),
        "reshape cuts the rows up: .T turns (V, d) into (d, V)."),
    (partial(_logits, told=True),
        "The file has a head of its own: it counts, whatever the configuration says."),
    (lambda x, tensors, config: x @ tensors["wte.weight"].T,
        "The token table is the head only where the file has no other."),
])  # fmt: skip
def gpt2_head(answer: Any) -> Cases:
    """Check the logits of a file that has a head of its own, or none, tied or not."""
    hint = "x @ head.T, with the file's head before the token table."
    tied, untied = ({"tie_word_embeddings": each} for each in (True, False))
    x, table, head = drawn((3, 4), (6, 4), (6, 4))
    one, square, other = drawn((1, 5), (5, 5), (5, 5), seed=1)
    names = "wte.weight", "lm_head.weight"
    plain, own = {names[0]: table}, dict(zip(names, (table, head), strict=True))
    yield from cases(answer, {
        "tied, no head in the file": (hint, x, plain, tied),
        "a configuration that does not say": (
            "GPT-2's own config.json does not say: it is tied.", x, plain, {}),
        "not tied, a head in the file": (hint, x, own, untied),
        "tied, but a head in the file": (hint, x, own, tied),
        "as many tokens as numbers in a row": (hint, one, {names[0]: square}, tied),
        "the same with a head": (hint, one, {names[0]: square, names[1]: other}, tied),
    })  # fmt: skip
    yield raises("not tied, no head in the file", answer, x, plain, untied, error=KeyError,
                 hint="Nothing says that the token table is the head here.")  # fmt: skip


# Eight bits ----------------------------------------------------------------------------------


def _rows(matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    scales = np.abs(matrix).max(axis=1) / 127
    safe = np.where(scales == 0, 1, scales)
    return np.rint(matrix / safe[:, None]).astype(np.int8), scales


def _without_nan(answer: Any, matrix: Any) -> Any:
    """What the answer returns, unless it made integers of NaN, which differ between machines."""
    with np.errstate(invalid="warn"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = answer(matrix)
    if any("cast" in str(warning.message) for warning in caught):
        raise NotYet("NaN, made an integer by astype")
    return result


def _cut(matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    scales = _rows(matrix)[1]
    return (matrix / np.where(scales == 0, 1, scales)[:, None]).astype(np.int8), scales


def _one_scale(matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    scale = np.abs(matrix).max() / 127
    return np.rint(matrix / scale).astype(np.int8), np.full(len(matrix), scale)


@exercise(points=2, reference=_rows, rules=[in_numpy, no_loop], mistakes=[
    (_cut, "astype cuts the fraction off: round first, with np.rint."),
    (_one_scale, "Each row has a scale of its own."),
    (lambda matrix: _rows(matrix)[::-1], "Return the integers, then the scales."),
    (lambda matrix: (_rows(matrix)[0], np.abs(matrix).max(axis=1)),
        "The scale is what one step is worth: the largest of the row divided by 127."),
])  # fmt: skip
def gpt2_rows(answer: Any) -> Cases:
    """Check a matrix in 8 bits: integers, and a scale for each row."""
    toy = np.array([[0.6, -1.27, 0.02, 0.33], [254.0, 127.6, -2.0, 0.9]])
    zeros, (many,) = np.array([[0.0, 0.0], [1.0, -0.503]]), drawn((7, 5))
    largest = "The largest of a row, without its sign, becomes 127 or -127."
    whole = "q = round(row / scale), a whole number from -127 to 127."
    nothing = "A row of zeros has the scale 0 and must not be divided by it: np.where."
    tiny = 10.0 ** np.array([[-9], [6], [-4], [2]]) * drawn((4, 5), seed=1)[0]
    kind = ("dtype of the integers", lambda pair: str(pair[0].dtype))
    for claim, given, name, hint in (
        ("the scale of each row", toy, "scales", largest),
        ("the integers", toy, "integers", whole),
        ("a row of zeros", zeros, "integers", nothing),
        ("the scale of a row of zeros", zeros, "scales", nothing),
        ("rows of very different size", tiny, "integers", whole),
        ("the scales of rows of very different size", tiny, "scales", largest),
        ("seven rows", many, "integers", whole),
        ("the scales of seven rows", many, "scales", largest),
    ):
        part = one_of(name, "integers", "scales")
        yield case(claim, answer, given, part=part, hint=hint, atol=0.0, run=_without_nan)
    last = "astype(np.int8) at the end."
    floats = [("float64", last), ("float32", last)]
    yield case("a byte a number", answer, toy, part=kind, hint=last, mistakes=floats)


# Neighbours ----------------------------------------------------------------------------------


@exercise(
    points=1,
    reference=lambda rows, heads: np.reshape(
        np.reshape(rows, (heads, 2, -1, rows.shape[1])).swapaxes(1, 2), rows.shape
    ),
    mistakes=[
        (lambda rows, heads: np.reshape(
            np.reshape(rows, (2, -1, rows.shape[1])).swapaxes(0, 1), rows.shape),
            "Each head by itself: the rows of one head never leave it."),
        (lambda rows, heads: np.reshape(
            np.reshape(rows, (heads, -1, 2, rows.shape[1])).swapaxes(1, 2), rows.shape),
            "That is the way back, from neighbours to halves."),
    ],
    rules=[no_loop],
)  # fmt: skip
def gpt2_neighbours(answer: Any) -> Cases:
    """Check the rows of a rotated projection, brought from halves to neighbours."""
    hint = "Row i of a head becomes row 2i; row i + half, row 2i + 1."
    one, (three, wide) = np.arange(8.0)[:, None] * [1, 10], drawn((12, 3), (16, 16))
    yield from cases(answer, {
        "one head of eight rows": (hint, one, 1),
        "two heads of four rows": (hint, one, 2),
        "three heads": (hint, three, 3),
        "as wide as high": (hint, wide, 2),
    })  # fmt: skip
