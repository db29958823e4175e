"""What the package computes of the models that are trained in the page."""

import base64
import tempfile
from pathlib import Path

from tinytorch_book.experiments import story_gpt
from tinytorch_book.experiments.live_training import SIZES, live_trainer, load_trained, save_trained


def trained():
    """Of each size one that took two steps: its file, and its scores after a beginning."""
    ids = story_gpt.story_tokenizer().encode("\nOnce upon a time there")
    found = []
    for size in SIZES:
        trainer = live_trainer(size, seed=2)
        losses = [record["loss"] for record in trainer.run(2)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "yours.safetensors"
            save_trained(path, trainer)
            file, model = path.read_bytes(), load_trained(path)
        numbers = model.num_parameters()["total"]
        about = {"size": size, "ids": ids, "logits": model(ids).data, "numbers": numbers}
        found.append({**about, "file": base64.b64encode(file).decode(), "losses": losses})
    return found
