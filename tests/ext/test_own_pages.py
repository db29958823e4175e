"""Where the links of a page lead when it is served from elsewhere."""

from _ext.look import own_pages


def test_external_links_and_links_within_the_page_are_unchanged():
    text = '<a href="https://x.org/y"><a href="#z"><a href="/q"><a href="mailto:a@b.c">'
    assert own_pages.moved(text, "/site/") == text


def test_the_root_for_scripts_is_also_moved():
    assert own_pages.moved('<html data-content_root="../">', "", "/book/intro.html") == (
        '<html data-content_root="./">'
    )
    assert (
        own_pages.moved('<html data-content_root="./">', "/s/") == '<html data-content_root="/s/">'
    )
