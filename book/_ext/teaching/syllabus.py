"""What a teacher asks of all chapters, as tables: a syllabus, aims and exercises, open projects.

    ```{syllabus}
    first-words | Bring a laptop. | Read aloud what the program writes.
    embeddings  | ...             | ...
    ```

has a row a week, with what to prepare and what to do in the lab. A week begins with the part or the
chapter that is named, `embeddings` or `foundations/tokenization`, and lasts until the next one that
is: a new chapter finds its week by its place in the contents. A short course can leave out parts
and chapters, `:without: generation/kv-cache inside`; its last row names what it leaves out. The
hours are those of the chapters' cards. `{aims}` sets every exercise beside the aim of its chapter's
card to which its option `:aim:` points, by number; an exercise without one is set beside what the
chapter builds. `{projects}` lists the open projects. Nothing is written twice: it is all collected
from the chapters while they are read.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx_exercise.nodes import is_exercise_node

from ..directives.elements import build, with_class
from ..directives.exercises import KINDS, title_and_points
from ..directives.page_measures import measure, minutes
from .slides import parts

logger = logging.getLogger(__name__)

WHEN = ("Before:", "Lab:")
GOAL = re.compile(r"[^.]*\bthe aim\b[^.]*(?:\.\d[^.]*)*\.", re.IGNORECASE)


@dataclass
class Exercise:
    """An exercise as its chapter has it; `aim` counts from 1, and 0 is none of the aims."""

    number: int
    label: str
    title: str
    kind: str
    points: int
    aim: int
    goal: str


@dataclass
class Course:
    """A chapter: its aims, what it builds, its exercises, and the minutes that its card gives."""

    builds: str = ""
    aims: list[str] = field(default_factory=list)
    exercises: list[Exercise] = field(default_factory=list)
    core: float = 0
    whole: float = 0


class table_of_course(nodes.General, nodes.Element):
    """Stands for a table until all chapters have been read."""


# What the chapters say ------------------------------------------------------------------------


def collect(app: Sphinx, doctree: nodes.document) -> None:
    """Note what a chapter says of itself; a page without a card is none."""
    card = next(with_class(doctree, "tt-card"), None)
    if card is None:
        return
    counts = measure(doctree)
    core, folded = (minutes(counts[part]) for part in ("core", "folded"))
    builds = next(with_class(card, "tt-card__build")).astext().removeprefix("You build: ")
    objectives = next(with_class(card, "tt-card__objectives"))
    aims = [item.astext() for item in objectives.findall(nodes.list_item)]
    found = enumerate(doctree.findall(is_exercise_node), start=1)
    exercises = [exercise(number, node) for number, node in found]
    for wrong in (e for e in exercises if e.aim > len(aims)):
        logger.warning("%s has the aim %d of %d", wrong.label, wrong.aim, len(aims), location=card)
    chapter = Course(builds, aims, exercises, core, core + folded)
    chapters_of(app.env)[app.env.docname] = chapter


def exercise(number: int, node: nodes.Element) -> Exercise:
    """Read an exercise; of its text the sentence that sets an aim."""
    title, points = title_and_points(node)
    title = title.removeprefix("Project: ")
    text = " ".join(node.children[1].astext().split()).replace("R^2", "R²")
    goal = GOAL.search(text)
    return Exercise(
        number,
        node["label"],
        title[:1].upper() + title[1:],
        node["kind"],
        points,
        node["aim"],
        goal[0].strip() if goal else "",
    )


def chapters_of(env: Any) -> dict[str, Course]:
    """Return what is known about the chapters."""
    if not hasattr(env, "course"):
        env.course = {}
    return env.course


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Forget a chapter that is read again."""
    chapters_of(env).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
    """Take over what another process has read."""
    chapters_of(env).update(
        {name: found for name, found in chapters_of(other).items() if name in docnames}
    )


