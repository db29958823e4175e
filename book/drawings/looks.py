"""Where trained heads look, as the drawings `where-heads-look` and `three-back` show it.

The models are those of the chapters, trained by their own cells. `python -m drawings.looks`, called
in `book`, writes `looks.json` again; a test says whether it is still what the chapters train.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch import no_grad
from tinytorch.core.positions import Rotary, create_alibi_bias
from tinytorch.inside.heads import layer_weights

STORED = Path(__file__).with_suffix(".json")
PART = Path(__file__).resolve().parents[1] / "attention"
CELL = re.compile(r"^```\{code-cell\} ipython3\n(?:---\n.*?^---\n)?(.*?)^```", re.M | re.S)
HEADS = (1, 2, 4, 8, 16)
BACK = 3  # positions, in the contest of encodings
LEAST = 3  # percent: a weight that is drawn


def cells(chapter: str, *beginnings: str) -> dict[str, Any]:
    """Run the first cell of a chapter and those that begin like this; give what they define."""
    code = CELL.findall((PART / f"{chapter}.md").read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    for beginning in beginnings:
        [cell] = [cell for cell in code if cell.startswith(beginning)]
        exec(cell, names)
    return names


def weights_of(model: Any, ids: np.ndarray) -> np.ndarray:
    """Give the percentages with which each query looks at each key, averaged over texts."""
    layer = model.attend
    with no_grad():
        x = model.embed(ids)
        q, k = layer.q_proj(x).data, layer.k_proj(x).data
    found: np.ndarray = layer_weights(layer, q, k).mean(axis=0)
    return 100 * found


def by_heads() -> list[dict[str, Any]]:
    """Train the models that name four tokens; give where the last token looks, head by head."""
    page = cells("multi-head", "import numpy", "T, V", "def answers", "fresh", "def attend_at_once")
    found = []
    for heads in HEADS:
        model = page["train"](4, heads)
        last = weights_of(model, page["fresh"])[:, -1]  # (heads, T)
        order = np.argsort(last.argmax(axis=1), kind="stable")
        share = round(100 * float(page["right"](model)))
        found.append({"heads": heads, "right": share, "weights": last[order].round().tolist()})
    return found


def by_scheme() -> list[dict[str, Any]]:
    """Train a model with each encoding; give where the head looks that looks three back most."""
    page = cells("positions-in-attention", "import textwrap", "class Reader", "V, T", "def trained")
    far, T = page["far"], page["T"]
    schemes: dict[str, dict[str, Any]] = {
        "learned table": {"added": "learned"},
        "sinusoidal table": {"added": "sinusoidal"},
        "rotary": {"rotate": Rotary(far, 8)},
        "ALiBi": {"bias": create_alibi_bias(4, far)},
    }
    found = []
    for name, scheme in schemes.items():
        model = page["trained"](0, **scheme)
        weights = weights_of(model, page["new"])  # (heads, far, far)
        inside = [np.diagonal(head, -BACK)[: T - BACK].mean() for head in weights]
        head = weights[int(np.argmax(inside))].round().astype(int)
        right = (100 * page["right"](model)).round().astype(int).tolist()
        found.append({"name": name, "looks": [looks(row) for row in head], "right": right})
    return found


def looks(row: np.ndarray) -> list[list[int]]:
    """Give the keys that get a weight worth drawing, each with its percentage."""
    return [[int(key), int(row[key])] for key in np.flatnonzero(row >= LEAST)]


def computed() -> dict[str, Any]:
    """Train all models."""
    return {"heads": by_heads(), "schemes": by_scheme()}


if __name__ == "__main__":
    STORED.write_text(json.dumps(computed(), separators=(",", ":")) + "\n", encoding="utf-8")
