"""Printed numbers agree within what a cell allows, and words must be the same."""

import pytest
from _ext.notebooks.tolerance import Tolerance, agree


@pytest.mark.parametrize(
    ("came", "stored", "option"),
    [
        ("loss 3.10", "loss 3.00", {"within": "5%"}),
        ("loss  9.9", "loss 10.0", {"within": "5%"}),  # a number takes fewer characters
        ("1,040 tokens at -2.1e-3", "1,000 tokens at -2.0e-3", {"within": "5%"}),
        ("0.26 and 7", "0.25 and 7", {"decimals": 2}),
        ("[1.2 3.4]", "[1.3 3.4]", {"decimals": 1}),
    ],
)
def test_numbers_within_the_tolerance_agree(came, stored, option):
    assert agree(came, stored, option)


@pytest.mark.parametrize(
    ("came", "stored", "option"),
    [
        ("loss 3.16", "loss 3.00", {"within": "5%"}),
        ("gain 3.00", "loss 3.00", {"within": "5%"}),
        ("3.00 3.00", "3.00", {"within": "5%"}),
        ("0.001", "0.00", {"within": "5%"}),  # a share of nothing is nothing
        ("0.27", "0.25", {"decimals": 2}),
        ("-0.30", "0.30", {"within": "50%"}),
        ("head2", "head1", {"decimals": 0}),  # a name, not a number
        ("nan", "3.0", {"within": "5%"}),
        ("3.01", "3.00", None),
    ],
)
def test_other_texts_do_not_agree(came, stored, option):
    assert not agree(came, stored, option)


@pytest.mark.parametrize(
    "option",
    [{}, {"within": 5}, {"within": "five"}, {"decimals": -1}, {"decimals": "2"}, "5%",
     {"within": "5%", "decimals": 2}],
)  # fmt: skip
def test_any_other_option_is_refused(option):
    with pytest.raises(ValueError, match=r"compare: .*got"):
        Tolerance(option)
