"""What of the theme is fixed: when a page is read, and after it has been written."""

import re

import pytest
from _ext.look import theme
from docutils import nodes

SCRIPT = '<script defer src="../_static/scripts/fontawesome.js?digest=55"></script>'


def test_a_fold_is_named_by_its_text():
    page = '<summary aria-label="Toggle hidden content">\n<p>Show the solution</p></summary>'
    assert theme.fixed(page) == "<summary>\n<p>Show the solution</p></summary>"


def test_an_arrow_in_the_list_of_pages_has_a_name():
    page = theme.fixed(
        '<summary><span class="toctree-toggle" role="presentation"></span></summary>'
    )
    assert page.startswith('<summary aria-label="Pages of this part"><span')


def test_pictures_are_loaded_lazily_unless_marked_eager():
    assert theme.fixed('<img src="a.svg">') == '<img loading="lazy" src="a.svg">'
    assert theme.fixed('<img loading="eager" src="a">') == '<img loading="eager" src="a">'


def test_a_page_has_one_viewport_and_one_book_title():
    width = '<meta name="viewport" content="width=device-width" />'
    page = f"<head>{width}{width}<title>A &#8212; A</title>\n  {width}</head>"
    assert theme.fixed(page) == f"<head>{width}<title>A</title></head>"
    assert theme.fixed("<title>B &#8212; A</title>") == "<title>B &#8212; A</title>"


def test_the_search_button_is_named_by_its_text():
    page = '<button class="btn search-button-field x" title="S" aria-label="Search" data-a="b">S'
    expected = '<button class="btn search-button-field x" title="S" data-a="b">S'
    assert theme.fixed(page) == expected


def test_a_search_form_gets_one_button_that_sends_it():
    page = '<form class="bd-search d-flex">\n<input>\n</form><form class="other"></form>'
    once = theme.fixed(page)
    assert once.count('type="submit"') == 1
    assert once.index('type="submit"') < once.index("</form>")
    assert theme.fixed(once) == once


def test_characters_that_xml_forbids_are_shown_as_python_writes_them():
    page = "<pre>ho\x15\x7f\x85\ufffe one\tam\nbé\u2028\ufffd😀 \\x15</pre>"
    shown = "<pre>ho\\x15\\x7f\\x85\\ufffe one\tam\nbé\u2028\ufffd😀 \\x15</pre>"
    assert theme.fixed(page) == shown


def test_other_pages_stay_as_they_are():
    page = '<button aria-label="Stop">Stop</button><summary aria-label="More">More</summary>'
    assert theme.fixed(page) == page


def test_an_icon_becomes_its_drawing_and_keeps_its_attributes():
    page = theme.fixed('<i class="theme-switch fa-solid fa-sun   fa-lg" data-mode="light"></i>')
    assert page.startswith('<svg class="svg-inline--fa theme-switch fa-solid fa-sun fa-lg"')
    assert 'data-mode="light"' in page and 'aria-hidden="true"' in page
    assert 'viewBox="0 0 512 512"' in page and '<path fill="currentColor" d="M' in page


def test_an_icon_in_a_span_is_drawn_too():
    assert theme.fixed('<span class="fa-solid fa-bars"></span>').startswith("<svg ")


def test_the_icons_script_is_taken_out():
    assert theme.fixed(f"<head>\n  {SCRIPT}</head>") == "<head></head>"


@pytest.mark.parametrize("name", ["pencil-alt", "pencil"])
def test_other_names_of_an_icon_are_known(name):
    assert theme.drawing(name, False) == theme.drawing("pencil", False)


def test_a_brand_and_a_solid_icon_are_found():
    assert theme.drawing("github", True) and theme.drawing("file", False)


def test_other_elements_are_not_taken_for_icons():
    for text in ('<i class="name">x</i>', "<i>fa-sun</i>", '<i class="sofa-bed"></i>'):
        assert theme.with_icons(text) == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("GPT-2's <b>top-p</b>", ["GPT-2", "top-p"]),
        ("Scaled dot-product attention", ["dot-product"]),
        ("What follows an h", ["an h"]),
        ("a is an answer", []),
        ("at the keyboard-and-mouse-only end, - and a - b", []),
    ],
)
def test_a_short_compound_is_not_broken_and_its_text_stays(text, kept):
    page = theme.fixed(text)
    assert re.findall('<span class="tt-whole">(.*?)</span>', page) == kept
    assert re.sub("</?span[^>]*>", "", page) == text


