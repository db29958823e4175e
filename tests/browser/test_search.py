"""The search, as a reader uses it: on a laptop, on a phone, by keyboard, with a slip."""

import pytest
from visit import PHONE

expect = pytest.importorskip("playwright.sync_api").expect

RESULTS = "#search-results ul.search li"
FINISHED = "() => document.querySelector('.search-summary')?.textContent"
pytestmark = [pytest.mark.browser, pytest.mark.slow]


def search(visit, query):
    """The links of the results, best first."""
    visit.page.goto(f"{visit.site}search.html?q={query}")
    visit.page.wait_for_function(FINISHED)
    return visit.page.locator(f"{RESULTS} > a").evaluate_all("all => all.map(a => a.pathname)")


def quotes(visit):
    """What is quoted below the results, once every page that is quoted has come."""
    unquoted = visit.page.locator(f"{RESULTS}:not(:has(> p.context, > span))")
    unquoted.first.wait_for(state="detached")
    return visit.page.locator(f"{RESULTS} p.context").all_text_contents()


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("kv cache", "generation/kv-cache"),
        ("attention", "attention/"),
        ("tokenization", "foundations/tokenization"),
        ("layer normalisation", "transformer/normalisation-and-mlp"),
        ("dot-product", "foundations/tensors"),
        ("scaled dot-product", "attention/scaled-dot-product"),
    ],
)
def test_the_chapter_that_explains_a_word_comes_first(visit, query, first):
    assert f"/book/{first}" in search(visit, query)[0]


def test_an_unbroken_compound_is_quoted_and_copied_as_typed(visit):
    assert "/book/generation/sampling.html" in search(visit, "top-p")
    assert "top-p" in " ".join(quotes(visit))
    page = visit.open("book/generation/sampling")
    whole = page.locator("article p .tt-whole", has_text="top-p").first
    copied = (
        "e => { getSelection().selectAllChildren(e.closest('p')); return `${getSelection()}`; }"
    )
    assert "top-p" in whole.evaluate(copied)


@pytest.mark.parametrize("query", ["softmax", "embedding", "loss"])
def test_chapters_come_before_the_glossary_and_the_package(visit, query):
    looked_up = ["/appendix/" in path for path in search(visit, query)]
    assert looked_up == sorted(looked_up) and not looked_up[0]


@pytest.mark.parametrize(
    ("query", "meant"),
    [("softmx", "softmax"), ("attnetion", "attention"), ("gradeint descent", "gradient descent")],
)
def test_a_typo_finds_the_intended_word_and_shows_it(visit, query, meant):
    results = search(visit, query)
    assert results and "/appendix/" not in results[0]
    assert visit.page.locator(".tt-meant").text_content() == (
        f"No page has “{query}”; these have “{meant}”."
    )


def test_an_existing_word_is_not_corrected(visit):
    assert search(visit, "embed")
    assert visit.page.locator(".tt-meant").count() == 0


def test_a_search_without_results_shows_a_message(visit):
    assert search(visit, "qqqqqqqqq") == []
    told = visit.page.locator(".search-summary").text_content()
    assert "none has all these words" in told and "categories" not in told


def test_excerpts_quote_text_and_not_the_source_of_formulas(visit):
    search(visit, "softmax")
    for text in quotes(visit):
        assert "\\" not in text.replace("\\n", "") and "mathrm" not in text


def test_the_search_icon_stands_beside_the_field(visit):
    page = visit.open("search")
    for form in page.locator("main form.bd-search").all():
        sign, field = (form.locator(part).bounding_box() for part in ("svg", "input"))
        assert sign["x"] + sign["width"] <= field["x"] + 1


def test_the_search_works_by_keyboard_alone(visit):
    page = visit.open("book/foundations/tensors")
    page.keyboard.press("Control+k")
    expect(page.locator("input[name=q]:visible").first).to_be_focused()
    for typed, told in (("emb", 4), ("softmx", 0)):
        page.keyboard.press("Control+a")
        page.keyboard.type(typed)
        expect(page.locator(".tt-titles a:visible")).to_have_count(told)
    expect(page.get_by_text("No title matches. Press Enter to search the text")).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=softmx")
    page.locator(f"{RESULTS} > a").first.wait_for()


def test_the_menu_of_a_phone_has_a_search(visit):
    page = visit.open("book/foundations/tensors")
    page.set_viewport_size(PHONE)
    page.locator(".primary-toggle").first.click()
    page.locator(".search-button-field:visible").click()
    field = page.locator("input[name=q]:visible").first
    expect(field).to_be_focused()
    field.press_sequentially("gradient")
    field.press("Enter")
    page.wait_for_url("**/search.html?q=gradient")
    page.locator(f"{RESULTS} > a").first.wait_for()
    assert visit.problems == []


def test_a_page_with_the_whole_word_precedes_pages_with_it_inside_another(visit):
    """The word is a part of "properties", of which many pages speak."""
    assert "/book/attention/positions-in-attention.html" in search(visit, "RoPE")[:2]


def test_words_that_begin_with_the_query_precede_words_that_contain_it(visit):
    search(visit, "softmax")
    found = visit.page.evaluate(
        """() => {
            const terms = {scope: [0], copes: [1]}, titleterms = {microcopy: [0]};
            const filenames = ["i", "b"], titles = ["I", "B"], docnames = ["inside", "begins"];
            Search._index = {terms, titleterms, docnames, filenames, titles};
            const pages = Search.performTermsSearch(new Set(["cop"]), new Set());
            return pages.toSorted((a, b) => b[4] - a[4]).map(([docname]) => docname);
        }"""
    )
    assert found == ["begins", "inside"]


HOLD_MARKED = """() => {
    window.held = [...document.querySelectorAll("article p:has(.highlighted)")];
    return held.map((marked) => marked.textContent);
}"""


def test_only_the_article_is_marked_and_the_marks_can_be_removed(visit):
    search(visit, "attention")
    visit.page.locator(f"{RESULTS} > a").first.click()
    page = visit.page
    marks = page.locator("span.highlighted")
    first = page.locator("article span.highlighted").first
    expect(first).to_have_text("attention", ignore_case=True)
    assert marks.count() == page.locator("article span.highlighted").count()
    note = page.get_by_role("button", name="Remove the marks")
    expect(note).to_be_in_viewport()
    text = page.evaluate(HOLD_MARKED)
    note.click()
    expect(marks).to_have_count(0)
    expect(note).to_have_count(0)
    assert page.evaluate("held.map((marked) => marked.textContent)") == text


def test_escape_removes_the_marks_and_the_next_page_has_none(visit):
    search(visit, "softmax")
    visit.page.locator(f"{RESULTS} > a").first.click()
    marks = visit.page.locator("span.highlighted")
    expect(marks.first).to_be_attached()
    visit.page.keyboard.press("Escape")
    expect(marks).to_have_count(0)
    visit.page.reload()
    expect(visit.page.locator(".tt-found")).to_have_count(0)
