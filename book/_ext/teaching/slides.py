"""Slides for each part of the book, made of the pages of its chapters: `slides/<part>.html`.

A page gives, in its own order: the card's question with the map, each drawing and figure, the
prediction and what came, the first example that has an output, formulas, the source that is
included, the questions of Reflect, the list of exercises and the recap. What is folded under a
Deeper heading stays on the page. The paragraphs between become the speaker's notes.

reveal.js 6.0.2 (`_static/slides/reveal`) shows them; `_static/slides/slides.js` makes what is too
large for a slide fit. The decks are part of the site: they need what its pages need and no network.
"""

import html
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ..built_pages import part_of, text_of, there
from ..directives.drawing import inline
from ..look.theme import STAND_IN

FOLDER = "slides"
ARTICLE = re.compile(r'<article class="bd-article">.*?</article>', re.S)
UNWANTED = "a.headerlink, script, button, .tt-prediction__mark, .tt-live-plain, .tt-live-intro"
SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z<])")
EXERCISE_TITLE = re.compile(r"\((.*?)(?:, (\d+ points?))?\)\s*$", re.S)
SHOWN_LEAD = 420  # characters of the paragraph before a question or a formula
LONGEST_TEXT = 18  # lines in one column
DECK = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}, slides</title>
<link rel="icon" href="../_static/favicon.svg">
{styles}
<script>{stand_in}
document.documentElement.dataset.theme = localStorage.getItem("theme")
  || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");</script>
