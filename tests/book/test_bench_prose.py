"""What the page on speed says of the stored benchmark is what the stored benchmark says."""

import json
import re
import sys

import pytest
from built import ROOT

sys.path.append(str(ROOT / "tests" / "bench"))
from table import met

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
    assert f"{a} of {b} goals are missed on the AMD, {c} of {d} on the Intel processor" in PAGE


def test_the_rows_on_the_page_end_after_those_of_decoding():
    last = int(re.search(r"bench.txt :language: text :lines: 1-(\d+)", PAGE)[1])
    lines = (ROOT / "book/systems/bench.txt").read_text(encoding="utf-8").splitlines()
    assert lines[last - 1].startswith("decoding ") and not lines[last].startswith("decoding ")


@pytest.mark.parametrize("size", "SML")
def test_a_step_is_shorter_on_the_amd_because_its_products_are(size):
    rows = {row["case"]: row for row in AMD["rows"]}
    step, products = (
        rows[f"training step {size}"],
        rows[f"limit: the products of a step {size} alone"],
    )
    rest = [seconds(step[whose]) - seconds(products[whose]) for whose in ("ours", "theirs")]
    assert step["ratio"] < 1 and 0.4 < products["ratio"] < 0.6
    assert 0.8 < rest[0] / rest[1] < 1.25, "about equally long"
    assert RATIOS[1][f"training step {size}"] > 1, "the other way round"


@pytest.mark.parametrize("size", ["S", "M", "L", "gpt2-small"])
def test_decoding_gives_more_tokens_and_at_no_size_of_ours_twice_as_many(size):
    assert all(table[f"decoding {size}"] > 1 for table in RATIOS)
    assert size == "gpt2-small" or all(table[f"decoding {size}"] < 2 for table in RATIOS)


@pytest.mark.parametrize("operation", ["layer_norm", "embedding"])
def test_what_pytorch_does_in_one_loop_takes_ours_more_than_twice_as_long(operation):
    assert all(table[f"{operation}, forward and backward"] > 2 for table in RATIOS)


def test_the_tricks_pay_where_the_page_says():
    def pays(table, name):
        rows = {case.split(",")[1].split()[-1]: ratio for case, ratio in table.items()
                if case.startswith(f"trick {name},")}  # fmt: skip
        return {size for size, ratio in rows.items() if ratio <= 0.97}

    amd, intel = RATIOS
    assert "L" in pays(amd, "attention") and "S" in pays(amd, "layer_norm")
    assert pays(amd, "freed memory") == {"S", "M", "L"}
    assert pays(intel, "gelu")
