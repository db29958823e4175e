"""Fixes applied to every page, after the theme and the extensions.

While a page is read, exercises get ids of their own and folds get names. When it is resolved and
given to its template, thebe, which Jupyter Book always loads and nothing here uses, is removed.
When its template has been filled in, its HTML passes through `fixed`, once.
"""

import hashlib
import html
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pydata_sphinx_theme
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

from .bundles import bundled

logger = logging.getLogger(__name__)

SHARED = "exercise-content"
SOLUTION = "tag_exercise-solution"

FOLD = '<summary aria-label="Toggle hidden content">'
SUBPAGES, NAMED = '<span class="toctree-toggle"', '<summary aria-label="Pages of this part">'
SEARCH_BUTTON = re.compile(
    r'(<button class="[^"]*\bsearch-button-field\b[^>]*?) aria-label="[^"]*"'
)
SEARCH_FORM = re.compile(r'(<form class="bd-search\b.*?)(\s*</form>)', re.S)
SUBMIT = '<button type="submit" class="btn btn-sm visually-hidden-focusable">Search</button>'

SKIP = 'href="#main-content"'
HEADING = re.compile(r'(<article class="bd-article".*?<h1)(?=>)', re.S)

TITLE_TWICE = re.compile(r"<title>(.*?) &#8212; \1</title>")
VIEWPORT = re.compile(r'\s*<meta name="viewport"[^>]*>')
PICTURE = re.compile(r"<img (?!loading=)")
NO_SCHEME = 'localStorage.getItem("theme") || "auto"'
SCHEME = """localStorage.getItem("theme")
      || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")"""
FIRST_SCRIPT = '<script data-cfasync="false">'
# A browser that refuses storage keeps a few words for the visit under the window's name.
STAND_IN = """try { localStorage.length + sessionStorage.length; } catch {
      class Passing {
        getItem(key) { return this[key] ?? null; }
        setItem(key, text) { this[key] = `${text}`; self.name = JSON.stringify(this); }
        removeItem(key) { delete this[key]; self.name = JSON.stringify(this); }
      }
      const passing = new Passing();
      try { Object.assign(passing, JSON.parse(self.name)); } catch { /* the first page */ }
      for (const store of ["localStorage", "sessionStorage"]) {
        Object.defineProperty(self, store, { value: passing });
      }
    }"""

TAG = re.compile(r"(<[^>]*>)")
VERBATIM = re.compile(r"<(/?)(pre|code|script|style|svg|math|textarea|title|select)\b")
COMPOUND = re.compile(r"(?<![\w-])(?:\w+(?:-\w+)+|[Aa]n? [a-z](?!['’]))(?![\w-])")
LONGEST_WHOLE = 16  # letters of a compound that has to fit on what is left of a line

