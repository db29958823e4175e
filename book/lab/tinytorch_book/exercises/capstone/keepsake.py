"""A page to keep: what a reader's GPT is made of, how near it came to the floor, what it wrote.

It is one HTML file without a link to anything, and prints on one sheet.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from tinytorch_book.exercises.capstone.parts import PARTS
from tinytorch_book.exercises.capstone.your_gpt import YourGPT

__all__ = ["Keepsake"]

_STYLE = """
body { font: 1.05rem/1.5 Georgia, serif; max-width: 42rem; margin: 3rem auto; padding: 0 1rem;
  color: #1d1d1f; background: #fff; }
h1 { font-weight: normal; margin-bottom: 0; }
ul { columns: 17rem 2; column-gap: 2.5rem; padding-left: 1.2rem; }
h2 { font-size: 1.15rem; }
li { break-inside: avoid; }
ul + p { color: #5f6368; }
blockquote { margin: 1.5rem 0; padding-left: 1rem; border-left: 3px solid #1d1d1f; }
footer { color: #5f6368; font-size: 0.9rem; }
@page { margin: 18mm; }
@media print { body { margin: 0; max-width: none; font-size: 11pt; }
  section, blockquote { break-inside: avoid; } }
"""


@dataclass(frozen=True)
class Keepsake:
    """A page to keep, which `save` writes and a page of the book offers to download.

    Attributes:
        gpt: the GPT whose parts it lists.
        loss: the surprise at text that was not trained on, in nats a character.
        floor: the lowest loss that a model of this text can reach, or None if unknown.
        story: what the model has written.
        name: the reader's name, or "".

    Example:
        >>> from tinytorch_book.exercises.capstone.your_gpt import your_gpt
        >>> page = Keepsake(your_gpt({}), 0.17, 0.119, "Mia was a brave girl.", "Ada")
        >>> page.file[0], "Ada" in page.file[1]
        ('your-gpt.html', True)
    """

    gpt: YourGPT
    loss: float
    floor: float | None = None
    story: str = ""
    name: str = ""

    @property
    def file(self) -> tuple[str, str]:
        """The name of the file, and its text."""
        title = f"The GPT of {escape(self.name)}" if self.name else "My GPT"
        told = f"{self.loss:.3f} nats a character on text it had not read"
        if self.floor is not None:
            told += (
                f"; the floor, the least that any model can reach on average, is {self.floor:.3f}"
            )
        mine = "\n".join(f"<li>{name}: {PARTS[name][1]}</li>" for name in self.gpt.yours)
        count = len({*self.gpt.yours, *self.gpt.examples, *self.gpt.others})
        theirs = f"<p>The book’s: {', '.join(self.gpt.others)}.</p>\n" if self.gpt.others else ""
        body = (
            f"<h1>{title}</h1>\n<p>My own parts: {len(self.gpt.yours)} of {count}.</p>\n"
            f"<section><h2>Its parts</h2>\n<ul>\n{mine}\n</ul>\n{theirs}</section>\n"
            f"<section><h2>Its loss</h2>\n<p>{told}.</p></section>\n"
            f"<section><h2>What it wrote</h2>\n<blockquote>{escape(self.story)}</blockquote>"
            "</section>\n<footer>Made with the book TinyTorch, with only NumPy.</footer>"
        )
        head = f'<meta charset="utf-8">\n<title>{title}</title>\n<style>{_STYLE}</style>'
        return "your-gpt.html", (
            f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n'
            f"<body>\n{body}\n</body>\n</html>\n"
        )

    def save(self, path: str = "your-gpt.html") -> Keepsake:
        """Write the file, and return this.

        Raises:
            OSError: it cannot be written.
        """
        from tinytorch.files.atomic_files import write_atomically

        write_atomically(path, self.file[1].encode())
        return self

    def __repr__(self) -> str:
        return f"a page to keep: {self.file[0]}, your own parts: {len(self.gpt.yours)}"
