"""The directive that lets a reader give a file to the cells of a page."""

import pytest
from small_site import build, built

PLACE = """```{your-file} your-text.txt
:title: Your text
:takes: Plain text.
:least: 4000

In a notebook, name a path.
```
"""


@pytest.mark.filterwarnings("default")
def test_the_directive_writes_its_options_and_fallback(tmp_path):
    page, other = built(tmp_path, PLACE)
    place = page.partition('<div class="tt-file"')[2].partition(">")[0]
    assert 'data-name="your-text.txt"' in place and 'data-least="4000"' in place
    assert 'data-title="Your text"' in place and "download" not in place
    assert "<p>In a notebook, name a path.</p>" in page
    assert "live/your_file.css" in page
    assert "your_file.css" not in other


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (PLACE.replace("your-text.txt", "../a.txt"), "a file is called something.txt"),
        (PLACE.replace(":takes: Plain text.\n", ""), "a file needs :title:, :takes:"),
        (PLACE.replace("In a notebook, name a path.\n", ""), "a file needs :title:, :takes:"),
    ],
    ids=["path", "takes", "empty"],
)
def test_an_incomplete_directive_is_refused(tmp_path, body, message):
    assert message in build(tmp_path, index=f"# A\n\n{body}")[1]
