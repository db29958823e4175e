// The book's search: chapters before glossary and package, forgiving of a slip, without the source of formulas
// in what it quotes. It changes Sphinx's own search, before that has its index.
const LOOKED_UP = /\/appendix\//; // pages to look something up in: after those that explain it
const NOT_QUOTED = "annotation, button, summary, .bd-header-article, .tt-live-intro";
const WORSE = 2000; // more than what sets a chapter before the glossary

// Where a page stands in the list of pages: of two that say as much, the earlier one explains.
const rank = (docname) =>
  [...document.querySelectorAll(".bd-sidebar-primary nav a")].findIndex(({ href }) => href.includes(`/${docname}.`));

const typed = new URLSearchParams(location.search).get("q")?.trim().toLowerCase();

// The page whose own name was asked for is the one that is meant.
const asked = typed?.replace(/\s+/g, "-");

Scorer.score = ([docname, , , descr, score]) =>
  score - rank(docname) / 1000 + (docname.endsWith(`/${asked}`) ? 100 : 0) + (LOOKED_UP.test(docname) || descr ? 0 : 1000);

// Sphinx speaks of categories, which this search has not.
Documentation.TRANSLATIONS[
  "Your search did not match any documents. Please make sure that all words are spelled correctly and that you've selected enough categories."
] = "Your search did not match any page: none has all these words. Try fewer or different words.";

// How many letters have to be put in, left out, replaced or swapped; `most` if it is more than that.
const slips = (word, other, most) => {
  if (Math.abs(word.length - other.length) > most) return most + 1;
  let [before, last] = [[], Array.from({ length: other.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= word.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const same = word[i - 1] === other[j - 1];
      row.push(Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)));
      const swapped = word[i - 1] === other[j - 2] && word[i - 2] === other[j - 1];
      if (swapped) row[j] = Math.min(row[j], before[j - 2] + 1);
    }
    [before, last] = [last, row];
  }
  return last[other.length];
};

// The term of the index that was meant; undefined if the word, or one that it is a part of, is there itself.
const meant = (word, { terms, titleterms }) => {
  const known = [...new Set([...Object.keys(titleterms), ...Object.keys(terms)])];
  if (known.some((term) => term.includes(word))) return undefined;
  const most = word.length < 5 ? 1 : 2;
  const begins = (term) => Number(term[0] === word[0]);
  const pages = (term) => [terms[term] ?? []].flat().length;
  const near = known
    .filter((term) => /^\p{Letter}+$/u.test(term))
    .map((term) => ({ term, far: slips(word, term, most) }))
    .filter(({ far }) => far <= most)
    .toSorted((a, b) => a.far - b.far || begins(b.term) - begins(a.term) || pages(b.term) - pages(a.term));
  return near[0]?.term;
};

// A word as one reads it: the index keeps stems.
const spelt = (stem, { alltitles, indexentries }, stemmer) =>
  [...Object.keys(indexentries), ...Object.keys(alltitles)]
    .flatMap((title) => splitQuery(title.toLowerCase()))
    .find((word) => stemmer.stemWord(word) === stem) ?? stem;

const { _parseQuery: parse, htmlToText: toText, performTermsSearch: inIndex } = Search;

// Pages that have the words themselves, then those where words begin so, then those where they stand within others.
const FITS = [(term, word) => term === word, (term, word) => term.startsWith(word), (term, word) => term.includes(word)];
Search.performTermsSearch = (words, excluded) => {
  const index = Search._index, found = new Map(), all = [...words, ...excluded];
  let worse = 0;
  for (const fits of FITS) {
    const fitting = (terms) => Object.fromEntries(Object.entries(terms).filter(([term]) => all.some((word) => fits(term, word))));
    Search._index = { ...index, terms: fitting(index.terms), titleterms: fitting(index.titleterms) };
    for (const [docname, title, anchor, descr, score, file] of inIndex(words, excluded)) {
      if (!found.has(docname)) found.set(docname, [docname, title, anchor, descr, score - worse, file]);
    }
    if (found.size) worse += WORSE;
  }
  Search._index = index;
  return [...found.values()];
};

Search._parseQuery = (query) => {
  const stemmer = new Stemmer();
  const corrected = query.replace(/\p{Letter}{3,}/gu, (word) => {
    const stem = stemmer.stemWord(word.toLowerCase());
    const term = stopwords.includes(word.toLowerCase()) ? undefined : meant(stem, Search._index);
    return term ? spelt(term, Search._index, stemmer) : word;
  });
  if (corrected !== query) {
    const note = document.createElement("p");
    note.className = "tt-meant";
    note.setAttribute("role", "status");
    note.textContent = `No page has “${query}”; these have “${corrected}”.`;
    Search.title.after(note);
  }
  return parse(corrected);
};
Search.htmlToText = (text, anchor) => {
  const page = new DOMParser().parseFromString(text, "text/html");
  for (const part of page.querySelectorAll(NOT_QUOTED)) part.remove();
  for (const root of page.querySelectorAll("msqrt")) root.prepend("√");
  for (const fraction of page.querySelectorAll("mfrac")) fraction.firstChild.after("/");
  return toText(page.documentElement.outerHTML, anchor).replace(/\s+/g, " ");
};

// What was typed is quoted where a page has it whole: of "top-p" the first "p" stands anywhere.
const { makeSearchSummary: summary } = Search;
Search.makeSearchSummary = (html, words, anchor) =>
  summary(html, typed && Search.htmlToText(html, anchor).toLowerCase().includes(typed) ? [typed] : words, anchor);