@pytest.mark.parametrize(
    "page",
    [
        '<a href="top-p.html" title="top-p">x</a>',
        "<pre>a-b <span>c-d</span></pre><code>e-f</code><title>g-h</title>",
        "<svg><title>i-j</title><text>k-l</text></svg><math><mi>m-n</mi></math>",
        '<script type="application/json">{"o": "p-q"}</script><script src="r"></script>',
    ],
)
def test_only_running_text_is_changed(page):
    assert theme.fixed(page) == page
    after = theme.fixed(f"{page} top-p")
    assert after == f'{page} <span class="tt-whole">top-p</span>'


def test_an_unknown_icon_is_a_warning_and_stays(monkeypatch):
    said = []
    monkeypatch.setattr(theme.logger, "warning", lambda *args: said.append(args))
    text = '<i class="fas fa-no-such-thing"></i>'
    assert theme.fixed(text) == text and said


def test_the_exercises_of_a_page_have_ids_of_their_own():
    page = nodes.section("", *(nodes.section(ids=["exercise-content"]) for _ in range(2)))
    theme.tell_exercises_apart(None, page)
    assert [box["ids"] for box in page.children] == [["exercise-content-1"], ["exercise-content-2"]]


@pytest.mark.parametrize(
    ("classes", "holds", "label"),
    [
        (["cell", "tag_exercise-solution"], [], "Show the solution"),
        ([], [nodes.figure()], "Show the code of the figure"),
        ([], [], "Show the code"),
    ],
)
def test_a_fold_is_labelled_with_what_it_holds(classes, holds, label):
    cell = nodes.container("", *holds, prompt_show="Show", prompt_hide="Hide", classes=classes)
    theme.name_folds(None, nodes.section("", cell))
    assert cell["prompt_show"] == label


def test_what_thebe_adds_is_removed_and_other_html_is_kept():
    kept = nodes.raw("", "<p>x</p>", format="html")
    brought = [
        nodes.raw("", f"<script{s}", format="html") for s in (">kernelName", " x-thebe-config")
    ]
    page = nodes.section("", *brought, kept)
    theme.drop_thebe_settings(None, page, "page")
    assert page.children == [kept]


def test_a_change_of_the_style_sheet_alone_changes_the_fingerprint(tmp_path):
    style = tmp_path / "book" / "_static" / "style.css"
    style.parent.mkdir(parents=True)
    style.write_text("a {}")
    before = theme.looks(tmp_path)
    style.write_text("b {}")
    assert theme.looks(tmp_path) != before


OUTPUT = (
    '<div class="output stream x"><div class="highlight"><pre><span></span>{}</pre></div></div>'
)


@pytest.mark.parametrize(
    ("printed", "soft"),
    [
        ("Once upon a time there\nwas a boy. He said he\nhad to go.\n", 2),
        ('There was a boy\n"I see," he said\nand went.\n\nNext he came to\nthe sea.\n', 3),
        ("ok: 12 derivatives agree\nok: 24 derivatives agree\n", 0),
        ("d    loss  long\n16   0.5   none\n", 0),
        ("a short line\nthat could have stood on the line above it\n", 0),
    ],
)
def test_the_line_ends_of_a_story_are_soft_and_its_text_stays(printed, soft):
    page = theme.fixed(OUTPUT.format(printed))
    assert page.count('<span class="tt-soft">\n</span>') == page.count("tt-soft") == soft
    assert re.sub("</?span[^>]*>", "", page) == re.sub("</?span[^>]*>", "", OUTPUT).format(printed)


def test_an_output_in_columns_is_marked_and_a_story_is_not():
    def output(text):
        return nodes.container("", nodes.literal_block(text, text), classes=["cell_output"])

    table, story = output("d    loss\n16   0.5"), output("Once upon a time\nthere was a boy.")
    theme.tell_columns(None, nodes.section("", table, story), "page")
    assert "tt-columns" in table["classes"] and "tt-columns" not in story["classes"]


@pytest.mark.parametrize(
    ("line", "kept"),
    [("here {}, and", "{},"), ("({}) is", "({})"), ("an {}-gram", "{}-gram"), ("a {} b", None)],
)
def test_a_formula_keeps_what_touches_it_on_its_line(line, kept):
    formula = '<span class="math notranslate nohighlight"><math><mi>x</mi></math></span>'
    page = theme.fixed(line.format(formula))
    whole = f'<span class="tt-whole">{kept.format(formula)}</span>' if kept else ""
    assert whole in page and ("tt-whole" in page) == bool(kept)
