"""Where the links of a page lead when it is served from elsewhere."""

from _ext.look import own_pages


def test_what_leads_elsewhere_or_stays_on_the_page_is_not_touched():
    text = '<a href="https://x.org/y"><a href="#z"><a href="/q"><a href="mailto:a@b.c">'
    assert own_pages.moved(text, "/site/") == text


def test_the_root_that_scripts_read_is_moved_too():
    assert own_pages.moved('<html data-content_root="../">', "", "/book/intro.html") == (
        '<html data-content_root="./">'
    )
    assert (
        own_pages.moved('<html data-content_root="./">', "/s/") == '<html data-content_root="/s/">'
    )
