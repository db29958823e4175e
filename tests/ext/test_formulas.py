"""Formulas: TeX to MathML, spaced as TeX spaces it."""

import re
from xml.etree import ElementTree as ET

import pytest
from _ext.directives import formulas
from docutils import nodes


def operators(tex):
    """The operators of a formula: their signs, with the space that was set."""
    found = re.findall(r"<mo([^>]*)>([^<]*)</mo>", formulas.mathml(tex))
    return [(sign, 'lspace="0"' in attributes) for attributes, sign in found]


def test_a_root_is_one_element():
    assert formulas.mathml(r"\sqrt{d}") == "<math><msqrt><mi>d</mi></msqrt></math>"


def test_a_formula_on_its_own_lines_is_a_block():
    assert 'display="block"' in formulas.mathml("x", display=True)


def test_rows_that_are_aligned_are_a_table():
    markup = formulas.mathml(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", display=True)
    assert markup.count("<mtr>") == 2


def test_an_operator_is_spaced_in_line_and_not_in_a_subscript():
    assert operators("x - 1") == [("\u2212", False)]
    assert operators("x_{t - 1}") == [("\u2212", True)]


def test_a_minus_sign_after_a_bracket_has_no_space():
    assert ("\u2212", True) in operators("(-x)") and ("\u2212", False) in operators("(y-x)")


def test_a_function_is_spaced_from_what_precedes_it():
    assert formulas.mathml(r"p \ln q").count("<mspace") == 2
    assert formulas.mathml(r"\ln q").count("<mspace") == 1


def test_a_function_alone_in_a_subscript_has_no_space():
    """A space beside it would be a third part of something that has two."""
    (script,) = ET.fromstring(formulas.mathml(r"T_{\max}")).iter("msub")
    assert len(script) == 2


def test_a_formula_on_a_page_is_described_by_its_tex():
    node = nodes.math("", "a <\n b", nowrap=False)
    assert formulas.typeset(node, display=False).startswith('<math alttext="a &lt; b">')


def test_an_accent_keeps_its_place():
    assert operators(r"x_{\hat t}") == [("\u02c6", False)]


def test_negative_space_before_a_bracket_is_dropped_and_kept_elsewhere():
    assert "margin" not in formulas.mathml(r"f\!\left(x\right)")
    assert "margin" in formulas.mathml(r"x\!y")


@pytest.mark.parametrize("tex", [r"\frac{a", r"\nosuchcommand", "a}"])
def test_invalid_tex_is_reported(tex):
    with pytest.raises(formulas.WrongFormula, match="ParseError"):
        formulas.mathml(tex)


def test_an_invalid_formula_is_a_warning_and_stays_tex(monkeypatch):
    said = []
    monkeypatch.setattr(formulas.logger, "warning", lambda *args, **kwargs: said.append(args))
    assert formulas.typeset(nodes.math("", r"a < \frac{"), display=False) == r"a &lt; \frac{"
    assert said
