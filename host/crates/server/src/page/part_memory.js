// The memory of a project: facts, episodes and working notes of its runs; each can be searched and forgotten.

import * as api from "./api.js";
import { fill, h, keyed } from "./dom.js";
import { asText, words } from "./format.js";
import { live } from "./live.js";
import { may } from "./session.js";
import { button, chip, confirm, empty, input, mono, plain, redraw, select, toast, when } from "./ui.js";

const SCOPES = [
  ["", "All"],
  ["fact", "Facts"],
  ["episode", "Episodes"],
  ["working", "Working notes"],
];

export async function memory(ctx, place, run) {
  const wanted = { query: "", scope: "" };
  const search = input({
    type: "search",
    placeholder: "Search by meaning or words",
    "aria-label": "Search the memory",
    data: { search: "" },
  });
  const scope = select(SCOPES, "", { "aria-label": "Scope" });
  const list = h("div", { class: "stack" });
  const none = h("div");
  const ask = h("form", { class: "toolbar", role: "search" }, search, scope, button("Search", { type: "submit" }));
  fill(place, h("h2", { class: "unseen" }, "Memory"), ask, none, list);
  const { refresh } = await live(ctx, {
    place: list,
    everyMs: 30_000,
    wants: (line) => line.type === "done",
    load: (signal) => api.memory(run, { ...wanted }, signal),
    draw: ({ items }) => {
      keyed(list, items, {
        key: (one) => `${one.scope}/${one.key}`,
        mark: (one) => JSON.stringify(one),
        make: (one) => card(run, one, () => refresh()),
      });
      redraw(
        none,
        items.length === 0 &&
          empty(wanted.query ? "Nothing that is remembered bears on this." : "Nothing is remembered yet."),
      );
    },
  });
  const go = (event) => {
    event.preventDefault();
    Object.assign(wanted, { query: search.value.trim(), scope: scope.value });
    refresh();
  };
  ask.addEventListener("submit", go);
  scope.addEventListener("change", go);
}

function card(run, one, refresh) {
  const text = asText(one.value);
  const facts = ["by", "run", "trust"].filter((name) => one[name]);
  return h(
    "article",
    { class: "card" },
    h("div", { class: "card-head" }, h("h3", null, mono(one.key)), chip(words(one.scope))),
    plain(text),
    h(
      "p",
      { class: "hint" },
      facts.map((name, index) => [index > 0 && " · ", `${words(name)} ${one[name]}`]),
      one.expires_at_ms && [" · over ", when(one.expires_at_ms)],
    ),
    may("run") &&
      h(
        "div",
        { class: "actions" },
        button("Forget", {
          small: true,
          kind: "danger",
          run: () =>
            confirm("Forget it", `${one.key} is removed, and no run gets it again.`, "Forget", async () => {
              await api.forget(run, one.key, one.scope);
              toast("Forgotten.");
              await refresh();
            }),
        }),
      ),
  );
}
