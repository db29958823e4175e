"""What the page on speed says of the stored benchmark is what the stored benchmark says."""

import json
import re
import sys

import pytest
from built import ROOT

sys.path.append(str(ROOT / "tests" / "bench"))
from table import met

from tinytorch_book.experiments.distributed import measured_ranks

PAGE = " ".join((ROOT / "book/systems/why-it-is-fast.md").read_text(encoding="utf-8").split())
AMD, INTEL = json.loads((ROOT / "book/systems/bench.json").read_text(encoding="utf-8"))
RATIOS = [{row["case"]: row["ratio"] for row in table["rows"]} for table in (AMD, INTEL)]


def seconds(text):
    number, unit = text.split()
    return float(number) * {"ms": 1e-3, "s": 1}[unit]


def test_the_tables_are_of_the_processors_that_the_page_names():
    assert "AMD" in AMD["machine"]["processor"] and "Intel" in INTEL["machine"]["processor"]


def test_the_page_counts_the_goals_that_are_missed():
    goals = [[row for row in table["rows"] if "reach" in row] for table in (AMD, INTEL)]
    (a, b), (c, d) = ((sum(not met(row) for row in rows), len(rows)) for rows in goals)
    assert (
        f"{a} of {b} goals are missed in the latest table, {c} of {d}, some of them milder" in PAGE
    )


def test_the_rows_on_the_page_end_after_those_of_decoding():
    last = int(re.search(r"bench.txt :language: text :lines: 1-(\d+)", PAGE)[1])
    lines = (ROOT / "book/systems/bench.txt").read_text(encoding="utf-8").splitlines()
    assert lines[last - 1].startswith("decoding ") and not lines[last].startswith("decoding ")


@pytest.mark.parametrize(("size", "share"), [("S", "30"), ("M", "58"), ("L", "72")])
def test_products_take_half_as_long_and_the_rest_of_a_step_differs_little(size, share):
    rows = {row["case"]: row for row in AMD["rows"]}
    step, products = (
        rows[f"training step {size}"],
        rows[f"limit: the products of a step {size} alone"],
    )
    rest = [seconds(step[whose]) - seconds(products[whose]) for whose in ("ours", "theirs")]
    assert 0.4 < products["ratio"] < 0.6
    assert 0.75 < rest[0] / rest[1] < 1.05, "0.8 to 1.0 times"
    leads = [seconds(row["theirs"]) - seconds(row["ours"]) for row in (products, step)]
    assert leads[0] > leads[1] / 2, "most of our lead"
    assert f"{100 * seconds(products['ours']) / seconds(step['ours']):.0f}" == share


@pytest.mark.parametrize("scaling", ["strong", "weak"])
@pytest.mark.parametrize("width", [64, 256])
def test_the_other_measurement_of_two_ranks_differs_by_a_tenth_or_so(scaling, width):
    steps = {
        (run["scaling"], run["ranks"]): run["step"]
        for run in measured_ranks()["runs"]
        if run["width"] == width
    }
    ratio = steps[scaling, 2] / steps["strong", 1]
    assert 0.85 < ratio / RATIOS[0][f"{scaling} scaling, width {width}, 2 ranks"] < 1.15


def test_steps_of_the_older_table():
    ratios = sorted(RATIOS[1][f"training step {size}"] for size in "SML")
    assert f"at {ratios[0]:.2f} to {ratios[-1]:.2f} times PyTorch's time" in PAGE


@pytest.mark.parametrize("size", ["S", "M", "L", "gpt2-small"])
def test_decoding_gives_more_tokens_and_at_no_size_of_ours_twice_as_many(size):
    assert all(table[f"decoding {size}"] > 1 for table in RATIOS)
    assert size == "gpt2-small" or all(table[f"decoding {size}"] < 2 for table in RATIOS)


@pytest.mark.parametrize("operation", ["layer_norm", "softmax", "embedding"])
def test_what_pytorch_does_in_one_loop_takes_ours_more_than_twice_as_long(operation):
    assert all(table[f"{operation}, forward and backward"] > 2 for table in RATIOS)


def saved(table, name, sizes):
    """What a trick saves at some sizes, in whole percents: the least and the most."""
    rows = [table[f"trick {name}, step {size}, {beside(name)}"] for size in sizes]
    return round(100 * (1 - max(rows))), round(100 * (1 - min(rows)))


def beside(name):
    return "given back" if name == "freed memory" else "textbook"


def test_the_tricks_save_what_the_page_says():
    amd, intel = RATIOS
    assert saved(amd, "attention", "L") == saved(intel, "attention", "L") == (6, 6)
    assert saved(amd, "attention", "M") == saved(intel, "attention", "M") == (0, 0)
    assert saved(amd, "layer_norm", ("story", "S", "M")) == (4, 6)
    assert saved(intel, "gelu", "ML") == (6, 7)
    assert saved(amd, "freed memory", "SML") == (3, 29)
    costs = [-saved(intel, name, "S")[0] for name in ("attention", "layer_norm", "gelu")]
    assert (min(costs), max(costs)) == (4, 8)
