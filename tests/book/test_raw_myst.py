"""Raw MyST is recognised, and code and maths are not taken for it."""

import pytest
from raw_myst import raw_myst

RAW = ["```{note}\nx", ":::{note}", "a {doc}`b`", "(a)=", "+++", ":::", "$$\nx\n$$ (a)", "{{ a }}"]
PLAIN = ["`{doc}`", "```python\n:::\n```", "$\\{a\\}`$", "a: b", "{a}"]


@pytest.mark.parametrize("text", RAW)
def test_raw_myst_is_detected(text):
    assert raw_myst(text)


@pytest.mark.parametrize("text", PLAIN)
def test_code_and_maths_are_not_taken_for_raw_myst(text):
    assert raw_myst(text) == []
