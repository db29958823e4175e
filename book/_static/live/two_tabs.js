// What a reader has written into a cell, in every tab that has it open: each shows its own text and
// keeps the other's beside it, until the reader has chosen.

import { make } from "./elements.js";

// One cell's text, as it is kept: {of, text, other}, where `of` is what the book has and `other` another
// tab's text, if it has one. Whoever writes keeps what is there; so no text is lost with its tab.
export class Edit {
  // kept: a `memory`; field: the cell's number there
  constructor(kept, field, of) {
    Object.assign(this, { kept, field, of });
    const { text, other } = this.#there;
    this.text = text; // undefined: as the book has it
    this.theirs = other;
  }

  get #there() {
    const there = this.kept.get(this.field);
    return there?.of === this.of ? there : {};
  }

  #keep() {
    const { of, text = this.theirs, theirs: other } = this;
    if (text === undefined) this.kept.remove(this.field);
    else this.kept.set(this.field, other === undefined || other === text ? { of, text } : { of, text, other });
  }

  // The reader has written this here.
  write(text) {
    const there = this.#there;
    if (there.text !== undefined) this.theirs = there.text === this.text ? there.other : there.text;
    this.text = text;
    this.#keep();
  }

  // The other text shall stand here, and this one be the other.
  swap() {
    [this.text, this.theirs] = [this.theirs, this.text];
    this.#keep();
    return this.text;
  }

  forgetTheirs() {
    this.theirs = undefined;
    this.#keep();
  }

  // Another tab has changed what is kept: what stands here is put beside that, unless a third one's is.
  hear() {
    const { text, other } = this.#there;
    this.theirs = text === this.text ? other : text;
    if (this.text === undefined || text === this.text || other !== undefined) return;
    if (text === undefined) this.#keep();
    else this.kept.set(this.field, { of: this.of, text, other: this.text });
  }
}

// Says below a cell that it has another text too, and offers that.
export class OtherText {
  constructor(cell, edit, { button, announce }) {
    Object.assign(this, { cell, edit, announce });
    this.row = make("div", "tt-live__above");
    const show = () => {
      cell.write(edit.swap());
      if (!this.row.isConnected) cell.runButton.focus();
    };
    const forget = () => {
      this.unwanted = edit.theirs;
      edit.forgetTheirs();
      this.show();
      cell.runButton.focus();
    };
    this.row.append(
      make("span", "", "Another tab has another text in this cell. Both are kept."),
      button("Show the other", `Show the other text of ${cell.name}`, show),
      button("Forget the other", `Forget the other text of ${cell.name}`, forget),
    );
  }

  show() {
    const { theirs } = this.edit;
    const differs = theirs !== undefined && theirs !== this.cell.source && theirs !== this.unwanted;
    if (differs === this.row.isConnected) return;
    if (!differs) return this.row.remove();
    this.cell.bar.after(this.row);
    this.announce(`${this.cell.name}: ${this.row.firstChild.textContent}`);
  }
}