</head>
<body>
<div class="reveal"><div class="slides">
{slides}
</div></div>
{scripts}
</body>
</html>
"""
STYLES = [*("slides/reveal/reveal.css", "fonts.css", "tinytorch.css", "drawings.css")]
STYLES += ["slides/slides.css"]
SCRIPTS = ("slides/reveal/reveal.js", "slides/reveal/plugin/notes.js", "slides/slides.js")


@dataclass
class Slide:
    """One slide: its kind, heading and content as HTML, and what its speaker may say."""

    kind: str
    heading: str
    body: str
    notes: list[str] = field(default_factory=list)

    def written(self, chapter: str, name: str = "") -> str:
        """Return the slide as a `<section>`, which only reveal.js turns into a slide."""
        label = f' id="{name}"' if name else ""
        heading = "h1" if self.kind == "title" else "h2"
        above = "" if self.kind == "title" else f'<p class="tt-slide__chapter">{chapter}</p>'
        notes = f'<aside class="notes">{"".join(self.notes)}</aside>' if self.notes else ""
        return (
            f'<section class="bd-article tt-slide tt-slide--{self.kind}"{label}>'
            f"{above}<{heading}>{self.heading}</{heading}>"
            f'<div class="tt-slide__body"><div class="tt-slide__fit">{self.body}</div></div>'
            f"{notes}</section>"
        )


# A part ---------------------------------------------------------------------------------------


def parts(root: Path) -> dict[str, tuple[str, list[str]]]:
    """Return the caption and the chapters of each part, by the name of its folder.

    A chapter is in the folder of its part; the landing page and the appendix have none, and the
    pages of proofs have no slides.
    """
    found = {}
    for part in yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))["parts"]:
        files = [chapter["file"] for chapter in part["chapters"]]
        files = [file for file in files if not file.startswith("book/proofs/")]
        folder = files[0].split("/")[-2]
        if folder not in ("book", "appendix"):
            found[folder] = part["caption"], files
    return found


def deck(site: Path, folder: str, caption: str, files: list[str], book: str) -> str:
    """Write the slides of a part as a page of the site."""
    chapters = {file: Reader().chapter(page_of(site, file)) for file in files}
    written = [first_slide(folder, caption, chapters, book)]
    for file, slides in chapters.items():
        title, name = slides[0].heading, file.rsplit("/", 1)[-1]
        link = f'<a href="../{file}.html">{title}</a>'
        written += [slides[0].written("", name), *(slide.written(link) for slide in slides[1:])]
    styles = "\n".join(f'<link rel="stylesheet" href="../_static/{name}">' for name in STYLES)
    scripts = "\n".join(f'<script src="../_static/{name}"></script>' for name in SCRIPTS)
    title = html.escape(f"{book}: {caption}")
    sections = "\n".join(written)
    return DECK.format(
        title=title, styles=styles, scripts=scripts, slides=sections, stand_in=STAND_IN
    )


def first_slide(folder: str, caption: str, chapters: dict[str, list[Slide]], book: str) -> str:
    """Name the part, its chapters and their questions, beside the map of the book."""
    items = "".join(
        f'<li><a href="#/{file.rsplit("/", 1)[-1]}">{slides[0].heading}</a></li>'
        for file, slides in chapters.items()
    )
    drawn = inline("map-of-the-book", "", lambda name: f"../{name}.html")
    dimmed = re.sub(rf'<a (?=[^>]*href="(?!\.\./book/{folder}/))', '<a opacity="0.3" ', drawn)
    if f'href="../book/{folder}/' not in drawn:  # no place of the map is this part's
        dimmed = drawn
    beside = f'<figure class="tt-drawing">{dimmed}</figure>'
    body = f'<div><p class="tt-slide__book">{html.escape(book)}</p><ul>{items}</ul></div>{beside}'
    return Slide("title", html.escape(caption), body).written("", folder)


def page_of(site: Path, docname: str) -> Tag:
    """Read the article of a built page, its links as they lead from the decks."""
    page = (site / f"{docname}.html").read_text(encoding="utf-8")
    found = there(ARTICLE.search(page), "article")
    article = part_of(BeautifulSoup(found[0], "html.parser"), "article")
    for unwanted in article.select(UNWANTED):
        unwanted.decompose()
    for link in article.select("a[href]"):
        address = urljoin(f"{docname}.html", text_of(link, "href"))
        link["href"] = address if urlsplit(address).scheme else f"../{address}"
    for tag in article.find_all(id=True):
        if not tag.find_parent("svg") and tag.name != "svg":
            del tag["id"]
    return article


# A chapter ------------------------------------------------------------------------------------


class Reader:
    """Reads a chapter's page from top to bottom; `slides` grows, text goes to the last one's notes.

    Text that opens a section, or leads to a question or a formula, waits in `lead` for its slide.
    """

    def __init__(self) -> None:
        self.slides: list[Slide] = []
        self.lead: list[str] = []
        self.heading = ""
        self.wants_code = False  # the next cell that has an output is shown with its code

    def chapter(self, article: Tag) -> list[Slide]:
        """Return the slides of a page."""
        self.section(there(part_of(article, "h1").parent, "section"))
        self.say()
        return self.slides

    def add(self, kind: str, body: str, *notes: str) -> None:
        """Begin a slide; what has led to it is said with it."""
        said, self.lead = [*self.lead, *notes], []
        self.slides.append(Slide(kind, self.heading, body, said))

    def say(self) -> None:
        """Let what led to no slide be said with the last one."""
        if self.slides:
            self.slides[-1].notes += self.lead
            self.lead = []

    def section(self, section: Tag) -> None:
        """Read a section; what goes deeper stays on the page."""
        if section.find("details", class_="tt-deeper", recursive=False):
            return
        self.say()
        outer, title = self.heading, section.find(["h1", "h2", "h3", "h4"], recursive=False)
        self.heading = title.decode_contents() if title else outer
        special = title and SPECIAL.get(title.get_text().split(",")[0].lower())
        if special:
            special(self, section)
        else:
            self.children(section)
        self.heading = outer

    def children(self, parent: Tag) -> None:
        """Read the content of a section, or of the answer to a prediction."""
        for child in parent.find_all(recursive=False):
            take = next(
                (take for selector, take in TAKES.items() if child.css.match(selector)), None
            )
            if take:
                take(self, child)

    def text(self, tag: Tag) -> None:
        """Keep a paragraph for the speaker."""
        self.lead.append(str(tag))

    def belief(self, box: Tag) -> None:
        """Keep for the speaker what may be taken on trust instead of the derivation."""
        self.lead.insert(max(len(self.lead) - 1, 0), str(box))  # what leads to a slide comes last

    def shown_lead(self) -> str:
        """Return the paragraph that leads to a slide, unless it is long."""
        last = self.lead[-1] if self.lead else ""
        return last if len(BeautifulSoup(last, "html.parser").get_text()) <= SHOWN_LEAD else ""

    def card(self, card: Tag) -> None:
        """Open with the question, what is built, and the map of the model with this part lit."""
        question, build = (part_of(card, f".tt-card__{what}") for what in ("question", "build"))
        drawn = card.select_one(".tt-card__map figure")
        self.add("title", f"<div>{question}{build}</div>{drawn or ''}")
        self.heading = question.decode_contents()  # of a drawing that opens the chapter
        self.lead = [str(card.select_one(".tt-card__objectives"))]
        self.say()

    def drawing(self, figure: Tag) -> None:
        """Show a drawing or a figure with its caption."""
        self.add("drawing", str(figure))

    def formula(self, formula: Tag) -> None:
        """Show a formula under what leads to it."""
        self.add("formula", f"{self.shown_lead()}{formula}")

    def source(self, block: Tag) -> None:
        """Show source of the package; of a long docstring the first line."""
        for line in block.select(".sd")[1:]:
            if line.get_text().strip() != '"""':
                line.string = ""
        code = re.sub(r"(?m)^\s*(<span class=\"sd\"></span>)?\n", "", str(block))
        self.add("code", code)

    def cell(self, cell: Tag) -> None:
        """Show a cell that is wanted with its code, and of others what they draw."""
        output = cell.select_one(".cell_output")
        if output is None:
            return
        code = cell.find("div", class_="cell_input", recursive=False)
        if self.wants_code and code:
            self.add("code", f"{code}{output}")
            self.wants_code = False
        else:
            for figure in output.select("figure"):
                self.drawing(figure)

    def prediction(self, box: Tag) -> None:
        """Ask; the right choice lights up at the next key."""
        question = part_of(box, ".tt-prediction__question").decode_contents()
        came = box.select_one(".tt-prediction__came")
        whys = [str(why) for why in box.select(".tt-prediction__why")]
        choices = [
            (part_of(c, ".tt-prediction__text"), "tt-prediction__choice--right" in c["class"])
            for c in box.select(".tt-prediction__choice")
        ]
        answer = f'<p class="fragment tt-slide__came">{came.decode_contents()}</p>' if came else ""
        self.add("question", f"{self.shown_lead()}{question}{listed(choices)}{answer}", *whys)
        self.wants_code = True

    def answer(self, fold: Tag) -> None:
        """Show what came; the example by hand is the next that is shown with its code."""
        asked, self.heading = self.heading, "What comes out"
        self.children(fold)
        self.heading, self.wants_code = asked, True

    def writing(self, section: Tag) -> None:
        """Show what the model writes now, and the staircase, without their code."""
        for child in section.find_all(recursive=False):
            output = child.css.match("div.cell") and child.select_one(".cell_output")
            if child.name == "p":
                self.text(child)
            elif output and output.find("figure"):
                self.cell(child)
            elif output:
                self.add("code", str(in_columns(output)))

    def reflect(self, section: Tag) -> None:
        """Ask the questions, one a slide; the verdicts are for the speaker."""
        for box in section.select(".tt-reflect"):
            choices = [
                (part_of(c, "summary"), "tt-reflect__choice--right" in c["class"])
                for c in box.select("details")
            ]
            verdicts = [
                f"<p><em>{part_of(c, 'summary').get_text()}</em></p>{c.div}"
                for c in box.select("details")
            ]
            question = part_of(box, ".tt-reflect__question").decode_contents()
            self.add("question", f"{question}{listed(choices)}", *verdicts)

    def exercises(self, section: Tag) -> None:
        """List the exercises by their numbers, with kinds and points."""
        rows: list[str] = []
        for exercise in section.select(".exercise"):
            label = exercise.select_one(".tt-kind")
            kind = label.extract().get_text() if label else ""
            title = part_of(exercise, ".admonition-title").decode_contents()
            found = EXERCISE_TITLE.search(title)
            name, points = found.groups() if found else (title, "")
            cells = len(rows) + 1, name, kind, points or ""
            rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
        self.add("list", f"<table>{''.join(rows)}</table>")

    def recap(self, section: Tag) -> None:
        """Show the lines to keep; terms and sources are for the speaker."""
        first, *others = section.find_all(["p", "ul"], recursive=False)
        lines = SENTENCE_END.split(first.decode_contents())
        items = (
            "".join(f"<li>{line}</li>" for line in lines)
            if first.name == "p"
            else first.decode_contents()
        )
        self.add("list", f"<ul>{items}</ul>", *map(str, others))


