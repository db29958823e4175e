"""The one style sheet and the one script: what goes into them, and what pages load instead."""

from types import SimpleNamespace

import pytest
from _ext.look import bundles

PAGE = """<html data-content_root="../"><head><title>x</title>
    <link rel="stylesheet" href="../_static/basic.css?v=1" />
    <link rel="stylesheet" href="../_static/other.css?v=1" />
    <link rel="icon" href="../_static/favicon.svg"/>
    <script src="../_static/doctools.js?v=1"></script>
    <script>DOCUMENTATION_OPTIONS.pagename = 'x';</script>
    <script src="../searchindex.js"></script>
</head><body class="a"><p id="b">x</p>
<div class="highlight"><pre><span class="k">if</span> <span class="n">x</span></pre></div>
<span class="n">x</span></body></html>"""


def test_a_page_loads_the_bundles_instead_of_what_they_hold():
    page = bundles.bundled(PAGE, is_search=False)
    assert "basic.css" not in page and "doctools.js" not in page and "pagename" not in page
    assert page.count('href="../_static/book.css') == page.count('src="../_static/book.js') == 1


def test_files_outside_the_bundles_stay():
    page = bundles.bundled(PAGE, is_search=False)
    assert "other.css" in page and "favicon.svg" in page


def test_the_search_index_is_loaded_by_the_search_page_alone():
    assert "searchindex.js" not in bundles.bundled(PAGE, is_search=False)
    page = bundles.bundled(PAGE, is_search=True)
    assert page.index("../_static/search.js") < page.index('<script defer src="../searchindex.js">')


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (".known{x:y}", True),
        (".unknown{x:y}", False),
        ("#unknown p{x:y}", False),
        (".known.unknown{x:y}", False),
        (".known:not(.unknown){x:y}", True),
        ("p > a[href]{x:y}", True),
        ("@media print{.unknown{x:y}}", False),
        ("@media print{.known{x:y}}", True),
        ("@font-face{src:url(vendor/fontawesome/a.woff2)}", False),
        ("@font-face{src:url(fonts/serif.woff2)}", True),
    ],
)
def test_a_rule_stays_if_its_classes_and_ids_are_known(rule, kept):
    assert bundles.used(rule, {"known"}) == (rule if kept else "")


def test_only_the_known_of_several_selectors_are_kept():
    assert bundles.used(".unknown,.known{x:y}", {"known"}) == ".known{x:y}"


def test_a_property_that_only_a_page_or_a_script_reads_stays(site):
    (site / "_static" / "tinytorch.css").write_text("html{--drawn:1;--got:2;--unread:3}")
    (site / "page.html").write_text(PAGE.replace("<p", '<p style="fill: var(--drawn)"'))
    (site / "_static" / "doctools.js").write_text("get('--got')")
    app = SimpleNamespace(outdir=site, builder=SimpleNamespace(format="html", name="html"))
    bundles.write_bundles(app, None)
    assert "html{--drawn:1;--got:2;}" in (site / "_static" / "book.css").read_text()


def test_a_property_with_a_semicolon_in_a_string_is_removed_whole():
    assert bundles.without_unread('a{--x:url("a;b");c:d}', set()) == "a{c:d}"


@pytest.fixture
def site(tmp_path):
    static = tmp_path / "_static"
    (static / "styles").mkdir(parents=True)
    (static / "basic.css").write_text(
        ".a{x:y} .gone{x:y} .made{x:y} .modal{x:y} .highlight .k{x:y}"
    )
    (static / "styles" / "pydata-sphinx-theme.css").write_text("#b{x:url(../sign.svg)}")
    (static / "scripts").mkdir()
    (static / "doctools.js").write_text("add('made')")
    (static / "search.js").write_text("find()")
    (static / "scripts" / "bootstrap.js").write_text("add('modal')")
    (tmp_path / "page.html").write_text(bundles.bundled(PAGE, is_search=False))
    app = SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html", name="html"))
    bundles.write_bundles(app, None)
    return tmp_path


def test_the_style_sheet_holds_what_pages_and_scripts_name(site):
    style = (site / "_static" / "book.css").read_text()
    assert ".a{" in style and ".made{" in style and "#b{x:url(sign.svg)}" in style
    assert "gone" not in style and "modal" not in style


def test_only_styled_tokens_of_code_stay_elements(site):
    page = (site / "page.html").read_text()
    assert '<pre><span class="k">if</span> x</pre>' in page
    assert '<span class="n">x</span></body>' in page, "what is no code stays as it is"


def test_pages_name_the_version_of_the_bundles(site):
    before = (site / "page.html").read_text()
    (site / "_static" / "doctools.js").write_text("other()")
    app = SimpleNamespace(outdir=site, builder=SimpleNamespace(format="html", name="html"))
    bundles.write_bundles(app, None)
    assert "book.js?v=" in before and before != (site / "page.html").read_text()


def test_a_build_that_failed_writes_nothing(tmp_path):
    app = SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html", name="html"))
    bundles.write_bundles(app, RuntimeError())
    assert list(tmp_path.iterdir()) == []
