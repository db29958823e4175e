"""What the index of the search leaves out."""

from types import SimpleNamespace

import searching
from docutils import nodes
from sphinx import addnodes


def page():
    return nodes.section(
        "",
        nodes.paragraph("", "the root of 42 ", nodes.math("", "\\sqrt{d}")),
        nodes.math_block("", "\\tfrac{1}{2}"),
    )


def test_formulas_are_left_out_of_the_copy_alone():
    whole = page()
    assert searching.slimmed(whole).astext().strip() == "the root of 42"
    assert len(list(whole.findall(nodes.math))) == 1


def test_the_index_gets_slimmed_pages():
    fed = []
    builder = SimpleNamespace(index_page=lambda *given: fed.append(given))
    searching.slim_index(SimpleNamespace(builder=builder))
    builder.index_page("a", page(), "A")
    assert fed[0][0] == "a" and "sqrt" not in fed[0][1].astext()


def test_a_term_keeps_its_entry_and_an_object_which_is_found_anyway_has_none():
    term, name = (addnodes.index(entries=[("single", word, word, "", None)]) for word in "tn")
    kept = searching.slimmed(nodes.section("", term, nodes.paragraph(), name, addnodes.desc()))
    assert [node["entries"][0][1] for node in kept.findall(addnodes.index)] == ["t"]


def test_a_number_is_no_word():
    english = searching.BookEnglish({})
    assert english.word_filter("root") and not english.word_filter("42")
