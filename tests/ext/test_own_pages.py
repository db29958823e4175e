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


def test_an_earlier_address_leads_on_and_an_anchor_to_the_page_that_has_it(tmp_path, monkeypatch):
    monkeypatch.setattr(own_pages, "EARLIER", {"a/old": ["a/first", "b/second"]})
    own_pages.forwards(tmp_path)
    assert not (tmp_path / "a/old.html").exists(), "the pages that it leads to are not built"
    for name, ids in (("a/first", "one both"), ("b/second", "two both")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        text = "".join(f'<p id="{name}"></p>' for name in ids.split())
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
    own_pages.forwards(tmp_path)
    page = (tmp_path / "a/old.html").read_text(encoding="utf-8")
    assert '<a href="first.html">' in page and 'others = {"two": "../b/second.html"}' in page
