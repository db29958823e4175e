"""A figure that moves, on its page: its handles, and the numbers that it shows."""

from drawn import faults
from visit import OVERFLOW, PHONE, SETTLED

# It may stand in the answer of a prediction, which is folded.
SCROLL = """figure => {
    const folds = [...document.querySelectorAll('details')].filter(e => e.contains(figure));
    folds.forEach(fold => { fold.open = true; });
    figure.scrollIntoView({block: 'center'});
}"""
BEGUN = "figure => figure.moving !== undefined"
SMALL_HANDLES = """figure => [
    ...figure.querySelectorAll('input[type=range], .tt-moving label:has(input), button')
].filter(e => e.getBoundingClientRect().height < 43.9).map(e => e.outerHTML)"""


class Moving:
    """A figure whose script has drawn it.

    Args:
        visit: where the page is opened.
        docname: of the page.
        name: of the figure's script.
    """

    def __init__(self, visit, docname, name):
        self.page = visit.open(docname)
        self.figure = self.page.locator(f'figure[data-moves="{name}"]')
        self.figure.evaluate(SCROLL)
        self.page.wait_for_function(BEGUN, arg=self.figure.element_handle())

    def set(self, label, value):
        """Slide the handle with this label, or choose one of its group."""
        if isinstance(value, str):
            group = self.figure.get_by_role("group", name=label, exact=True)
            group.get_by_label(value, exact=True).check()
        else:
            self.figure.get_by_label(label, exact=True).fill(str(value))

    def press(self, label):
        """Press the button with this label."""
        self.figure.get_by_role("button", name=label, exact=True).click()

    def words(self):
        """What it says in words."""
        return self.figure.locator(".tt-moving__words").inner_text()

    def faults(self):
        """What is wrong with how it is drawn now, and the handles that a finger misses."""
        self.page.evaluate(SETTLED)
        drawn = faults(self.figure.locator(".tt-moving"))
        return [*drawn, *self.figure.evaluate(SMALL_HANDLES)]

    def faults_on_a_phone(self):
        """The same on a phone, and what is wider than it."""
        self.page.set_viewport_size(PHONE)
        return [*self.faults(), *self.page.evaluate(OVERFLOW)]


def stands_still(browser, site, docname, name):
    """Say whether a page without scripts shows the static drawing, and nothing to move it."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}{docname}.html")
    figure = page.locator(f'figure[data-moves="{name}"]')
    drawn = figure.locator("> .tt-drawing__panels svg").first.bounding_box()
    handles = figure.locator(".tt-moving").count()
    context.close()
    return drawn is not None and drawn["height"] > 50 and not handles