FORMULA = re.compile(
    r'(?P<before>[(\[\u201c"]*)<span class="math\b[^>]*><math.*?</math></span>'
    r"(?P<after>[^\s<]{0,16})",
    re.S,
)
COLUMN = re.compile(r"\S {2,}\S|^ ?\[[\[ \d-]")
OUTPUT = re.compile(
    r'(<div class="output stream[^>]*><div class="highlight"><pre>(?:<span></span>)?)(.*?)(</pre>)',
    re.S,
)
# what neither HTML nor XML lets stand in a text, as what an untrained model writes
UNSEEN = re.compile("[^\\t\\n\\r\\x20-\\x7e\\xa0-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
SOFT_BREAK = '<span class="tt-soft">\n</span>'
PROSE = re.compile(r"""["'A-Za-z](?:["',.!?;A-Za-z-]| (?! ))+""")

ICON_SCRIPT = Path(pydata_sphinx_theme.__file__).parent.joinpath(
    "theme/pydata_sphinx_theme/static/scripts/fontawesome.js"
)
LOADS_ICON_SCRIPT = re.compile(r"\s*<script[^>]*scripts/fontawesome\.js[^>]*></script>")
ICON = re.compile(r'<(i|span)\s([^>]*\bclass="(?:[^"]*\s)?fa[bsr]?[\s-][^"]*"[^>]*)>\s*</\1>')
CLASSES = re.compile(r'class="([^"]*)"')
# name:[width,height,[other names],"character","path"]
ICON_ENTRY = re.compile(
    r'[{,]"?(?P<name>[a-z0-9-]+)"?:\[(?P<width>\d+),(?P<height>\d+),\[(?P<others>[^\]]*)\],'
    r'"[0-9a-f]+","(?P<path>[^"]+)"\]'
)
ICON_SIZES = {"lg", "xs", "sm", "xl", "fw", "solid", "regular", "brands"}


# Style sheets ---------------------------------------------------------------------------------


def looks(root: Path) -> str:
    """Hash what makes the pages look as they do: style sheets, scripts and pictures.

    Sphinx copies them only when it writes a page, so a change in them alone has to make it write.
    """
    digest = hashlib.sha256()
    for path in sorted((root / "book" / "_static").rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def note_looks(app: Sphinx, config: Config) -> None:
    """Make the looks a part of the configuration, whose changes Sphinx heeds."""
    config.static_fingerprint = looks(Path(app.srcdir))


# A page that has been read --------------------------------------------------------------------


def tell_exercises_apart(app: Sphinx, doctree: nodes.document) -> None:
    """Number the ids of the exercises' contents: sphinx-exercise gives all of a page the same."""
    contents = (section for section in doctree.findall(nodes.section) if SHARED in section["ids"])
    for number, section in enumerate(contents, start=1):
        section["ids"] = [f"{SHARED}-{number}"]


def name_folds(app: Sphinx, doctree: nodes.document) -> None:
    """Label a folded cell with what it holds: a solution, the code of a figure, or other code."""
    for cell in doctree.findall(nodes.container):
        if "prompt_show" in cell:
            what = "code of the figure" if next(cell.findall(nodes.figure), None) else "code"
            what = "solution" if SOLUTION in cell["classes"] else what
            cell["prompt_show"], cell["prompt_hide"] = f"Show the {what}", f"Hide the {what}"


# A page that is about to be written -----------------------------------------------------------


def tell_columns(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Mark outputs that are read in columns: on a phone they scroll, where others break."""
    for output in doctree.findall(nodes.container):
        if "cell_output" in output["classes"]:
            texts = (block.astext() for block in output.findall(nodes.literal_block))
            output["classes"] += ["tt-columns"] if any(map(in_columns, texts)) else []


def in_columns(text: str) -> bool:
    r"""Return whether a text has two lines with a gap, or rows of an array.

    >>> in_columns("d    loss\n16   0.5"), in_columns("[[1 2]\n [3 4]]"), in_columns("a story.  So")
    (True, True, False)
    """
    return sum(map(bool, map(COLUMN.search, text.splitlines()))) > 1


def drop_thebe_settings(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Remove what thebe appends to every page."""
    for node in list(doctree.findall(nodes.raw)):
        if "x-thebe-config" in node.astext() or node.astext().startswith("<script>kernelName"):
            node.parent.remove(node)


def complete_context(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Load nothing of thebe; give the bibliography's entries a role that a list may hold."""
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context.get(kind, []) if not is_thebe(file)]
    if "body" in context:
        context["body"] = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')


def is_thebe(file: Any) -> bool:
    """Recognise what thebe brings."""
    body = getattr(file, "attributes", {}).get("body") or ""
    return "THEBE_JS_URL" in body or "sphinx-thebe." in str(getattr(file, "filename", ""))


# A page's HTML --------------------------------------------------------------------------------


def complete_pages(app: Sphinx) -> None:
    """Have every page pass through `fixed` when its template has been filled in."""
    templates: Any = getattr(app.builder, "templates", None)
    if app.builder.format != "html" or templates is None:
        return
    render = templates.render
    templates.render = lambda name, context: bundled(
        fixed(render(name, context)), context.get("pagename") == "search"
    )


def fixed(page: str) -> str:
    """Correct a page; what is right already stays as it is."""
    page = with_lazy_pictures(with_icons(with_names(with_way_in(with_one_of_each(page)))))
    page = FORMULA.sub(with_its_signs, with_whole_words(with_scheme(page)))
    page = UNSEEN.sub(lambda found: repr(found[0])[1:-1], page)  # outputs.js does the same
    return OUTPUT.sub(with_soft_breaks, page)


def with_one_of_each(page: str) -> str:
    """Drop the second viewport, which docutils and the theme both set, and the doubled title."""
    page = TITLE_TWICE.sub(r"<title>\1</title>", page)
    first = VIEWPORT.search(page)
    return page[: first.end()] + VIEWPORT.sub("", page[first.end() :]) if first else page


def with_scheme(page: str) -> str:
    """Be dark from the first paint for who likes it dark, not once the scripts have come.

    That reads what is stored, so this is where a browser that stores nothing gets a stand-in.
    """
    page = page.replace(NO_SCHEME, SCHEME)
    return page.replace(FIRST_SCRIPT, f"{FIRST_SCRIPT}\n    {STAND_IN}", 1)


def with_way_in(page: str) -> str:
    """Let the link that skips the menus lead to the heading, past the buttons above it.

    >>> with_way_in('<a href="#main-content"><article class="bd-article"><h1>')
    '<a href="#page-heading"><article class="bd-article"><h1 id="page-heading" tabindex="-1">'
    """
    page, found = HEADING.subn(r'\1 id="page-heading" tabindex="-1"', page, count=1)
    return page.replace(SKIP, 'href="#page-heading"') if found else page


def with_lazy_pictures(page: str) -> str:
    """Load pictures when they are seen: of the two logos one is, of a closed menu's signs none."""
    return PICTURE.sub(r'<img loading="lazy" ', page)


def with_whole_words(page: str) -> str:
    """Keep short compounds on one line: "GPT-2", "dot-product"; and an article with its letter.

    A span does it, so that what is searched, copied and linked to is the same text as before.

    >>> with_whole_words('<h2 id="top-p">Top-p</h2> <code>top-p</code>')
    '<h2 id="top-p"><span class="tt-whole">Top-p</span></h2> <code>top-p</code>'
    """
    parts, verbatim = TAG.split(page), 0
    for i, part in enumerate(parts):
        if i % 2:
            if (found := VERBATIM.match(part)) and not part.endswith("/>"):
                verbatim += -1 if found[1] else 1
        elif not verbatim:
            parts[i] = COMPOUND.sub(whole, part)
    return "".join(parts)


def whole(match: re.Match[str]) -> str:
    """Mark a compound that is not to be broken; a long one may be."""
    long = len(match[0]) > LONGEST_WHOLE
    return match[0] if long else f'<span class="tt-whole">{match[0]}</span>'


def with_its_signs(formula: re.Match[str]) -> str:
    """Keep a formula in a line with what touches it: a comma after it, a bracket around it.

    >>> FORMULA.sub(with_its_signs, '(<span class="math"><math></math></span>), x')
    '<span class="tt-whole">(<span class="math"><math></math></span>),</span> x'
    """
    alone = not (formula["before"] or formula["after"])
    return formula[0] if alone else f'<span class="tt-whole">{formula[0]}</span>'


def with_soft_breaks(output: re.Match[str]) -> str:
    """Mark the line ends of a printed story, which a phone does not need: it breaks where it must.

    Such a line is words alone, and the next one's first word had no room on it.
    """
    lines = html.unescape(output[2]).split("\n")
    widest, kept = max(map(len, lines)), output[2].split("\n")
    for place, (line, after) in enumerate(pairwise(lines)):
        if PROSE.fullmatch(line) and PROSE.fullmatch(after):
            is_full = len(f"{line} {after.split()[0]}") > widest
            kept[place] += SOFT_BREAK if is_full else "\n"
        else:
            kept[place] += "\n"
    return output[1] + "".join(kept) + output[3]


def with_names(page: str) -> str:
    """Let what is pressed be called by what it shows (WCAG 2.5.3), and give the search a button.

    The search button and the lines that open folded cells lose their labels, so that their text
    names them; the arrow that opens a part of the list of pages gets one. The search form gets the
    button that sends it, seen when it has the focus.
    """
    page = page.replace(FOLD, "<summary>").replace(f"<summary>{SUBPAGES}", NAMED + SUBPAGES)
    page = SEARCH_BUTTON.sub(r"\1", page)
    return SEARCH_FORM.sub(lambda found: with_submit(found[1]) + found[2], page)


def with_submit(form: str) -> str:
    """Add a button to a search form, unless it has one."""
    return form if 'type="submit"' in form else f"{form}\n  {SUBMIT}"


def with_icons(page: str) -> str:
    """Draw the theme's icons as SVG, without the script of 1.5 MB that brings all of them."""
    return LOADS_ICON_SCRIPT.sub("", ICON.sub(as_svg, page))


def as_svg(match: re.Match[str]) -> str:
    """Turn one `<i class="fas fa-name">` into its drawing; an unknown one is left as it is."""
    attributes = match[2]
    named = CLASSES.search(attributes)
    classes = html.unescape(named[1]).split() if named else []
    names = [c.removeprefix("fa-") for c in classes if c.startswith("fa-")]
    name = next((n for n in names if n not in ICON_SIZES), "")
    found = drawing(name, "fab" in classes or "fa-brands" in classes)
    if found is None:
        logger.warning("the theme has no icon %r", name)
        return match[0]
    width, height, path = found
    kept = " ".join(["svg-inline--fa", *classes])
    attributes = CLASSES.sub(f'class="{html.escape(kept)}"', attributes)
    return (
        f'<svg {attributes} viewBox="0 0 {width} {height}" aria-hidden="true" focusable="false">'
        f'<path fill="currentColor" d="{path}"></path></svg>'
    )


def drawing(name: str, brand: bool) -> tuple[str, str, str] | None:
    """Find an icon.

    Args:
        name: such as `magnifying-glass`; an icon's other names count.
        brand: whether it is a company's sign.

    Returns:
        Width, height and path, or None if there is no such icon.
    """
    found = drawings().get(name)
    return found[0 if brand else -1] if found else None


@cache
def drawings() -> dict[str, list[tuple[str, str, str]]]:
    """Read the theme's script: for every name of an icon its drawings, the solid one last."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for entry in ICON_ENTRY.finditer(ICON_SCRIPT.read_text(encoding="utf-8")):
        names = [entry["name"], *re.findall(r'"([^"]+)"', entry["others"])]
        for name in names:
            found.setdefault(name, []).append((entry["width"], entry["height"], entry["path"]))
    return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_config_value("static_fingerprint", "", "html")
    app.connect("config-inited", note_looks)
    app.connect("builder-inited", complete_pages)
    app.connect("doctree-read", tell_exercises_apart)
    app.connect("doctree-read", name_folds)
    app.connect("doctree-resolved", tell_columns)
    app.connect("doctree-resolved", drop_thebe_settings, priority=900)
    app.connect("html-page-context", complete_context, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
