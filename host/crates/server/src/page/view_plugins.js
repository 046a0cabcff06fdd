// Plugins that are shipped and installed, and what each asks for.
//
// A plugin does not have what it asks for: a project grants it in its longhaul.toml, and nothing is granted here.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { bytes, words } from "./format.js";
import { live } from "./live.js";
import { errorBlock } from "./part_error.js";
import { chip, empty, input, mono, redraw, table } from "./ui.js";

export async function show(ctx) {
  ctx.title("Plugins");
  const search = input({
    type: "search",
    placeholder: "Filter plugins",
    "aria-label": "Filter plugins",
    data: { search: "" },
  });
  const list = h("div");
  let all = [];
  const draw = () => {
    const wanted = search.value.trim().toLowerCase();
    const shown = all.filter(
      (one) => wanted === "" || `${one.name} ${one.role} ${one.description}`.toLowerCase().includes(wanted),
    );
    redraw(
      list,
      shown.length === 0
        ? empty(all.length === 0 ? "No plugin is installed." : "No plugin has that in its name.")
        : table("Plugins", COLUMNS, shown),
    );
  };
  search.addEventListener("input", draw);
  fill(
    ctx.box,
    h("div", { class: "view-head" }, h("h1", null, "Plugins"), h("div", { class: "toolbar" }, search)),
    h(
      "p",
      { class: "hint" },
      "What a plugin asks for is granted by a project, in its longhaul.toml, and nowhere else.",
    ),
    list,
  );
  await live(ctx, {
    place: list,
    everyMs: 60_000,
    wants: () => false,
    load: (signal) => api.plugins({ limit: 500 }, signal),
    draw: ({ items }) => {
      all = items;
      draw();
    },
  });
}

const COLUMNS = [
  {
    name: "Plugin",
    cell: (one) => [h("b", null, one.name), one.description && h("span", { class: "sub" }, one.description)],
  },
  { name: "Role", cell: (one) => (one.role ? chip(words(one.role)) : "–") },
  {
    name: "Asks for",
    wide: true,
    cell: (one) =>
      one.error
        ? errorBlock(one.error, { name: one.name })
        : one.requested_grants?.length > 0
          ? h(
              "ul",
              { class: "dots" },
              one.requested_grants.map((grant) => h("li", null, grant)),
            )
          : h("span", { class: "muted" }, "nothing"),
  },
  { name: "Version", cell: (one) => one.version || "–" },
  { name: "Digest", hide: "phone", cell: (one) => (one.digest ? mono(String(one.digest).slice(0, 12)) : "–") },
  {
    name: "Installed",
    cell: (one) =>
      one.installed?.length > 0
        ? h(
            "ul",
            null,
            one.installed
              .slice(0, 5)
              .map((kept) =>
                h("li", null, kept.version ?? "", " ", mono(String(kept.digest).slice(0, 8)), " ", bytes(kept.bytes)),
              ),
          )
        : h("span", { class: "muted" }, "shipped"),
  },
];
