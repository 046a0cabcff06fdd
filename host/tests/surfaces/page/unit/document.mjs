// A document for tests without a browser: elements that can be made, changed, found and pressed.
//
// It lays nothing out, draws nothing, and knows only the selectors and properties that the page uses; a selector that it
// does not know is an error. What is seen, focused and fits is the matter of the tests in a real browser.

const camel = (name) => name.replace(/-([a-z])/g, (_, letter) => letter.toUpperCase());
const dashed = (name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

class Node extends EventTarget {
  parentNode = null;
  childNodes = [];

  get isConnected() {
    return this === globalThis.document?.documentElement || (this.parentNode?.isConnected ?? false);
  }
  get textContent() {
    return this.childNodes.map((child) => child.textContent).join("");
  }
  set textContent(text) {
    this.replaceChildren(text);
  }
  append(...nodes) {
    for (const node of nodes) this.insertBefore(node, null);
  }
  insertBefore(given, before) {
    const node = given instanceof Node ? given : new Text(given);
    node.remove();
    const at = before === null || before === undefined ? this.childNodes.length : this.childNodes.indexOf(before);
    this.childNodes.splice(at, 0, node);
    node.parentNode = this;
    return node;
  }
  replaceChildren(...nodes) {
    for (const child of [...this.childNodes]) child.remove();
    this.append(...nodes);
  }
  replaceWith(node) {
    const parent = this.parentNode;
    if (!parent) return;
    parent.insertBefore(node, this);
    this.remove();
  }
  remove() {
    const parent = this.parentNode;
    if (!parent) return;
    parent.childNodes.splice(parent.childNodes.indexOf(this), 1);
    this.parentNode = null;
  }
  contains(node) {
    return node === this || this.childNodes.some((child) => child.contains(node));
  }
  isEqualNode(other) {
    if (!(this instanceof Element) || !(other instanceof Element))
      return !(this instanceof Element) && !(other instanceof Element) && this.textContent === other.textContent;
    return (
      this.localName === other.localName &&
      String(this.attributes.sort()) === String(other.attributes.sort()) &&
      this.childNodes.length === other.childNodes.length &&
      this.childNodes.every((child, index) => child.isEqualNode(other.childNodes[index]))
    );
  }
  /** Events rise, as in a browser, to the document. */
  fire(type, more = {}) {
    const event = Object.assign(new Event(type, { cancelable: true }), more);
    for (let node = this; node; node = node.parentNode) node.dispatchEvent(Object.assign(copyOf(event), more));
    return event;
  }
}

const copyOf = (event) => new Event(event.type, { cancelable: true });

class Text extends Node {
  #text;
  constructor(text) {
    super();
    this.#text = String(text);
  }
  get textContent() {
    return this.#text;
  }
}

class Element extends Node {
  #attributes = new Map();
  style = { setProperty: (name, value) => this.#attributes.set(`vars:${name}`, String(value)) };
  scrollTop = 0;
  scrollLeft = 0;
  scrollHeight = 0;
  clientHeight = 0;

  constructor(tag) {
    super();
    this.tagName = tag.toUpperCase();
    this.localName = tag;
  }
  get children() {
    return this.childNodes.filter((child) => child instanceof Element);
  }
  get childElementCount() {
    return this.children.length;
  }
  get firstElementChild() {
    return this.children[0] ?? null;
  }
  get nextElementSibling() {
    const all = this.parentNode?.children ?? [];
    return all[all.indexOf(this) + 1] ?? null;
  }
  get attributes() {
    return [...this.#attributes];
  }
  getAttribute = (name) => this.#attributes.get(name) ?? null;
  hasAttribute = (name) => this.#attributes.has(name);
  setAttribute = (name, value) => void this.#attributes.set(name, String(value));
  removeAttribute = (name) => void this.#attributes.delete(name);
  dataset = new Proxy(
    {},
    {
      get: (_, name) => this.getAttribute(`data-${dashed(String(name))}`) ?? undefined,
      set: (_, name, value) => (this.setAttribute(`data-${dashed(name)}`, value), true),
      deleteProperty: (_, name) => (this.removeAttribute(`data-${dashed(name)}`), true),
      ownKeys: () => this.attributes.filter(([name]) => name.startsWith("data-")).map(([name]) => camel(name.slice(5))),
      getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
    },
  );
  get classes() {
    return (this.getAttribute("class") ?? "").split(/\s+/).filter(Boolean);
  }
  classList = {
    contains: (name) => this.classes.includes(name),
    toggle: (name, on = !this.classes.includes(name)) => {
      const others = this.classes.filter((one) => one !== name);
      this.setAttribute("class", [...others, on && name].filter(Boolean).join(" "));
      return on;
    },
  };
  get elements() {
    return this.querySelectorAll("input, select, textarea, button");
  }
  get options() {
    return this.querySelectorAll("option");
  }
  querySelector = (selector) => this.querySelectorAll(selector)[0] ?? null;
  querySelectorAll(selector) {
    const wanted = readSelector(selector);
    return below(this).filter((element) => wanted.some((parts) => isMatch(element, parts, this)));
  }
  matches = (selector) => readSelector(selector).some((parts) => isMatch(this, parts, null));
  closest(selector) {
    for (let node = this; node instanceof Element; node = node.parentNode) if (node.matches(selector)) return node;
    return null;
  }
  click() {
    this.fire("click");
  }
  focus() {
    globalThis.document.activeElement = this;
  }
  blur() {
    globalThis.document.activeElement = globalThis.document.body;
  }
  select() {}
  scrollIntoView() {}
  getClientRects = () => [{}];
  showModal() {
    this.open = true;
  }
  close() {
    this.open = false;
    this.dispatchEvent(new Event("close"));
  }
}

/** Properties that say what an attribute says. */
for (const name of ["id", "name", "type", "min", "max", "step", "href", "title"])
  Object.defineProperty(Element.prototype, name, {
    get() {
      return this.getAttribute(name) ?? "";
    },
    set(value) {
      this.setAttribute(name, value);
    },
  });
for (const name of ["open", "hidden", "selected", "disabled"])
  Object.defineProperty(Element.prototype, name, {
    get() {
      return this.hasAttribute(name);
    },
    set(value) {
      if (value) this.setAttribute(name, "");
      else this.removeAttribute(name);
      if (name === "open" && this.localName === "details") this.dispatchEvent(new Event("toggle"));
    },
  });
Object.defineProperty(Element.prototype, "value", {
  get() {
    if (this.written !== undefined) return this.written;
    if (this.localName !== "select") return this.getAttribute("value") ?? "";
    const chosen = this.options.find((one) => one.selected) ?? this.options[0];
    return chosen?.getAttribute("value") ?? "";
  },
  set(value) {
    this.written = String(value);
  },
});

function below(element) {
  return element.children.flatMap((child) => [child, ...below(child)]);
}

/** What an element is, for comparisons and for what a test says of it. */
export function outline(node) {
  if (!(node instanceof Element)) return node instanceof Node ? node.textContent : "";
  const own = node.attributes.map(([name, value]) => ` ${name}="${value}"`).join("");
  return `<${node.localName}${own}>${node.childNodes.map(outline).join("")}</>`;
}

/** `a.b [c="d"], e` as lists of parts, each a list of tests. */
function readSelector(selector) {
  return selector.split(",").map((one) =>
    one
      .trim()
      .replace(/\s*>\s*/g, " >")
      .split(/\s+(?![^[]*\])/)
      .map((part) => ({ isChild: part.startsWith(">"), tests: readPart(part.replace(/^>/, "")) })),
  );
}

const PIECE =
  /^(?:(?<tag>[a-z][a-z0-9]*)|#(?<id>[\w-]+)|\.(?<name>[\w-]+)|\[(?<attribute>[\w-]+)(?:="(?<value>[^"]*)")?\]|:not\(\[(?<without>[\w-]+)\]\)|(?<scope>:scope)|(?<all>\*))/;

function readPart(part) {
  const tests = [];
  let rest = part;
  while (rest !== "") {
    const found = PIECE.exec(rest);
    if (!found) throw new Error(`the document of the tests does not know the selector ${part}`);
    const { tag, id, name, attribute, value, without } = found.groups;
    if (tag) tests.push((one) => one.localName === tag);
    if (id) tests.push((one) => one.id === id);
    if (name) tests.push((one) => one.classes.includes(name));
    if (attribute)
      tests.push(
        (one) => one.hasAttribute(attribute) && (value === undefined || one.getAttribute(attribute) === value),
      );
    if (without) tests.push((one) => !one.hasAttribute(without));
    rest = rest.slice(found[0].length);
  }
  return tests;
}

function isMatch(element, parts, root) {
  const [last, others] = [parts.at(-1), parts.slice(0, -1)];
  if (!last.tests.every((test) => test(element))) return false;
  if (others.length === 0) return true;
  for (let node = element.parentNode; node instanceof Element; node = node.parentNode) {
    if (isMatch(node, others, root)) return true;
    if (last.isChild || node === root) return false;
  }
  return false;
}

/** Puts a document, a window and what hangs on them in the place of a browser's. */
export function install() {
  const html = new Element("html");
  const body = new Element("body");
  html.append(body);
  const document = Object.assign(new EventTarget(), {
    documentElement: html,
    body,
    activeElement: body,
    hidden: false,
    title: "",
    createElement: (tag) => new Element(tag),
    createElementNS: (_, tag) => new Element(tag),
    createTextNode: (text) => new Text(text),
    getElementById: (id) => html.querySelectorAll("[id]").find((one) => one.id === id) ?? null,
    querySelector: (selector) => html.querySelector(selector),
    querySelectorAll: (selector) => html.querySelectorAll(selector),
    contains: (node) => html.contains(node),
  });
  const location = { hash: "", href: "http://page.test/", origin: "http://page.test" };
  Object.assign(globalThis, {
    document,
    Node,
    HTMLElement: Element,
    location,
    window: globalThis,
    CSS: { escape: (text) => text.replace(/["\\]/g, "\\$&") },
    requestAnimationFrame: (run) => setTimeout(run, 0),
    sessionStorage: { getItem: () => null, setItem: () => {}, removeItem: () => {} },
    localStorage: { getItem: () => null, setItem: () => {} },
    scrollTo: () => {},
    addEventListener: () => {},
  });
  for (const id of ["app", "said", "toasts", "banner"]) {
    const place = new Element("div");
    place.id = id;
    body.append(place);
  }
  return document;
}
