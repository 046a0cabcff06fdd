// What the tool asks of a page. It runs in a world of its own, whose functions the page cannot change. It decides
// nothing that matters for safety: a page can lie about what it shows, and about nothing else.
globalThis.longhaul ??= (() => {
  const KINDS =
    "a[href],button,input:not([type=hidden]),select,textarea,summary,iframe[src],[onclick],[contenteditable=''],[contenteditable=true],[role=button],[role=link],[role=checkbox],[role=tab],[role=menuitem]";
  const REFS_MAX = 10000;
  const byRef = new Map();
  const refs = new WeakMap();
  // Half of a pair of surrogates is no text of JSON, and would close the pipe.
  const whole = (text) => text.replace(/[\ud800-\udfff]/gu, "\ufffd");
  const splits = (text, at) => /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(at - 1, at + 1));
  const cut = (text, max) => {
    const plain = String(text ?? "").replace(/\s+/g, " ").trim();
    return whole(plain.length > max ? plain.slice(0, max) + "…" : plain);
  };
  const isSeen = (element) =>
    element.getClientRects().length > 0 && getComputedStyle(element).visibility !== "hidden";
  const refOf = (element) => {
    let ref = refs.get(element);
    if (ref === undefined) {
      if (byRef.size >= REFS_MAX) return null;
      ref = byRef.size + 1;
      byRef.set(ref, new WeakRef(element));
      refs.set(element, ref);
    }
    return ref;
  };
  function* elementsIn(root) {
    for (const element of root.querySelectorAll("*")) {
      if (element.matches(KINDS) && isSeen(element)) yield element;
      if (element.shadowRoot) yield* elementsIn(element.shadowRoot);
    }
  }
  const kindOf = (element) => cut(element.getAttribute("role") ?? element.localName, 40);
  const labelOf = (element) =>
    cut(
      element.getAttribute("aria-label") ||
        (element.labels && element.labels.length > 0 && element.labels[0].innerText) ||
        element.getAttribute("placeholder") ||
        (element.localName === "input" && ["submit", "button"].includes(element.type) && element.value) ||
        element.innerText ||
        element.getAttribute("title") ||
        element.getAttribute("name") ||
        (element.querySelector("img[alt]") && element.querySelector("img[alt]").alt),
      120,
    );
  const told = (element) => {
    const one = { ref: refOf(element), kind: kindOf(element), label: labelOf(element) };
    if (element.localName === "a") one.href = cut(element.href, 300);
    if (element.localName === "iframe") one.href = cut(element.src, 300);
    if (element.localName === "input") one.type = element.type;
    if (["checkbox", "radio"].includes(element.type)) one.checked = element.checked;
    else if (element.type === "password") one.filled = element.value.length > 0;
    else if (["input", "textarea"].includes(element.localName)) one.value = cut(element.value, 120);
    if (element.localName === "select") {
      one.value = cut(element.selectedOptions[0] && element.selectedOptions[0].text, 120);
      one.options = Array.from(element.options).slice(0, 50).map((option) => cut(option.text, 80));
    }
    if (element.disabled) one.disabled = true;
    return one;
  };
  const find = (ref) => {
    const element = byRef.get(ref)?.deref();
    if (!element || !element.isConnected) throw new Error(`there is no element ${ref} on this page any more; call elements again`);
    if (!isSeen(element)) throw new Error(`the element ${ref} is not visible now`);
    if (element.disabled) throw new Error(`the element ${ref} is disabled`);
    return element;
  };
  return {
    about() {
      const entry = performance.getEntriesByType("navigation")[0];
      // A document that is written to after it has loaded goes back to `loading`, and stays there until it is closed.
      const loaded = entry ? entry.loadEventStart > 0 : document.readyState === "complete";
      const status = (entry && entry.responseStatus) || null;
      return { url: location.href, title: cut(document.title, 200), status, loaded };
    },
    text(offset, max) {
      const all = document.documentElement ? document.documentElement.innerText ?? document.documentElement.textContent : "";
      const text = String(all ?? "").replace(/[ \t]+/g, " ").replace(/\n{3,}/g, "\n\n").trim();
      const end = offset + max - (splits(text, offset + max) ? 1 : 0);
      return { text: whole(text.slice(offset, end)), chars: text.length };
    },
    elements(offset, max) {
      const listed = [];
      let total = 0;
      for (const element of elementsIn(document)) {
        if (total >= offset && listed.length < max) listed.push(told(element));
        total += 1;
        if (total >= REFS_MAX) break;
      }
      return { elements: listed, total };
    },
    place(ref) {
      const element = find(ref);
      if (element.type === "file") throw new Error("a file cannot be chosen");
      element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
      const box = Array.from(element.getClientRects()).find((one) => one.width > 0 && one.height > 0);
      if (!box) throw new Error(`the element ${ref} has no size`);
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
      let top = document.elementFromPoint(x, y);
      while (top && top.shadowRoot && top.shadowRoot.elementFromPoint(x, y) && top.shadowRoot.elementFromPoint(x, y) !== top)
        top = top.shadowRoot.elementFromPoint(x, y);
      const label = Array.from(element.labels ?? []);
      if (!top || !(element.contains(top) || top.contains(element) || label.some((one) => one.contains(top))))
        throw new Error(`the element ${ref} is covered by another one${top ? `: ${kindOf(top)} ${labelOf(top)}` : ""}`);
      return { x, y };
    },
    fill(ref, text) {
      const element = find(ref);
      if (element.localName === "select") {
        const option = Array.from(element.options).find((one) => cut(one.text, 80) === cut(text, 80) || one.value === text);
        if (!option) throw new Error(`the element ${ref} has no option ${cut(text, 80)}`);
        element.value = option.value;
        for (const kind of ["input", "change"]) element.dispatchEvent(new Event(kind, { bubbles: true }));
        return { done: true };
      }
      const isText = element.localName === "textarea" || element.isContentEditable;
      const isInput = element.localName === "input" && !["checkbox", "radio", "file", "submit", "button", "image", "reset", "range", "color"].includes(element.type);
      if (!isText && !isInput) throw new Error(`nothing can be typed into the element ${ref}, a ${kindOf(element)}`);
      element.focus();
      if (element.select) element.select();
      else getSelection().selectAllChildren(element);
      return { done: false };
    },
  };
})();
