// Makes elements: the only place where the page writes to the document.
//
// Every text becomes a text node, so what a model wrote is never read as HTML. Refused here: markup in strings, style
// attributes (the content security policy forbids them; give `vars` and a class), handlers as attributes, and links to
// anything but this page, a file that the page itself made, or nothing at all. A picture may hold its own bytes, as PNG or
// SVG and in an `img` alone, where a browser runs no script of it and fetches nothing for it.

const SVG = "http://www.w3.org/2000/svg";

/** Attributes that could run or load something. `href` and `src` are looked at one by one. */
const REFUSED = new Set(["style", "srcdoc", "action", "formaction", "xlink:href", "ping"]);

/**
 * An element of HTML. `props`: attributes by name; `class` may be a list; `on` holds listeners; `vars` CSS variables;
 * `data` the dataset; `prop` properties such as `value`. A value of null, undefined or false leaves the attribute away.
 */
export function h(tag, props, ...children) {
  return build(document.createElement(tag), props, children);
}

/** An element of SVG, by the same rules. */
export function s(tag, props, ...children) {
  return build(document.createElementNS(SVG, tag), props, children);
}

/** Puts these children in place of what an element has. */
export function fill(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}

/** Adds children at the end. */
export function add(element, ...children) {
  element.append(...flat(children));
  return element;
}

/**
 * Puts new content into an element and touches only what is another than before, so that a selection stays, and the focus
 * is left on what has the same id, or the same `data-focus`. What a finger or a mouse is pressing is not taken away
 * before it is let go, or the press would be lost.
 */
export function refill(element, ...children) {
  if (isPressed(element)) {
    waiting.set(element, children);
    return element;
  }
  waiting.delete(element);
  const [before, after] = [[...element.childNodes], flat(children)];
  if (before.length !== after.length) return keepingFocus(element, () => element.replaceChildren(...after));
  before.forEach((old, index) => {
    if (!old.isEqualNode(after[index])) keepingFocus(old, () => old.replaceWith(after[index]), after[index]);
  });
  return element;
}

/** Does what changes an element into `made`, or changes its content; what was focused or open in it is so again. */
function keepingFocus(element, change, made = element) {
  const held = element.contains(document.activeElement) ? document.activeElement : null;
  const name = held && (held.dataset.focus || held.id);
  const open = [...(element.querySelectorAll?.("details[open][data-open]") ?? [])].map((one) => one.dataset.open);
  change();
  for (const one of open) {
    const again = made.querySelector?.(`details[data-open="${CSS.escape(one)}"]`);
    if (again) again.open = true;
  }
  if (!name || held.isConnected) return element;
  const own = [made, ...(made.querySelectorAll?.("[id], [data-focus]") ?? [])];
  own.find((one) => one.dataset && (one.dataset.focus || one.id) === name)?.focus({ preventScroll: true });
  return element;
}

/** What is to be filled when nobody presses it any more. */
const waiting = new Map();
let pressed = null;

const isPressed = (element) => pressed !== null && element.contains(pressed);

function release() {
  // The click comes after this event.
  setTimeout(() => {
    pressed = null;
    for (const [element, children] of [...waiting]) refill(element, ...children);
  }, 0);
}

if (typeof document !== "undefined") {
  document.addEventListener("pointerdown", (event) => (pressed = event.target), true);
  for (const type of ["pointerup", "pointercancel"]) document.addEventListener(type, release, true);
}

/**
 * Keeps the children of `parent` in step with `items`. A child stays as it is while the mark of its item is the same,
 * so that what a person has open, focused or half typed is not taken away by news about something else.
 */
export function keyed(parent, items, { key, mark, make }) {
  const before = new Map();
  for (const child of [...parent.children]) {
    if (child.dataset.key === undefined) child.remove();
    else before.set(child.dataset.key, child);
  }
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    const marked = String(mark(item));
    let child = before.get(name);
    before.delete(name);
    const isKept = child && (child.hasAttribute("data-held") || isPressed(child));
    if (!child || (child.dataset.mark !== marked && !isKept)) {
      const made = make(item);
      made.dataset.key = name;
      made.dataset.mark = marked;
      if (child) {
        if (child === place) place = made;
        const old = child;
        keepingFocus(old, () => old.replaceWith(made), made);
      }
      child = made;
    }
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const child of before.values()) child.remove();
}

function build(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) set(element, name, value);
  element.append(...flat(children));
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name === "class") {
    element.setAttribute("class", Array.isArray(value) ? value.filter(Boolean).join(" ") : value);
  } else if (name === "on") {
    for (const [type, listener] of Object.entries(value)) element.addEventListener(type, listener);
  } else if (name === "vars") {
    for (const [variable, to] of Object.entries(value)) element.style.setProperty(variable, String(to));
  } else if (name === "data") {
    for (const [key, to] of Object.entries(value))
      if (to !== null && to !== undefined) element.dataset[key] = String(to);
  } else if (name === "prop") {
    for (const [key, to] of Object.entries(value)) property(element, key, to);
  } else {
    attribute(element, name, value);
  }
}

const PROPERTIES = new Set(["value", "checked", "selected", "indeterminate", "disabled", "open", "hidden"]);

function property(element, name, value) {
  if (!PROPERTIES.has(name)) throw new TypeError(`the page sets no property \`${name}\``);
  element[name] = value;
}

function attribute(element, name, value) {
  const lower = name.toLowerCase();
  if (lower.startsWith("on") || REFUSED.has(lower)) throw new TypeError(`the page sets no attribute \`${name}\``);
  const isShown = lower === "src" && element.localName === "img" && isPicture(String(value));
  if ((lower === "href" || lower === "src") && !isShown && !isOurs(String(value))) {
    throw new TypeError(`the page links to itself alone, not to \`${value}\``);
  }
  element.setAttribute(name, value === true ? "" : String(value));
}

/** Whether an address is a place of this page, or a file that it made. */
export function isOurs(address) {
  return address.startsWith("#") || address.startsWith("blob:");
}

/** True for an address that is a picture with its bytes in it, of a kind that the page shows. */
export function isPicture(address) {
  return /^data:image\/(?:png;base64,[A-Za-z0-9+/]+={0,2}|svg\+xml;charset=utf-8,[A-Za-z0-9%!'()*._~-]+)$/.test(
    address,
  );
}

/** Children as nodes: texts as text nodes, lists flat, nothing for what is absent. */
function flat(children) {
  const nodes = [];
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === true) continue;
    if (Array.isArray(child)) nodes.push(...flat(child));
    else nodes.push(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return nodes;
}