def pages_with_tables(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Write a page with such a table again whenever a chapter has been read."""
    return sorted(getattr(env, "course_pages", set()))


# The tables -----------------------------------------------------------------------------------


class CourseTable(SphinxDirective):
    """Leave a place for a table of the course; its name is the directive's."""

    has_content = True
    option_spec: ClassVar = {"without": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Read the weeks, if there are any."""
        env: Any = self.env
        if not hasattr(env, "course_pages"):
            env.course_pages = set()
        env.course_pages.add(env.docname)
        weeks = [
            [cell.strip() for cell in line.split("|")] for line in self.content if line.strip()
        ]
        course = parts(Path(self.env.srcdir))
        known = names_of(course)
        for week in weeks:
            if len(week) != 3 or week[0] not in known:
                raise self.error(
                    f"a week is `part or chapter | to prepare | in the lab`, and begins with one "
                    f"of {', '.join(known)}, not {' | '.join(week)!r}"
                )
        without = self.options.get("without", "").split()
        for name in without:
            if name not in known:
                raise self.error(f"{name} is no part or chapter that could be left out")
        left_out = [file for name in without for file in files_of(course, name)]
        place = table_of_course(kind=self.name, weeks=[week[0] for week in weeks], without=left_out)
        for label, text in (pair for week in weeks for pair in zip(WHEN, week[1:], strict=True)):
            inline, _ = self.state.inline_text(text, self.lineno)
            place += nodes.paragraph("", "", nodes.strong("", label), nodes.Text(" "), *inline)
        self.set_source_info(place)
        return [place]


def names_of(known: dict[str, tuple[str, list[str]]]) -> dict[str, str]:
    """Return the chapter with which each part and each chapter begins."""
    chapters = {file.partition("/")[2]: file for _, files in known.values() for file in files}
    return {folder: files[0] for folder, (_, files) in known.items()} | chapters


def files_of(known: dict[str, tuple[str, list[str]]], name: str) -> list[str]:
    """Return the chapters of a part, or the one chapter of that name."""
    return known[name][1] if name in known else [names_of(known)[name]]


class Writer:
    """Writes the tables of a page.

    Args:
        app: what builds the site.
        docname: the page.
    """

    def __init__(self, app: Sphinx, docname: str) -> None:
        self.app, self.docname = app, docname
        self.chapters = chapters_of(app.env)
        self.parts = parts(Path(app.srcdir))

    def of(self, folder: str) -> list[str]:
        """Return the chapters of a part that have been read."""
        return [file for file in self.parts[folder][1] if file in self.chapters]

    def link(self, docname: str, text: str = "", label: str = "") -> nodes.reference:
        """Link to a chapter, or to an exercise of one."""
        address = self.app.builder.get_relative_uri(self.docname, docname)
        text = text or self.app.env.titles[docname].astext()
        return nodes.reference("", text, refuri=address + f"#{label}" * bool(label), internal=True)

    def syllabus(self, place: table_of_course) -> list[nodes.Node]:
        """Set out the weeks: what to read and for how long, what to prepare, the lab."""
        names = names_of(self.parts)
        begins = {names[name]: row for row, name in enumerate(place["weeks"])}
        chapters: list[list[str]] = [[] for _ in begins]
        row = 0
        for file in (file for folder in self.parts for file in self.of(folder)):
            row = begins.get(file, row)
            if file not in place["without"]:
                chapters[row].append(file)
        rows = []
        for number, files in enumerate(chapters, start=1):
            links = [nodes.paragraph("", "", self.link(file)) for file in files]
            said = place.children[2 * number - 2 : 2 * number]
            rows.append([str(number), [*links, self.sums(files)], said])
        everything = [file for files in chapters for file in files]
        told = "all weeks together"
        if place["without"]:
            titles = (self.app.env.titles[file].astext() for file in place["without"])
            told += ", without " + "; ".join(titles)
        rows.append(["", [self.sums(everything)], told])
        return [table(["week", "chapters", "before and in the lab"], rows)]

    def sums(self, files: list[str]) -> nodes.paragraph:
        """Describe how long chapters take to read, and how many exercises they have."""
        found = [self.chapters[file] for file in files]
        core, whole = sum(c.core for c in found) / 60, sum(c.whole for c in found) / 60
        exercises = [e for chapter in found for e in chapter.exercises]
        points = sum(e.points for e in exercises)
        text = f"{core:.1f} h, {whole:.1f} with folds; {len(exercises)} exercises, {points} points"
        return nodes.paragraph("", "", nodes.emphasis("", text))

    def aims(self, place: table_of_course) -> list[nodes.Node]:
        """Set the exercises beside the aims, one fold a part."""
        folds = []
        for folder, (caption, _) in self.parts.items():
            rows = [row for file in self.of(folder) for row in self.aims_of(file)]
            if rows:
                head = build("summary", text=caption)
                body = table(["chapter", "at the end you can", "exercises"], rows)
                folds.append(build("details", head, body, classes="tt-fold tt-deeper"))
        return folds

    def aims_of(self, file: str) -> list[list[Any]]:
        """Return a chapter's rows; what it builds is the aim of exercises that name none."""
        chapter = self.chapters[file]
        rows = []
        for number, aim in enumerate([*chapter.aims, chapter.builds], start=1):
            last = number > len(chapter.aims)
            mine = [e for e in chapter.exercises if e.aim == (0 if last else number)]
            if mine or not last:
                name = self.link(file) if number == 1 else ""
                text = f"build {aim}" if last else aim
                rows.append([name, text, [self.item(file, e) for e in mine] or "–"])
        return rows

    def item(self, file: str, exercise: Exercise) -> nodes.paragraph:
        """Name an exercise with its number, its kind and its points."""
        link = self.link(file, f"{exercise.number}. {exercise.title}", exercise.label)
        return nodes.paragraph(
            "", "", link, nodes.Text(f", {KINDS[exercise.kind]}, {exercise.points}")
        )

    def place(self, file: str, exercise: Exercise) -> nodes.paragraph:
        """Say which exercise of which chapter it is."""
        return nodes.paragraph(
            "", "", nodes.Text(f"Exercise {exercise.number} of "), self.link(file)
        )

    def projects(self, place: table_of_course) -> list[nodes.Node]:
        """List the open projects with what they ask for."""
        rows: list[list[Any]] = [
            [self.link(file, e.title, e.label), [self.place(file, e)], e.goal]
            for folder in self.parts
            for file in self.of(folder)
            for e in self.chapters[file].exercises
            if e.kind == "project"
        ]
        return [table(["project", "where", "when it is reached"], rows)]


def table(heads: list[str], rows: list[list[Any]]) -> nodes.table:
    """Make a table; a cell is text, a node or a list of paragraphs."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in heads), cols=len(heads))
    group += nodes.thead("", table_row(heads))
    group += nodes.tbody("", *map(table_row, rows))
    return nodes.table("", group, classes=["tt-course__table"])


def table_row(cells: list[Any]) -> nodes.row:
    """Make a row."""
    entries = []
    for cell in cells:
        if isinstance(cell, list):
            entries.append(nodes.entry("", *cell))
        else:
            inner = nodes.Text(cell) if isinstance(cell, str) else cell
            entries.append(nodes.entry("", nodes.paragraph("", "", inner)))
    return nodes.row("", *entries)


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the tables into their places; all chapters have been read by now."""
    writer = Writer(app, docname)
    for place in list(doctree.findall(table_of_course)):
        place.replace_self(getattr(writer, place["kind"])(place))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_node(table_of_course)
    for name in ("syllabus", "aims", "projects"):
        app.add_directive(name, CourseTable)
    app.connect("doctree-read", collect)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", pages_with_tables)
    app.connect("doctree-resolved", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 2}
