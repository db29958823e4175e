"""What to look for in the drawings below an element: each is called with it, and lists faults."""

SMALLEST = 11  # pixels of a letter on a phone
TOO_SMALL = """(root, smallest) => [...root.querySelectorAll('text, tspan')].filter(e => {
    const svg = e.closest('svg');
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return parseFloat(getComputedStyle(e).fontSize) * scale < smallest;
}).map(e => e.textContent)"""
OUTSIDE = """root => [...root.querySelectorAll('svg *')].filter(e => {
    const box = e.getBoundingClientRect(), svg = e.closest('svg').getBoundingClientRect();
    return box.left < svg.left - 1 || box.right > svg.right + 1
        || box.top < svg.top - 1 || box.bottom > svg.bottom + 1;
}).map(e => e.outerHTML)"""
# The letters themselves are lower than the box of their line.
COVERED = """root => [...root.querySelectorAll('svg')].flatMap(svg => {
    const boxes = [...svg.querySelectorAll('text')].map(e => [e, e.getBoundingClientRect()]);
    return boxes.flatMap(([a, one], i) => boxes.slice(i + 1).filter(([, other]) =>
        Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1
        && Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 6)
        .map(([b]) => `${a.textContent} / ${b.textContent}`));
})"""


def faults(root):
    """The letters that are too small, what leaves its drawing, and words that lie on others."""
    small = root.evaluate(TOO_SMALL, SMALLEST)
    return [*small, *root.evaluate(OUTSIDE), *root.evaluate(COVERED)]
