"""A page opened in Chromium, and everything that went wrong on it."""

PHONE, LAPTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 800}
PATIENCE = 5 * 60 * 1000  # ms: a machine may be slow, but nothing waits for ever
READY = "() => document.documentElement.dataset.live === 'ready'"
STILL = "*, *::before, *::after { transition: none !important; animation: none !important }"
OVERFLOW = """() => {
    const wide = document.documentElement.clientWidth;
    const held = ['auto', 'scroll', 'hidden', 'clip'];
    const scrolls = e => { for (; e; e = e.parentElement)
        if (held.includes(getComputedStyle(e).overflowX)) return true; };
    if (document.documentElement.scrollWidth <= wide) return [];
    return [...document.querySelectorAll('body *')].filter(e =>
        e.getBoundingClientRect().right > wide + 1 && !scrolls(e.parentElement))
        .slice(0, 5).map(e => e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 60))
        .concat(['the page is ' + document.documentElement.scrollWidth + ' wide']);
}"""
# A font is asked for when a text is first laid out, which may be after the page has loaded.
SETTLED = """async () => {
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    await document.fonts.ready;
}"""
UNFOLD = "() => document.querySelectorAll('.tt-fold').forEach(fold => { fold.open = true; })"
HARMLESS = ("Disabling terminals plugin",)  # JupyterLite has no terminals, and says so


class Visit:
    """A page that reaches this site only; `problems` says what else went wrong.

    Args:
        context: a browser context; pages that this one opens are watched too.
        site: the address of the site.
    """

    def __init__(self, context, site):
        self.site, self.noted, self.responses = site, [], []
        self.loads, self.asked = 0, {}  # pages asked for so far; how many, when each file was
        self.stopped = []  # files that were no longer waited for
        context.set_default_timeout(PATIENCE)
        context.route("**/*", self.gate)
        context.on("console", self.listen)
        context.on("request", self.ask)
        context.on("response", self.check)
        context.on("requestfailed", self.fail)
        context.on("weberror", lambda e: self.noted.append(f"script error: {e.error}"))
        self.page = context.new_page()

    def gate(self, route):
        """Let requests to this site through and no other."""
        url = route.request.url
        if url.startswith((self.site, "data:", "blob:")):
            return route.continue_()
        self.noted.append(f"foreign request: {url}")
        return route.abort()

    def listen(self, message):
        """Note what the console complains of."""
        if message.type in ("error", "warning") and not message.text.startswith(HARMLESS):
            self.noted.append(f"console {message.type}: {message.text}")

    def check(self, response):
        """Note what has come, and what the server has not."""
        self.responses.append(response)
        if response.status >= 400:
            self.noted.append(f"{response.status}: {response.url}")

    def ask(self, request):
        """Note for which page a file was asked."""
        self.loads += request.is_navigation_request()
        self.asked[request] = self.loads

    def fail(self, request):
        """Note what did not come.

        What a service worker passes on looks as if it had not come.
        """
        if request.service_worker is not None:
            return
        if request.failure == "net::ERR_ABORTED":  # told before its page is left, or after
            self.stopped.append(request)
        else:
            self.noted.append(f"request failed: {request.url} ({request.failure})")

    @property
    def problems(self):
        """What went wrong: what is noted, and files of this page that it stopped waiting for."""
        here = [r for r in self.stopped if self.asked.get(r) == self.loads]
        return self.noted + [f"request stopped: {r.url}" for r in here]

    def forget(self):
        """Start again: what went wrong before is another test's."""
        self.noted.clear()
        self.stopped.clear()

    def open(self, docname):
        """Open a page of the book, its fonts loaded."""
        self.page.goto(f"{self.site}{docname}.html", wait_until="load")
        self.page.evaluate(SETTLED)
        return self.page

    def open_live(self, docname):
        """Open a page whose cells are ready to be run."""
        self.page.goto(f"{self.site}{docname}.html", wait_until="load")
        self.page.wait_for_function(READY)
        return self.page
