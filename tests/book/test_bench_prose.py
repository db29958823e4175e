"""What the page on speed says of the stored benchmark is what the stored benchmark says."""

import json

from built import ROOT

PAGE = (ROOT / "book/systems/why-it-is-fast.md").read_text(encoding="utf-8")
ROWS = json.loads((ROOT / "book/systems/bench.json").read_text(encoding="utf-8"))[0]["rows"]


def met(row):
    lower = row["better"] == "lower"
    return row["ratio"] < row["reach"] if lower else row["ratio"] > row["reach"]


def test_the_page_counts_the_goals_that_are_missed():
    goals = [row for row in ROWS if "reach" in row]
    missed = [row for row in goals if not met(row)]
    assert f"{len(missed)} of its {len(goals)} goals are missed" in PAGE


def test_every_goal_among_the_rows_on_the_page_is_missed_as_it_says():
    lines = (ROOT / "book/systems/bench.txt").read_text(encoding="utf-8").splitlines()[:15]
    assert "In these rows every goal is missed" in PAGE
    assert {line.split()[-1] for line in lines if " < " in line or " > " in line} == {"missed"}
    rows = {row["case"]: row["ratio"] for row in ROWS}
    assert all(rows[f"training step {size}"] > 1 < rows[f"decoding {size}"] for size in "SML")


def test_the_tricks_that_pay_are_those_that_the_page_names():
    best = {}
    for row in ROWS:
        if row["case"].startswith("trick "):
            name = row["case"].removeprefix("trick ").partition(",")[0]
            best[name] = min(row["ratio"], best.get(name, 2))
    pays = {name: ratio <= 0.97 for name, ratio in best.items()}
    assert pays == {"gelu": True, "attention": True, "layer_norm": False, "AdamW": False}
