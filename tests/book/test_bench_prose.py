"""What the page on speed says of the stored benchmark is what the stored benchmark says."""

import json
import re
import sys

import pytest
from built import ROOT

sys.path.append(str(ROOT / "tests" / "bench"))
from table import met

PAGE = " ".join((ROOT / "book/systems/why-it-is-fast.md").read_text(encoding="utf-8").split())
LINES = (ROOT / "book/systems/bench.txt").read_text(encoding="utf-8").splitlines()
INTEL, AMD = json.loads((ROOT / "book/systems/bench.json").read_text(encoding="utf-8"))
RATIOS = {
    name: {
        row["case"] + f", {row['threads']} threads" * (row["threads"] > 1): row["ratio"]
        for row in table["rows"]
    }
    for name, table in (("Intel", INTEL), ("AMD", AMD))
}
SIZES = [f"training step {size}" for size in "SML"]
PRODUCTS = [f"limit: the products of a step {size} alone" for size in "SML"]


def of(name, cases):
    return sorted(RATIOS[name][case] for case in cases)


def test_the_tables_are_of_the_processors_that_the_page_names():
    assert "AMD" in AMD["machine"]["processor"] and "Intel" in INTEL["machine"]["processor"]


def test_the_page_counts_the_goals_that_are_missed():
    goals = [[row for row in table["rows"] if "reach" in row] for table in (INTEL, AMD)]
    (a, b), (c, d) = ((sum(not met(row) for row in rows), len(rows)) for rows in goals)
    assert f"{a} of {b} goals are missed in the latest table, {c} of {d} in the other" in PAGE


def test_the_rows_on_the_page_are_those_of_training_in_each_table_and_decoding_in_one():
    shown = re.findall(r"bench.txt :language: text :lines: (\d+)-(\d+)", PAGE)
    heads = [i for i, line in enumerate(LINES) if line.startswith("case ")]
    ends = ("decoding gpt2-small  ", "limit: the products of a step L")
    for (first, last), head, end in zip(shown, heads, ends, strict=True):
        assert int(first) - 1 == head and LINES[int(last) - 1].startswith(end)
    assert "an Intel Xeon and, below it, an AMD EPYC" in PAGE


def test_products_and_steps_beside_those_of_pytorch():
    assert all(0.4 < ratio < 0.6 for ratio in of("AMD", PRODUCTS)), "about half"
    for step, product in zip(SIZES, PRODUCTS, strict=True):
        rows = {row["case"]: row for row in AMD["rows"]}
        leads = [
            seconds(rows[name]["theirs"]) - seconds(rows[name]["ours"]) for name in (product, step)
        ]
        assert leads[0] > leads[1] / 2, "most of our lead"
    (a, *_, b), (c, *_, d) = of("Intel", PRODUCTS), of("Intel", SIZES)
    assert f"{a:.2f} to {b:.2f} times as long, and our steps take {c:.2f} to {d:.2f} times" in PAGE


def seconds(text):
    number, unit = text.split()
    return float(number) * {"ms": 1e-3, "s": 1}[unit]


@pytest.mark.parametrize("size", ["S", "M", "L", "gpt2-small"])
def test_decoding_one_text_gives_more_tokens_and_at_most_twice_as_many(size):
    assert all(1 < round(table[f"decoding {size}"], 2) <= 2 for table in RATIOS.values())


def test_a_layer_norm_takes_more_than_three_times_as_long():
    assert all(table["layer_norm, forward and backward"] > 3 for table in RATIOS.values())


def test_every_trick_saves_three_percent_at_some_size_on_some_processor():
    best = {}
    for table in RATIOS.values():
        for case, ratio in table.items():
            if found := re.match(r"trick (.*?), step", case):
                best[found[1]] = min(ratio, best.get(found[1], 1))
    assert len(best) >= 4 and max(best.values()) <= 0.97, best


def test_fewer_bytes_do_not_help_numpy():
    for threads in ("", ", 2 threads"):
        assert RATIOS["Intel"][f"SmolLM2 stored, float32{threads}"] < 0.5
        assert RATIOS["Intel"][f"SmolLM2 float32, llama.cpp{threads}"] < 0.5
        assert RATIOS["Intel"][f"SmolLM2 float32, transformers{threads}"] > 1
