"""What the index of the search leaves out."""

import json
from types import SimpleNamespace

from _ext.look import search_index
from docutils import nodes
from sphinx import addnodes


def page():
    return nodes.section(
        "",
        nodes.paragraph("", "the root of 42 ", nodes.math("", "\\sqrt{d}")),
        nodes.math_block("", "\\tfrac{1}{2}"),
    )


def test_formulas_are_removed_from_the_copy_only():
    whole = page()
    assert search_index.slimmed(whole).astext().strip() == "the root of 42"
    assert len(list(whole.findall(nodes.math))) == 1


def test_the_index_gets_slimmed_pages():
    fed = []
    builder = SimpleNamespace(index_page=lambda *given: fed.append(given), load_indexer=print)
    search_index.slim_index(SimpleNamespace(builder=builder))
    builder.index_page("a", page(), "A")
    assert fed[0][0] == "a" and "sqrt" not in fed[0][1].astext()


def test_a_term_keeps_its_index_entry_and_an_api_object_has_none():
    term, name = (addnodes.index(entries=[("single", word, word, "", None)]) for word in "tn")
    kept = search_index.slimmed(nodes.section("", term, nodes.paragraph(), name, addnodes.desc()))
    assert [node["entries"][0][1] for node in kept.findall(addnodes.index)] == ["t"]


def test_the_labels_of_a_picture_are_left_out():
    picture = nodes.raw("", "<svg><text>0.5</text><text>loss</text></svg>", format="html")
    assert search_index.slimmed(nodes.section("", picture, nodes.Text("seen"))).astext() == "seen"


def test_entries_of_pages_that_are_not_rewritten_are_kept(tmp_path):
    frozen = {"docnames": ["a", "b"], "indexentries": {"t": [[0, "t-a", True], [1, "t-b", False]]}}
    (tmp_path / "searchindex.js").write_text(f"Search.setIndex({json.dumps(frozen)})")
    indexer = SimpleNamespace(_index_entries={})
    builder = SimpleNamespace(index_page=print, load_indexer=len, indexer=indexer)
    env = SimpleNamespace(all_docs={"a": 0, "b": 0})
    search_index.slim_index(SimpleNamespace(builder=builder, env=env, outdir=tmp_path))
    builder.load_indexer(["b"])
    assert indexer._index_entries == {"a": [("t", "t-a", "main")]}


def test_numbers_are_not_indexed():
    english = search_index.BookEnglish({})
    assert english.word_filter("root") and not english.word_filter("42")
