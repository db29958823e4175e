"""One style sheet and one script for every page, which hold what the pages use and no more.

Sphinx, the theme and the extensions bring eleven style sheets and a dozen scripts, 600 KB that each
page would load. When the pages are written, those named in `STYLES` and `SCRIPTS` are put
together; of the styles only those rules stay whose classes and ids occur on a page or in a script,
and only those custom properties that something reads.
A style sheet or script that is named nowhere here stays on the page as it came.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import tinycss2
from sphinx.application import Sphinx

STYLE, SCRIPT = "book.css", "book.js"
STYLES = [  # in the order in which they apply
    "basic.css",
    "styles/pydata-sphinx-theme.css",
    "styles/sphinx-book-theme.css",
    "togglebutton.css",
    "copybutton.css",
    "mystnb.*.css",
    "exercise.css",
    "live/live.css",
    "fonts.css",
    "tinytorch.css",
    "drawings.css",
    "moving/moving.css",
    "playground/door.css",
]
SCRIPTS = [
    "documentation_options.js",
    "doctools.js",
    "found.js",
    "clipboard.min.js",
    "copybutton.js",
    "scripts/sphinx-book-theme.js",
    "togglebutton.js",
    "scripts/bootstrap.js",
    "scripts/pydata-sphinx-theme.js",
    "reading.js",
    "folds.js",
    "titles.js",
]
UNUSED = ["styles/theme.css", "sphinx-design.min.css", "design-tabs.js"]
UNUSED += ["pygments.css"]  # tinytorch.css has the book's colours of code
UNUSED += ["sphinx_highlight.js"]  # found.js marks what was searched for
# of every page's first screen
FONTS = ["fonts/serif.woff2", "fonts/serif-italic.woff2", "fonts/mono.woff2"]
PRELOAD = '<link rel="preload" as="font" type="font/woff2" crossorigin href="{}" />'
SEARCH = "search.js"  # stands after Sphinx's own, which it changes, and before the index
FOR_SEARCH = ["searchtools.js", "language_data.js", "searchindex.js"]
# Whose words may name classes: all scripts but Bootstrap's, which knows parts that no page has.
NAMING = ["*.js", "scripts/pydata-sphinx-theme.js", "scripts/sphinx-book-theme.js"]
NAMING += ["live/*.js", "live/*.py", "moving/*.js", "playground/door.js"]
BOOTSTRAP_ADDS = {"show", "fade", "tooltip", "tooltip-arrow", "tooltip-inner", "bs-tooltip-auto"}

LINK = re.compile(r'\s*<link\b[^>]*\bhref="([^"?]*)[^"]*"[^>]*>')
LOADED = re.compile(r'\s*<script\b[^>]*\bsrc="([^"?]*)[^"]*"[^>]*></script>')
BEFORE_INDEX = re.compile(r'(?=<script defer src="[^"]*\bsearchindex\.js)')
OPTION = re.compile(r"\s*<script>DOCUMENTATION_OPTIONS\.[^<]*</script>")
ROOT = re.compile(r'data-content_root="([^"]*)"')
VERSION = re.compile(r"\b(book\.(?:css|js)|search\.js)\?v=\w*")
NAMES = re.compile(r'\b(?:class|id)="([^"]*)"')
READS = re.compile(r"var\(\s*(--[\w-]+)")
PROPERTY = re.compile(r"--[\w-]+")
SETS = re.compile(r"(?<=[{;])\s*(--[\w-]+)\s*:(?:[^;{}\"']|\"[^\"]*\"|'[^']*')*(?:;|(?=\}))")
WORD = re.compile(r"[A-Za-z_][\w-]*")
SPACE = re.compile(r"\s+")
COMMENT = re.compile(r"^[ \t]*//.*\n", re.M)  # of a script, on a line of its own
# where a style sheet needs no space
AROUND = re.compile(r" ?([{},]) ?|(?<=;) |(?<=[a-z]:) (?! ?;)")
QUOTED = re.compile(r"""("[^"]*"|'[^']*')""")
OF_CODE = re.compile(r"[^{}]*\.highlight\b[^{}]*(?=\{)")  # selectors
CLASS = re.compile(r"\.([A-Za-z_][\w-]*)")
CODE = re.compile(r'(?<=<div class="highlight">).*?(?=</pre>)', re.S)
TOKEN = re.compile(r'<span class="(\w+)">([^<]*)</span>')
URL = re.compile(r"url\((['\"]?)\.\./")


