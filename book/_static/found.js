// Marks in the article what was searched for, and says how to remove the marks. It stands in the place of Sphinx's own
// script, which marks the whole page, sidebar and all; Sphinx's search asks for its two names.
{
  const NOT_MARKED = "svg, math, script, style, button, textarea, .highlighted";

  // Wraps a word wherever it begins one, or, if it nowhere does, wherever it stands; returns how often.
  const mark = (place, word, className) => {
    const texts = document.createTreeWalker(place, NodeFilter.SHOW_TEXT, ({ parentElement }) => (
      parentElement.closest(NOT_MARKED) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
    const all = [];
    while (texts.nextNode()) all.push(texts.currentNode);
    const escaped = word.replace(/[.*+\-?^${}()|[\]\\]/g, String.raw`\$&`);
    for (const pattern of [String.raw`(?<![\p{L}\p{N}])${escaped}`, escaped]) {
      const hits = all.flatMap((text) => [...text.data.matchAll(new RegExp(pattern, "giu"))].map(({ index }) => [text, index]));
      for (const [text, index] of hits.toReversed()) { // the last first: the places of the others stay
        const made = document.createElement("span");
        made.className = className;
        const found = text.splitText(index);
        found.splitText(word.length);
        found.replaceWith(made);
        made.append(found);
      }
      if (hits.length) return hits.length;
    }
    return 0;
  };
  Object.assign(globalThis, { SPHINX_HIGHLIGHT_ENABLED: true, _highlightText: mark });

  const KEPT = "sphinx_highlight_terms"; // by the search
  let asked = "";
  try {
    if (!document.getElementById("search-results")) {
      asked = localStorage.getItem(KEPT) ?? "";
      localStorage.removeItem(KEPT);
    }
  } catch {
    // a browser that keeps nothing remembers no search
  }
  const article = document.querySelector("article"), place = document.getElementById("searchbox");
  const words = asked.split(/\s+/).filter((word) => word && article && mark(article, word, "highlighted"));
  if (words.length && place) offerToRemoveMarks(article, place, words);
}

function offerToRemoveMarks(article, place, words) {
  const note = document.createElement("p");
  note.className = "tt-found";
  note.textContent = `Marked on this page: ${words.map((word) => `“${word}”`).join(", ")} `;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Remove the marks";
  const remove = () => {
    for (const made of article.querySelectorAll("span.highlighted")) made.replaceWith(...made.childNodes);
    article.normalize();
    note.remove();
  };
  button.addEventListener("click", remove);
  addEventListener("keydown", ({ key, target }) => {
    if (key === "Escape" && !target.closest("input, textarea, [contenteditable]")) remove();
  });
  note.append(button);
  place.append(note);
}
