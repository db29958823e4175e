// The editor of a live cell: CodeMirror 6 with Python, in the colours of the book.
//
// Built into book/_static/live/editor.js by `make editor`; the page loads it when a reader first
// presses Edit.

import { autocompletion, closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting }
  from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightSpecialChars, keymap, lineNumbers }
  from "@codemirror/view";
import { tags } from "@lezer/highlight";

// The same tokens in the same colours as the stored code; see section 5 of tinytorch.css.
const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--tt-accent-3)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--tt-accent-4)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--tt-accent-2)" },
  { tag: [tags.comment], color: "var(--tt-muted)", fontStyle: "italic" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)],
    color: "var(--tt-accent-1)" },
]);

const theme = EditorView.theme({
  "&": { color: "var(--tt-ink)", backgroundColor: "transparent", fontSize: "inherit" },
  "&.cm-focused": { outline: "2px solid var(--tt-accent-2)", outlineOffset: "2px" },
  ".cm-content": { caretColor: "var(--tt-ink)", fontFamily: "var(--tt-mono)", padding: "0.5rem 0" },
  ".cm-scroller": { fontFamily: "var(--tt-mono)", lineHeight: "1.5" },
  ".cm-cursor": { borderLeftColor: "var(--tt-ink)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--tt-muted)", border: "none" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { backgroundColor: "var(--tt-tint-2)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--tt-tint-1)" },
});

// Puts an editor in the place of an element's content.
//
// place: the element; options: {text, label, onchange, onrun, onleave}.
// Returns an object with `text` (read and written), `focus()` and `destroy()`.
export function openEditor(place, { text, label, onchange, onrun, onleave }) {
  const run = () => { onrun(); return true; };
  const leave = (view) => { view.contentDOM.blur(); onleave(); return true; };
  place.replaceChildren();
  const view = new EditorView({
    parent: place,
    state: EditorState.create({
      doc: text,
      extensions: [
        keymap.of([
          { key: "Mod-Enter", run },
          { key: "Shift-Enter", run },
        ]),
        lineNumbers(), highlightSpecialChars(), history(), drawSelection(), indentOnInput(),
        indentUnit.of("    "), bracketMatching(), closeBrackets(), autocompletion({ activateOnTyping: false }),
        EditorView.lineWrapping, python(), syntaxHighlighting(colours), theme,
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab]),
        // last, so that Escape first closes what else is open
        keymap.of([{ key: "Escape", run: leave }]),
        // reached through the Edit button; Tab, which indents in here, passes it by
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "-1", spellcheck: "false" }),
        EditorView.updateListener.of((update) => { if (update.docChanged) onchange(); }),
      ],
    }),
  });
  return {
    get text() { return view.state.doc.toString(); },
    set text(value) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } });
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