# A page ---------------------------------------------------------------------------------------


def bundled(page: str, is_search: bool) -> str:
    """Let a page load the two bundles instead of what they hold.

    Args:
        page: its HTML.
        is_search: whether it is the search page, which alone needs the index.
    """
    root = found[1] if (found := ROOT.search(page)) else ""
    page = LINK.sub(lambda m: "" if gone(m[1], [*STYLES, *SCRIPTS, *UNUSED]) else m[0], page)
    unwanted = [*SCRIPTS, *UNUSED, *([] if is_search else FOR_SEARCH)]
    page = LOADED.sub(lambda m: "" if gone(m[1], unwanted) else deferred(m[0]), page)
    page = OPTION.sub("", page)
    place = f"{root}_static/"
    loaded = [PRELOAD.format(f"{place}{font}") for font in FONTS]
    loaded += [f'<link rel="stylesheet" href="{place}{STYLE}?v=" />']
    loaded += [f'<script defer src="{place}{SCRIPT}?v="></script>']
    if is_search:
        page = BEFORE_INDEX.sub(f'<script defer src="{place}{SEARCH}?v="></script>\n  ', page)
    return page.replace("</title>", "\n    ".join(["</title>", *loaded]), 1)


def gone(address: str, patterns: Iterable[str]) -> bool:
    """Return whether an address on a page is one of these files."""
    return any(Path(address).match(pattern) for pattern in patterns)


def deferred(script: str) -> str:
    """Let a script wait for the bundle, which comes before it."""
    return script if " defer" in script else script.replace("<script", "<script defer", 1)


# The bundles ----------------------------------------------------------------------------------


def write_bundles(app: Sphinx, error: Exception | None) -> None:
    """Put the bundles into the site, and their versions into the pages."""
    if error is not None or app.builder.format != "html":
        return
    site, static = Path(app.outdir), Path(app.outdir, "_static")
    pages = [*site.glob("*.html"), *site.glob("book/**/*.html")]
    scripts = [path for pattern in SCRIPTS for path in static.glob(pattern)]
    naming = [path for pattern in NAMING for path in static.glob(pattern) if path.name != SCRIPT]
    known = names_on(pages) | BOOTSTRAP_ADDS | words_of(naming)
    read = properties_in([*pages, *naming, *scripts])
    styles = [read_style(path) for pattern in STYLES for path in static.glob(pattern)]
    script = COMMENT.sub("", "\n;".join(path.read_text(encoding="utf-8") for path in scripts))
    style = without_unread("\n".join(used(style, known) for style in styles), read)
    bundles = {STYLE: shortened(style), SCRIPT: script}
    named = {name for selector in OF_CODE.findall(style) for name in CLASS.findall(selector)}
    for name, text in bundles.items():
        (static / name).write_text(text, encoding="utf-8")
    bundles[SEARCH] = (static / SEARCH).read_text(encoding="utf-8")
    versions = {n: hashlib.sha256(t.encode()).hexdigest()[:8] for n, t in bundles.items()}
    for path in pages:
        page = path.read_text(encoding="utf-8")
        new = VERSION.sub(lambda m: f"{m[1]}?v={versions[m[1]]}", page)
        new = CODE.sub(lambda m: without_plain_tokens(m[0], named), new)
        if new != page:
            path.write_text(new, encoding="utf-8")


def names_on(pages: Iterable[Path]) -> set[str]:
    """Collect the classes and ids of pages."""
    texts = (path.read_text(encoding="utf-8") for path in pages)
    return {name for text in texts for names in NAMES.findall(text) for name in names.split()}


def words_of(scripts: Iterable[Path]) -> set[str]:
    """Collect the words of scripts: what they look for or add is among them."""
    return {word for path in scripts for word in WORD.findall(path.read_text(encoding="utf-8"))}


