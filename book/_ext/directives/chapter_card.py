"""The card at the head of a chapter.

    ```{chapter-card}
    :question: how do integers become vectors that can learn?
    :build: an embedding table with its gradient
    :needs: foundations/tensors, foundations/autograd
    :difficulty: 2
    - write a lookup and its gradient
    ```

It is plain HTML and needs no script. Where the page has a box of the class `believe`, *What you may
believe for now*, the card tells a reader who knows only Python what it is for.
"""

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from drawings import model
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from ..live import live_cells
from .drawing import drawing_node, note_sources
from .elements import build, with_class
from .playground import map_anchor

logger = logging.getLogger(__name__)

BELIEVE = (  # before, in and after the name of the box
    "No maths? A box ",
    "What you may believe for now",
    " lets you skip a derivation.",
)
LANDING, AT_WORK = "book/intro", "See it at work"  # the page with the map, and what leads there
LIT = {  # the part of the model that a chapter is about
    "counting-letters": "text",
    "tensors": "tensors",
    "autograd": "gradients",
    "first-network": "training",
    "tokenization": "tokens",
    "token-embeddings": "token-embedding",
    "positional-encodings": "positions",
    "embedding-layer": "embedding",
    "scaled-dot-product": "attention",
    "multi-head": "attention",
    "positions-in-attention": "positions-in-attention",
    "normalisation-and-mlp": "mlp",
    "block": "block",
    "gpt": "stack",
    "data-and-loss": "training",
    "optimisation": "training",
    "sampling": "sampling",
    "kv-cache": "cache",
    "what-it-looks-at": "attention",
    "what-it-knows": "stack",
    "which-is-better": "stack",
    "a-model-that-answers": "stack",
    "learning-from-context": "stack",
    "preferences": "stack",
    "smaller-and-faster": "stack",
    "why-it-is-fast": "stack",
    "scaling": "stack",
    "more-than-one-machine": "stack",
    "gpt2": "stack",
    "talk": "stack",
    "your-text": "text",
    "fine-tuning": "stack",
    "your-gpt": "stack",
}
# At once, while the page is read: nothing moves under the reader's eyes.
FOLD_ON_A_PHONE = """<script>
if (matchMedia("(max-width: 768px)").matches)
  document.currentScript.previousElementSibling.open = false;
</script>"""


class reading_time(nodes.General, nodes.Element):
    """Stands for the reading time until the page has been read (`page_measures.py`)."""


class run_time_place(nodes.General, nodes.Element):
    """Stands for the run time until the page has been executed."""