def in_columns(output: Tag) -> Tag:
    """Let a long text run in columns, as many as there is room for."""
    lines = output.get_text().splitlines()
    if len(lines) > LONGEST_TEXT:
        output["style"] = f"column-width: {max(map(len, lines)) + 2}ch"
    return output


def listed(choices: list[tuple[Tag, bool]]) -> str:
    """List choices under letters; the right ones light up together."""
    items = "".join(
        f"<li{' class=' + repr(RIGHT) + ' data-fragment-index=0' if right else ''}>"
        f"{choice.decode_contents()}</li>"
        for choice, right in choices
    )
    return f'<ol class="tt-slide__choices">{items}</ol>' if items else ""


RIGHT = "fragment custom tt-slide__right"
SPECIAL = {
    "exercises": Reader.exercises,
    "reflect": Reader.reflect,
    "recap": Reader.recap,
    "what it writes now": Reader.writing,
}
TAKES = {
    "section.tt-card": Reader.card,
    "section": Reader.section,
    "details.tt-answer": Reader.answer,
    "figure.tt-drawing": Reader.drawing,
    ".tt-prediction": Reader.prediction,
    "div.cell": Reader.cell,
    "div.math": Reader.formula,
    'div[class*="highlight-python"]': Reader.source,
    "div.admonition.believe": Reader.belief,
    "p, ul, ol": Reader.text,
}


