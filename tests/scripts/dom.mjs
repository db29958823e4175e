// As much of a page as the scripts ask for: elements, events, storage. It lays nothing out and paints nothing: what is seen,
// what comes over the network and what the browser itself does are asked of a browser (tests/browser).

const VOID = new Set(["area", "br", "col", "hr", "img", "input", "link", "meta"]);
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u00a0" };
const MARKUP = /<!--[^]*?-->|<(\/?)([\w-]+)((?:\s+[^\s=>/]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+))?)*)\s*(\/?)>|[^<]+/g;
const ATTRIBUTE = /([^\s=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|(\S+)))?/g;
const COMPOUND = /([\w*-]+)|#([\w-]+)|\.([\w-]+)|\[([\w-]+)(?:([*^$~]?)=["']?([^\]"']*)["']?)?\]|:([\w-]+)(?:\(((?:[^()]|\([^()]*\))*)\))?/y;
const kebab = (name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

// Events -------------------------------------------------------------------------------------------------------------

class Target {
  #listeners = [];

  addEventListener(type, listener, { once = false, signal } = {}) {
    const entry = { type, listener, once };
    this.#listeners.push(entry);
    signal?.addEventListener("abort", () => this.#forget(entry));
  }

  removeEventListener(type, listener) {
    this.#listeners = this.#listeners.filter((entry) => entry.type !== type || entry.listener !== listener);
  }

  #forget(entry) {
    this.#listeners = this.#listeners.filter((each) => each !== entry);
  }

  // Gives what the listeners give, so that a test can wait for them.
  hear(event) {
    return this.#listeners.filter(({ type }) => type === event.type).map((entry) => {
      if (entry.once) this.#forget(entry);
      return entry.listener.call(this, event);
    });
  }

  dispatchEvent(event) {
    Object.defineProperty(event, "target", { value: this, configurable: true });
    for (let at = this; at; at = event.bubbles ? at.parentNode : null) at.hear(event);
    return !event.defaultPrevented;
  }
}

// An event that bubbles and can be refused, with more that it tells.
export const happening = (type, about = {}) => Object.assign(new Event(type, { bubbles: true, cancelable: true }), about);

// Nodes --------------------------------------------------------------------------------------------------------------

class Leaf extends Target {
  parentNode = null;

  get parentElement() {
    return this.parentNode instanceof Element ? this.parentNode : null;
  }

  get isConnected() {
    return this === globalThis.document?.documentElement || Boolean(this.parentNode?.isConnected);
  }

  #beside(step) {
    const all = this.parentNode?.children ?? [];
    return all[all.indexOf(this) + step] ?? null;
  }

  get nextElementSibling() {
    return this.#beside(1);
  }

  get previousElementSibling() {
    return this.#beside(-1);
  }

  get nextSibling() {
    const all = this.parentNode?.childNodes ?? [];
    return all[all.indexOf(this) + 1] ?? null;
  }

  remove() {
    this.parentNode?.childNodes.splice(this.parentNode.childNodes.indexOf(this), 1);
    this.parentNode = null;
  }

  #put(shift, nodes) {
    const { parentNode } = this, made = nodes.map(asNode);
    for (const node of made) node.remove();
    parentNode.childNodes.splice(parentNode.childNodes.indexOf(this) + shift, 0, ...made);
    for (const node of made) node.parentNode = parentNode;
  }

  before(...nodes) {
    this.#put(0, nodes);
  }

  after(...nodes) {
    this.#put(1, nodes);
  }

  replaceWith(...nodes) {
    this.before(...nodes);
    this.remove();
  }
}

class Text extends Leaf {
  constructor(data = "") {
    super();
    this.data = String(data);
  }

  get textContent() {
    return this.data;
  }

  cloneNode() {
    return new Text(this.data);
  }
}

const asNode = (node) => (node instanceof Leaf ? node : new Text(node));

class Element extends Leaf {
  childNodes = [];
  style = { setProperty(name, value) { this[name] = value; } };
  attributes = new Map();
  scrollTop = 0;
  scrollHeight = 0;
  clientHeight = 0;
  scrollWidth = 0;
  clientWidth = 0;

