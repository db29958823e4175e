"""The stored forecast of a drawing is what the story GPT says today."""

import json

import numpy as np
from drawings import forecast


def test_the_stored_forecast_is_that_of_the_story_gpt():
    stored = json.loads(forecast.STORED.read_text(encoding="utf-8"))
    found = forecast.computed()
    assert sorted(stored["tokens"]) == sorted(found["tokens"])
    assert stored["tokens"][:4] == found["tokens"][:4]
    assert np.allclose(stored["logits"], found["logits"], rtol=0, atol=5e-3)
    assert stored["truth"] == found["truth"]
