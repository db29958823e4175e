"""The drawings of the book: one hand, one set of parts.

A drawing is a function of one of the files here, named as the page that it belongs to; its
docstring says what one would see. It puts together what `parts.py` offers, in panels of at most 340
pixels, which stand beside each other on a laptop and under each other on a phone. The directive
`drawing` (`book/_ext/directives/drawing.py`) puts it into a page; `book/_static/drawings.css` has
the colours, each named by what it stands for.
"""

from importlib import import_module

from drawings.parts import DRAWINGS, Panel

__all__ = ["DRAWINGS", "Panel"]

PARTS_OF_THE_BOOK = ["model", "first_words", "foundations", "embeddings", "attention", "heads"]
PARTS_OF_THE_BOOK += ["transformer", "training", "generation", "systems", "real_gpt2"]
PARTS_OF_THE_BOOK += ["how_to_use", "your_text", "playground", "sentence"]
PARTS_OF_THE_BOOK += ["fine_tuning", "capstone", "inside"]
PARTS_OF_THE_BOOK += ["after_which_is_better"]
PARTS_OF_THE_BOOK += ["after_answers"]
PARTS_OF_THE_BOOK += ["after_context"]
PARTS_OF_THE_BOOK += ["after_preferences", "after_smaller_and_faster", "talk"]
for name in PARTS_OF_THE_BOOK:
    import_module(f"drawings.{name}")