  constructor(tag) {
    super();
    this.localName = tag;
    this.tagName = this.nodeName = tag.toUpperCase();
    this.dataset = new Proxy(this, {
      get: (_, name) => this.getAttribute(`data-${kebab(String(name))}`) ?? undefined,
      set: (_, name, value) => { this.setAttribute(`data-${kebab(name)}`, value); return true; },
      deleteProperty: (_, name) => { this.removeAttribute(`data-${kebab(name)}`); return true; },
      ownKeys: () => [...this.attributes.keys()].filter((name) => name.startsWith("data-"))
        .map((name) => name.slice(5).replace(/-(\w)/g, (__, letter) => letter.toUpperCase())),
      getOwnPropertyDescriptor: (_, name) => (
        { value: this.getAttribute(`data-${kebab(name)}`), enumerable: true, configurable: true }
      ),
    });
  }

  get children() {
    return this.childNodes.filter((node) => node instanceof Element);
  }

  get firstChild() {
    return this.childNodes[0] ?? null;
  }

  get firstElementChild() {
    return this.children[0] ?? null;
  }

  append(...nodes) {
    for (const node of nodes.map(asNode)) {
      node.remove();
      node.parentNode = this;
      this.childNodes.push(node);
    }
  }

  prepend(...nodes) {
    const rest = [...this.childNodes];
    this.append(...nodes);
    this.append(...rest);
  }

  replaceChildren(...nodes) {
    while (this.firstChild) this.firstChild.remove();
    this.append(...nodes);
  }

  get textContent() {
    return this.childNodes.map((node) => node.textContent).join("");
  }

  set textContent(text) {
    this.replaceChildren(...(text === "" || text === null ? [] : [new Text(text)]));
  }

  get innerText() {
    return this.textContent;
  }

  get innerHTML() {
    return this.childNodes.map((node) => (node instanceof Text ? node.data : node.outerHTML)).join("");
  }

  get outerHTML() {
    const attributes = [...this.attributes].map(([name, value]) => ` ${name}="${value}"`).join("");
    return `<${this.localName}${attributes}>${this.innerHTML}</${this.localName}>`;
  }

  set innerHTML(markup) {
    this.replaceChildren();
    let at = this;
    for (const [all, end, tag, attributes, alone] of markup.matchAll(MARKUP)) {
      if (end) at = at.parentNode;
      else if (tag) {
        const made = new Element(tag);
        for (const [, name, ...values] of (attributes ?? "").matchAll(ATTRIBUTE)) {
          made.setAttribute(name, decoded(values.find((value) => value !== undefined) ?? ""));
        }
        at.append(made);
        if (!alone && !VOID.has(tag)) at = made;
      } else if (!all.startsWith("<!--")) at.append(new Text(decoded(all)));
    }
    if (at !== this) throw new Error(`<${at.localName}> is not closed`);
  }

  cloneNode(deep = false) {
    const made = new Element(this.localName);
    for (const [name, value] of this.attributes) made.setAttribute(name, value);
    if (deep) made.append(...this.childNodes.map((node) => node.cloneNode(true)));
    return made;
  }

  getAttribute(name) {
    return this.attributes.get(name) ?? null;
  }

  hasAttribute(name) {
    return this.attributes.has(name);
  }

  setAttribute(name, value) {
    this.attributes.set(name, String(value));
  }

  removeAttribute(name) {
    this.attributes.delete(name);
  }

  toggleAttribute(name, on = !this.hasAttribute(name)) {
    if (on) this.setAttribute(name, "");
    else this.removeAttribute(name);
  }

  get classList() {
    const has = (name) => this.className.split(/\s+/).includes(name);
    const set = (names) => { this.className = [...names].filter(Boolean).join(" "); };
    const all = () => new Set(this.className.split(/\s+/));
    const toggle = (name, on = !has(name)) => {
      const names = all();
      if (on) names.add(name);
      else names.delete(name);
      set(names);
      return on;
    };
    return {
      contains: has, toggle,
      add: (...names) => names.forEach((name) => toggle(name, true)),
      remove: (...names) => names.forEach((name) => toggle(name, false)),
    };
  }

