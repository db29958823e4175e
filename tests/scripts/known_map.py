"""What the package computes of what the playground's map shows."""

import numpy as np
from known_engine import model_at

from tinytorch.core.positions import Rotary
from tinytorch.core.softmax import softmax_array
from tinytorch.inside.stream import recorded, residual_stream
from tinytorch_book.experiments import story_gpt

MAPPED = ["", "One", "One sunny morning", "One sunny morning Tom walked to the barn. There"]


def on_the_map():
    """What the parts of the model do to the vector of the last token of some texts."""
    model, tokenizer = model_at(4000), story_gpt.story_tokenizer()
    table = model.token_embedding.weight.data
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    names = [f"blocks.{layer}.{part}" for layer in range(2) for part in ("attention", "mlp")]
    mapped = []
    for text in MAPPED:
        ids = tokenizer.encode("\n" + text)
        added = [rows[0, -1] for rows in recorded(model, [ids], *names)]
        after = np.cumsum([residual_stream(model, [ids])[0, 0, -1], *added], axis=0)
        scores = model.ln_f(after).data @ table.T
        mapped.append({"ids": ids, "added": added, "after": after, "scores": scores.tolist(),
                       "chances": softmax_array(scores, -1).tolist()})  # fmt: skip
    some = sorted({i for text in MAPPED for i in tokenizer.encode("\n" + text)})
    cosines = [(unit @ unit[i]).tolist() for i in some]
    turned = Rotary(112, 16)(np.tile([1.0, 0.0], (112, 8))).data.reshape(112, 8, 2)
    return {"mapped": mapped, "cosines": dict(zip(some, cosines, strict=True)),
            "turned": np.arctan2(turned[..., 1], turned[..., 0]).tolist()}  # fmt: skip