def properties_in(files: Iterable[Path]) -> set[str]:
    """Collect the custom properties of which pages and scripts speak: figures are drawn in them."""
    return {name for path in files for name in PROPERTY.findall(path.read_text(encoding="utf-8"))}


def read_style(path: Path) -> str:
    """Read a style sheet; what it loads is addressed from the bundle."""
    text = path.read_text(encoding="utf-8")
    return URL.sub(r"url(\1", text) if path.parent.name == "styles" else text


def used(style: str, known: set[str]) -> str:
    """Keep of a style sheet the rules whose classes and ids are known.

    >>> used(".a b, .c {x: y} #d {} @media print { .a {x: y} .c {} } i {z: w}", {"a"})
    '.a b{x: y}@media print{.a{x: y}}i{z: w}'
    """
    rules = tinycss2.parse_stylesheet(style, skip_comments=True, skip_whitespace=True)
    return "".join(kept_rules(rules, known))


def kept_rules(rules: list[Any], known: set[str]) -> Iterator[str]:
    """Write the rules that stay."""
    for rule in rules:
        if rule.type == "at-rule" and rule.at_keyword in ("media", "supports"):
            inner = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
            if kept := "".join(kept_rules(inner, known)):
                yield f"@{rule.at_keyword} {tinycss2.serialize(rule.prelude).strip()}{{{kept}}}"
        elif rule.type == "at-rule" and not is_of_icons(rule):
            yield tinycss2.serialize([rule])
        elif rule.type == "qualified-rule":
            selectors = [s for s in alternatives(rule.prelude) if names_in(s) <= known]
            if selectors:
                names = ",".join(tinycss2.serialize(s).strip() for s in selectors)
                yield f"{names}{{{tinycss2.serialize(rule.content).strip()}}}"


def is_of_icons(rule: Any) -> bool:
    """Recognise the fonts of the theme's icons, which the pages draw (`theme.py`)."""
    return rule.at_keyword == "font-face" and "fontawesome" in tinycss2.serialize(rule.content)


def without_unread(style: str, read: set[str]) -> str:
    """Drop the custom properties that neither the styles read nor, as `read` says, anything else.

    >>> without_unread("a{--x:1;--y:var(--x);--z:2;b:var(--z)}", set())
    'a{--z:2;b:var(--z)}'
    """
    wanted = read | set(READS.findall(style))
    shorter = SETS.sub(lambda match: match[0] if match[1] in wanted else "", style)
    return style if shorter == style else without_unread(shorter, read)


def shortened(style: str) -> str:
    r"""Leave out the spaces and line ends that mean nothing.

    >>> shortened('a ,\n b {\n  x: 1px   2px;\n  --y: ; content: "; a"; }')
    'a,b{x:1px 2px;--y: ;content:"; a";}'
    """
    parts = QUOTED.split(style)
    parts[::2] = [AROUND.sub(r"\1", SPACE.sub(" ", part)) for part in parts[::2]]
    return "".join(parts)


def without_plain_tokens(code: str, named: set[str]) -> str:
    """Take highlighted code out of the elements that no style names: most are names and commas.

    >>> without_plain_tokens('<span class="k">if</span> <span class="n">x</span>', {"k"})
    '<span class="k">if</span> x'
    """
    return TOKEN.sub(lambda m: m[0] if m[1] in named else m[2], code)


def alternatives(prelude: list[Any]) -> list[list[Any]]:
    """Split a rule's selectors at their commas."""
    found: list[list[Any]] = [[]]
    for token in prelude:
        if token == ",":
            found.append([])
        elif token.type != "comment":
            found[-1].append(token)
    return found


def names_in(selector: list[Any]) -> set[str]:
    """Name the classes and ids that a selector needs; those in `:not()` and the like do not."""
    names = {token.value for token in selector if token.type == "hash"}
    pairs = pairwise(selector)
    return names | {b.value for a, b in pairs if a == "." and b.type == "ident"}


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("build-finished", write_bundles, priority=950)  # after all else is in the site
    return {"parallel_read_safe": True, "parallel_write_safe": True}