  // What a form holds.
  get value() {
    if (this.given !== undefined) return this.given;
    if (this.localName === "textarea") return this.textContent;
    return this.getAttribute("value") ?? "";
  }

  set value(value) {
    this.given = String(value);
  }

  get valueAsNumber() {
    return this.value === "" ? NaN : Number(this.value);
  }

  get href() {
    const address = this.getAttribute("href");
    return address === null ? "" : new URL(address, globalThis.location.href).href;
  }

  set href(address) {
    this.setAttribute("href", address);
  }

  focus() {
    document.activeElement = this;
    this.dispatchEvent(happening("focusin"));
  }

  click() {
    if (this.dispatchEvent(happening("click", { detail: 0 }))) this.#act();
  }

  // What a browser does after a press that nobody refuses.
  #act() {
    const fold = this.localName === "summary" && this.parentNode;
    if (fold) fold.open = !fold.open;
    if (this.type === "submit") this.closest("form")?.dispatchEvent(happening("submit"));
  }

  checkVisibility() {
    return this.isConnected && !this.closest("[hidden]");
  }

  scrollIntoView() {}

  getBoundingClientRect() {
    return { x: 0, y: 0, top: 0, left: 0, right: 0, bottom: 0, width: 0, height: 0 };
  }

  // Finding ------------------------------------------------------------------------------------------------------------

  contains(other) {
    for (let at = other; at; at = at.parentNode) if (at === this) return true;
    return false;
  }

  matches(selector, scope = this) {
    return parted(selector, ",").some((one) => fits(this, steps(one), scope));
  }

  closest(selector) {
    for (let at = this; at instanceof Element; at = at.parentNode) if (at.matches(selector)) return at;
    return null;
  }

  get descendants() {
    return this.children.flatMap((child) => [child, ...child.descendants]);
  }

  querySelectorAll(selector) {
    return this.descendants.filter((each) => each.matches(selector, this));
  }

  querySelector(selector) {
    return this.querySelectorAll(selector)[0] ?? null;
  }
}

for (const [property, attribute] of [["id", "id"], ["className", "class"], ["type", "type"], ["download", "download"]]) {
  Object.defineProperty(Element.prototype, property, {
    get() { return this.getAttribute(attribute) ?? ""; },
    set(value) { this.setAttribute(attribute, value); },
  });
}
for (const name of ["hidden", "open", "checked", "readOnly"]) {
  Object.defineProperty(Element.prototype, name, {
    get() { return this.hasAttribute(name); },
    set(on) {
      if (Boolean(on) === this.hasAttribute(name)) return;
      this.toggleAttribute(name, Boolean(on));
      if (this.localName === "details") this.dispatchEvent(new Event("toggle"));
    },
  });
}
Object.defineProperty(Element.prototype, "tabIndex", {
  get() { return Number(this.getAttribute("tabindex") ?? -1); },
  set(value) { this.setAttribute("tabindex", value); },
});

const decoded = (text) => text.replace(/&(\w+);/g, (_, name) => ENTITIES[name] ?? _);

// A text in parts, but not within brackets.
function parted(text, at) {
  const found = [""];
  let depth = 0;
  for (const sign of text) {
    depth += "([".includes(sign) - ")]".includes(sign);
    if (sign === at && !depth) found.push("");
    else found[found.length - 1] += sign;
  }
  return found.map((part) => part.trim()).filter(Boolean);
}

const steps = (selector) => parted(selector.replace(/\s*([>+])\s*(?![^([]*[)\]])/g, " $1 "), " ");