class ChapterCard(SphinxDirective):
    """The card at the head of a chapter: its question, what is built, what it needs and takes."""

    has_content = True
    option_spec: ClassVar = {
        "question": directives.unchanged_required,
        "build": directives.unchanged_required,
        "needs": directives.unchanged_required,
        "difficulty": lambda value: directives.choice(value, ("1", "2", "3", "4", "5")),
    }

    def run(self) -> list[nodes.Node]:
        """Build the card; what is not known yet is left to the events below."""
        missing = [name for name in self.option_spec if name not in self.options]
        if missing or not self.content:
            raise self.error(f"a chapter-card needs {', '.join(missing) or 'its objectives'}")
        card = build("section", classes="tt-card", **{"aria-label": "About this chapter"})
        card += self.paragraph("tt-card__question", self.options["question"])
        card += self.paragraph("tt-card__build", self.options["build"], "You build: ")
        card += build(
            "dl",
            *fact("Before this", *self.prerequisites()),
            *fact("Difficulty", *stars(int(self.options["difficulty"]))),
            *fact("Reading time", reading_time()),
            run_time_place(),
            classes="tt-card__facts",
        )
        objectives = build("div", classes="tt-card__objectives")
        objectives += build("p", text="At the end you can")
        self.state.nested_parse(self.content, self.content_offset, objectives)
        more = build("details", classes="tt-card__more", open="open")
        more += [build("summary", text="Aims and map"), objectives]
        lit = LIT.get(self.env.docname.rsplit("/", 1)[-1])
        more += self.map(lit) if lit else []
        card += [more, nodes.raw("", FOLD_ON_A_PHONE, format="html")]
        note_sources(self.env)
        self.set_source_info(card)
        return [card]

    def paragraph(self, classes: str, text: str, label: str = "") -> nodes.Node:
        """Make a paragraph of inline markup."""
        inline, messages = self.state.inline_text(text, self.lineno)
        start = [build("span", classes="tt-card__label", text=label)] if label else []
        return build("p", *start, *inline, *messages, classes=classes)

    def prerequisites(self) -> list[nodes.Node]:
        """Make links of page names; other words stay words."""
        parts: list[nodes.Node] = []
        for need in (part.strip() for part in self.options["needs"].split(",")):
            parts += [nodes.Text(", ")] if parts else []
            parts.append(self.page_link(need) if "/" in need else nodes.Text(need))
        return parts

    def map(self, lit: str) -> nodes.Node:
        """Draw the model with a part lit, with a link to that part of the map at work."""
        found = build("div", drawing_node("model", lit), classes="tt-card__map")
        if LANDING in self.env.found_docs:
            landing = self.env.app.builder.get_relative_uri(self.env.docname, LANDING)
            name = f"{AT_WORK}: {model.PARTS[lit]}, in the map of the model"
            address = {"href": f"{landing}#{map_anchor(lit)}", "aria-label": name}
            found += build("a", text=AT_WORK, classes="tt-card__live", **address)
        return found

    def page_link(self, page: str) -> nodes.Node:
        """Link to a page of this book, with its title as text; Sphinx warns if there is none."""
        book = self.env.docname.split("/")[0]
        target = page if page.startswith(f"{book}/") else f"{book}/{page}"
        xref = addnodes.pending_xref(
            "",
            nodes.inline("", page),
            refdomain="std",
            reftype="doc",
            refexplicit=False,
            refwarn=True,
            refdoc=self.env.docname,
            reftarget=f"/{target}",
        )
        self.set_source_info(xref)
        return xref


def fact(name: str, *value: nodes.Node) -> list[nodes.Node]:
    """Make one pair of the list of facts."""
    return [build("div", build("dt", text=name), build("dd", *value))]


def stars(difficulty: int) -> list[nodes.Node]:
    """Show a difficulty of 1 to 5 to the eye, and say it to a screen reader."""
    dots = "●" * difficulty + "○" * (5 - difficulty)
    return [
        build("span", text=dots, classes="tt-card__difficulty", **{"aria-hidden": "true"}),
        build("span", text=f"{difficulty} of 5", classes="visually-hidden"),
    ]


def mention_beliefs(app: Sphinx, doctree: nodes.document) -> None:
    """Say on the card what the boxes are for that stand in for a derivation, if there are any."""
    if next(with_class(doctree, "believe"), None) is not None:
        before, name, after = BELIEVE
        said = nodes.Text(before), nodes.emphasis("", name), nodes.Text(after)
        add_to_card(doctree, build("p", *said, classes="tt-card__believe"))


def add_to_card(doctree: nodes.document, line: nodes.Node) -> None:
    """Put a line on the card of a page, if it has one, above what is folded there."""
    for more in with_class(doctree, "tt-card__more"):
        more.parent.insert(more.parent.index(more), line)
        return


def fill_run_time(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Fill in, on a page of the site, how long its cells take in the browser."""
    for place in list(doctree.findall(run_time_place)):
        text = live_cells.run_time(app, docname) if app.builder.format == "html" else ""
        place.replace_self(fact("Run time", nodes.Text(text)) if text else [])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.setup_extension(f"{__package__}.drawing")
    app.setup_extension(f"{__package__}.elements")
    app.add_node(reading_time)
    app.add_node(run_time_place)
    app.add_directive("chapter-card", ChapterCard)
    app.connect("doctree-read", mention_beliefs)
    app.connect("doctree-resolved", fill_run_time)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