# The site -------------------------------------------------------------------------------------


def write_decks(app: Sphinx, error: Exception | None) -> None:
    """Write the decks of a built site, those whose chapters have changed."""
    if error is not None or app.builder.name != "html":
        return
    root, site = Path(app.srcdir), Path(app.outdir)
    (site / FOLDER).mkdir(exist_ok=True)
    for folder, (caption, files) in parts(root).items():
        path = site / FOLDER / f"{folder}.html"
        sources = [Path(__file__), root / "_toc.yml", *(site / f"{file}.html" for file in files)]
        if path.exists() and path.stat().st_mtime > max(s.stat().st_mtime for s in sources):
            continue
        text = deck(site, folder, caption, files, app.config.html_title)
        path.write_text(text, encoding="utf-8")


class Decks(SphinxDirective):
    """List the decks of all parts."""

    def run(self) -> list[nodes.Node]:
        """Link to each; the files are written when the pages are."""
        up = "../" * self.env.docname.count("/")
        items = nodes.bullet_list()
        for folder, (caption, _) in parts(Path(self.env.srcdir)).items():
            address = f"{up}{FOLDER}/{folder}.html"
            link = nodes.reference("", caption, refuri=address, internal=True)
            items += nodes.list_item("", nodes.paragraph("", "", link))
        self.env.note_dependency(str(Path(self.env.srcdir, "_toc.yml")))
        return [items]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("slide-decks", Decks)
    app.connect("build-finished", write_decks, priority=970)  # after all else is in the site
    return {"parallel_read_safe": True, "parallel_write_safe": True}
