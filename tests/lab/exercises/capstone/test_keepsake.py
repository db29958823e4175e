"""The page to keep tells whose each part is, the loss, the floor and a story, and needs nothing."""

from html.parser import HTMLParser

from solutions import MLP

from tinytorch_book.exercises.capstone.keepsake import Keepsake
from tinytorch_book.exercises.capstone.parts import PARTS, Part
from tinytorch_book.exercises.capstone.your_gpt import your_gpt


class Reading(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text, self.addresses = [], "", []

    def handle_starttag(self, tag, attributes):
        self.open += [tag] if tag != "meta" else []
        self.addresses += [value for name, value in attributes if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_it_tells_whose_the_parts_are_the_loss_the_floor_and_the_story(tmp_path):
    gpt = your_gpt({"mlp": Part("mlp", "MyMLP", MLP)})
    page = Keepsake(gpt, 0.1719, 0.1186, "Mia <ran> & hid.", "Ada & Bo")
    page.save(str(tmp_path / "page.html"))
    read = Reading()
    read.feed((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert (read.open, read.addresses) == ([], [])
    assert f"My own parts: 1 of {len(PARTS) - 1}." in read.text
    assert "mlp: lets each token think by itself\n" in read.text
    theirs = read.text.partition("The book’s: ")[2].partition(".\n")[0]
    assert len(theirs.split(", ")) == len(PARTS) - 2 and "mlp" not in theirs.split(", ")
    assert "0.172 nats a character" in read.text and "is 0.119." in read.text
    assert "Mia <ran> & hid." in read.text and "The GPT of Ada & Bo" in read.text
    assert "@media print" in page.file[1]
