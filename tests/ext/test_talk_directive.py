"""The directive that puts a published model into a page, and its file in pieces in the site."""

import hashlib
import json
import re

import pytest
from _ext.live import model_pieces, pinned_downloads
from small_site import build, built

PLACE = "```{talk-to-it}\nHere a model answers.\n```\n"
FILE = "some.gguf"


@pytest.mark.filterwarnings("default")
def test_the_directive_writes_which_file_it_is_and_how_large(tmp_path):
    page, other = built(tmp_path, PLACE)
    [tag] = re.findall(r'<div [^>]*class="tt-talk"[^>]*>', page)
    assert 'aria-label="Talk to it"' in tag and 'role="region"' in tag
    digest = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    assert f'data-sha256="{digest}"' in tag and 'data-size="98362432"' in tag
    assert "<p>Here a model answers.</p>" in page
    assert "published/talk.css" in page
    assert "talk.css" not in other


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (PLACE + "\n" + PLACE, "a page has one model to talk to"),
        ("```{talk-to-it}\n```\n", "the panel needs a content"),
    ],
    ids=["two", "empty"],
)
def test_a_second_panel_or_one_without_a_sentence_is_an_error(tmp_path, body, message):
    _, warnings = build(tmp_path, index=f"# A\n\n{body}")
    assert message in warnings


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder with a pinned model of 50 bytes."""
    content = bytes(range(50))
    pin = f'[smollm2.files]\n"{FILE}" = "{hashlib.sha256(content).hexdigest()}"\n'
    pins = tmp_path / pinned_downloads.PINS
    pins.parent.mkdir(parents=True)
    pins.write_text(f'[smollm2]\nfolder = "fetched"\naddresses = []\n{pin}', "utf-8")
    (tmp_path / "fetched").mkdir()
    (tmp_path / "fetched" / FILE).write_bytes(content)
    return tmp_path


def test_the_pieces_of_the_model_make_its_file(root):
    model_pieces.split(root / "fetched" / FILE, root / "site", most=20)
    manifest = json.loads((root / "site" / "manifest.json").read_text("utf-8"))
    parts = [(root / "site" / piece["name"]).read_bytes() for piece in manifest["pieces"]]
    assert [len(part) for part in parts] == [20, 20, 10]
    assert b"".join(parts) == bytes(range(50))
    assert manifest["name"] == FILE and manifest["size"] == 50
    assert manifest["sha256"] == hashlib.sha256(bytes(range(50))).hexdigest()
    for piece, part in zip(manifest["pieces"], parts, strict=True):
        assert piece["size"] == len(part)
        assert piece["sha256"] == hashlib.sha256(part).hexdigest()


def test_the_site_has_the_pieces_of_the_pinned_file_or_none(root):
    target, path = root / "site", root / "fetched" / FILE
    model_pieces.put(root, target)
    made = (target / "manifest.json").stat().st_mtime_ns
    model_pieces.put(root, target)
    assert (target / "manifest.json").stat().st_mtime_ns == made, "nothing is written twice"
    other = json.dumps({"sha256": "of another file"})
    (target / "manifest.json").write_text(other, "utf-8")
    path.write_bytes(b"damaged")
    model_pieces.put(root, target)
    assert not target.exists()
    path.unlink()
    target.mkdir()
    model_pieces.put(root, target)
    assert not target.exists()
