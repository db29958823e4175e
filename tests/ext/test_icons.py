"""The theme's icons, drawn into the page."""

import icons
import pytest

SCRIPT = '<script defer src="../_static/scripts/fontawesome.js?digest=55"></script>'


def test_an_icon_becomes_its_drawing_and_keeps_its_attributes():
    page = icons.with_icons(
        '<i class="theme-switch fa-solid fa-sun   fa-lg" data-mode="light"></i>'
    )
    assert page.startswith('<svg class="svg-inline--fa theme-switch fa-solid fa-sun fa-lg"')
    assert 'data-mode="light"' in page and 'aria-hidden="true"' in page
    assert 'viewBox="0 0 512 512"' in page and '<path fill="currentColor" d="M' in page


def test_the_script_is_taken_out():
    assert icons.with_icons(f"<head>\n  {SCRIPT}</head>") == "<head></head>"


@pytest.mark.parametrize("name", ["pencil-alt", "pencil"])
def test_other_names_of_an_icon_are_known(name):
    assert icons.drawing(name, False) == icons.drawing("pencil", False)


def test_a_brand_and_a_solid_icon_are_found():
    assert icons.drawing("github", True) and icons.drawing("file", False)


def test_what_is_no_icon_stays():
    for text in ('<i class="name">x</i>', "<i>fa-sun</i>", '<i class="sofa-bed"></i>'):
        assert icons.with_icons(text) == text


def test_an_unknown_icon_is_a_warning_and_stays(monkeypatch):
    said = []
    monkeypatch.setattr(icons.logger, "warning", lambda *args: said.append(args))
    text = '<i class="fas fa-no-such-thing"></i>'
    assert icons.with_icons(text) == text and said