function fits(element, path, scope) {
  const own = path.at(-1), before = path.slice(0, -1);
  if (!simple(element, own, scope)) return false;
  if (!before.length) return true;
  if (before.at(-1) === ">") return Boolean(element.parentElement) && fits(element.parentElement, before.slice(0, -1), scope);
  if (before.at(-1) === "+") {
    return Boolean(element.previousElementSibling) && fits(element.previousElementSibling, before.slice(0, -1), scope);
  }
  for (let at = element.parentElement; at; at = at.parentElement) if (fits(at, before, scope)) return true;
  return false;
}

const PSEUDO = {
  scope: (element, _, scope) => element === scope,
  not: (element, inner, scope) => !element.matches(inner, scope),
  is: (element, inner, scope) => element.matches(inner, scope),
  has: (element, inner) => element.querySelector(inner) !== null,
  empty: (element) => !element.childNodes.length,
  "last-child": (element) => !element.nextElementSibling,
};

function simple(element, compound, scope) {
  COMPOUND.lastIndex = 0;
  while (COMPOUND.lastIndex < compound.length) {
    const found = COMPOUND.exec(compound);
    if (!found) throw new Error(`dom.mjs does not know ${compound}`);
    const at = COMPOUND.lastIndex;
    if (!holds(element, found, scope)) return false;
    COMPOUND.lastIndex = at;
  }
  return true;
}

function holds(element, [, tag, id, name, attribute, how, value, pseudo, inner], scope) {
  if (tag) return tag === "*" || element.localName === tag;
  if (id) return element.id === id;
  if (name) return element.classList.contains(name);
  if (pseudo) return PSEUDO[pseudo](element, inner, scope);
  const own = element.getAttribute(attribute);
  if (own === null || value === undefined) return own !== null;
  if (how === "*") return own.includes(value);
  if (how === "^") return own.startsWith(value);
  return own === value;
}

// The page -----------------------------------------------------------------------------------------------------------

class Document extends Target {
  constructor() {
    super();
    this.documentElement = new Element("html");
    this.documentElement.parentNode = this;
    this.documentElement.innerHTML = "<head></head><body></body>";
    [this.head, this.body] = this.documentElement.children;
    this.activeElement = this.body;
    this.visibilityState = "visible";
  }

  createElement(tag) {
    return new Element(tag);
  }

  createElementNS(_, tag) {
    return new Element(tag);
  }

  getElementById(id) {
    return this.querySelector(`[id="${id}"]`);
  }

  querySelector(selector) {
    return this.documentElement.querySelector(selector);
  }

  querySelectorAll(selector) {
    return this.documentElement.querySelectorAll(selector);
  }
}

// What a browser keeps, shared by its tabs.
export class Storage {
  getItem(key) {
    return Object.hasOwn(this, key) ? this[key] : null;
  }

  setItem(key, text) {
    this[key] = String(text);
  }

  removeItem(key) {
    delete this[key];
  }
}

// Opens a page: its address, and what stands in its body. `asked` are media queries that hold.
export function openPage(markup = "", { address = "https://book.test/book/a.html", asked = [] } = {}) {
  const whole = new Target();
  const define = (all) => {
    for (const [name, value] of Object.entries(all)) {
      Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
    }
  };
  define({
    Text, Element, Storage,
    document: new Document(),
    location: new URL(address),
    history: { state: null, replaceState: (_, __, to) => { globalThis.location = new URL(to, globalThis.location.href); } },
    localStorage: new Storage(),
    sessionStorage: new Storage(),
    navigator: {},
    addEventListener: (...all) => whole.addEventListener(...all),
    removeEventListener: (...all) => whole.removeEventListener(...all),
    dispatchEvent: (event) => whole.dispatchEvent(event),
    matchMedia: (query) => ({ matches: asked.includes(query), addEventListener() {} }),
    requestAnimationFrame: (act) => setTimeout(act, 0),
    ResizeObserver: class { observe() {} },
    CSS: { supports: () => true },
    scrollBy() {},
    getComputedStyle: () => ({ overflowY: "visible" }),
    DOMParser: class {
      parseFromString(text) {
        const place = new Element("div");
        place.innerHTML = text;
        return { documentElement: place.firstElementChild };
      }
    },
  });
  document.body.innerHTML = markup;
  return document;
}
