// The usage of a run and the rest of its budget: its caps as bars, and a row for each invocation.

import { fill, h } from "./dom.js";
import { bytes, cost, count, duration, money, percent, short } from "./format.js";
import { shortName } from "./part_timeline.js";
import { button, empty, facts, link, redraw, section, table } from "./ui.js";

const ROWS = 100;

/** Draws it; gives what takes the run's news. */
export function ledger(place, run) {
  let most = ROWS;
  const draw = (now) => {
    const { ledger: book } = now;
    const total = book.total;
    const rows = [...book.rows].sort(
      (a, b) =>
        knownCost(b.resource_usage.usage) - knownCost(a.resource_usage.usage) ||
        tokensOf(b.resource_usage.usage) - tokensOf(a.resource_usage.usage),
    );
    redraw(
      place,
      section(
        "Spent",
        { id: "s-spent" },
        facts([
          ["Money", cost(total.usage)],
          ["Tokens read", count(total.usage.input_tokens)],
          ["of these cached", total.usage.cached_tokens > 0 ? count(total.usage.cached_tokens) : null],
          ["Tokens written", count(total.usage.output_tokens)],
          ["Answers of models", count(total.model_calls)],
          ["Calls of tools", count(total.tool_calls)],
          ["Fuel", short(total.fuel)],
          ["At work", duration(book.wall_ms)],
          ["Peak memory", bytes(book.memory_bytes_at_once_peak)],
          ["Sent", bytes(total.egress_bytes)],
          ["Stored", bytes(total.stored_bytes)],
          ["Possibly paid twice", total.possibly_paid_twice > 0 ? count(total.possibly_paid_twice) : null],
          ["Replans", book.replans > 0 ? count(book.replans) : null],
        ]),
      ),
      caps(book, total),
      section(
        "By step",
        { id: "s-rows", count: rows.length },
        rows.length === 0 ? empty("Nothing was spent yet.") : table("Spent by step", columns(now), rows.slice(0, most)),
        rows.length > most &&
          button(`Show more of ${rows.length}`, {
            run: () => {
              most += ROWS;
              draw(now);
            },
          }),
      ),
    );
  };
  fill(place);
  draw(run);
  return draw;
}

const knownCost = (usage) => usage?.cost_microdollars ?? usage?.cost_microdollars_min ?? 0;

const tokensOf = (usage) => usage.input_tokens + usage.output_tokens;

function caps(book, total) {
  const charged = (name) => (total.usage[name] ?? 0) + (total.interrupted_usage_max?.[name] ?? 0);
  const all = [
    ["Money", knownCost(total.usage) + knownCost(total.interrupted_usage_max), book.caps.cost_microdollars_max, money],
    ["Tokens", charged("input_tokens") + charged("output_tokens"), book.caps.tokens_max, short],
    ["Time at work", book.wall_ms, book.wall_ms_max, duration],
    ["Answers of models", total.model_calls, book.caps.model_calls_max, count],
    ["Calls of tools", total.tool_calls, book.caps.tool_calls_max, count],
    ["Fuel", total.fuel, book.caps.fuel_max, short],
    ["Peak memory", book.memory_bytes_at_once_peak, book.caps.memory_bytes_max, bytes],
    ["Sent", total.egress_bytes, book.caps.egress_bytes_max, bytes],
    ["Stored", total.stored_bytes, book.caps.stored_bytes_max, bytes],
  ].filter(([, , most]) => typeof most === "number" && most > 0);
  if (all.length === 0)
    return section(
      "Caps",
      { id: "s-caps" },
      h(
        "p",
        { class: "muted" },
        "This run has no caps of its own. ",
        h("code", null, "[run.limits]"),
        " in longhaul.toml sets them.",
      ),
    );
  return section(
    "Caps",
    { id: "s-caps" },
    h(
      "ul",
      { class: "caps" },
      all.map(([name, used, most, say]) =>
        h(
          "li",
          null,
          h("span", null, name),
          h(
            "span",
            {
              class: ["progress-bar", "cap-bar", used >= most * 0.9 && "is-near"],
              role: "img",
              "aria-label": `${name}: ${percent(used, most)} percent of its cap`,
              vars: { "--share": Math.min(1, used / most) },
            },
            h("span"),
          ),
          h("span", { class: "muted" }, `${say(used)} of ${say(most)}`),
        ),
      ),
    ),
  );
}

const columns = (run) => [
  {
    name: "Step",
    cell: (row) => link(`#/runs/${run.run}/journal?i=${encodeURIComponent(row.invocation)}`, shortName(row.invocation)),
  },
  { name: "Money", numeric: true, cell: (row) => cost(row.resource_usage.usage) },
  { name: "Tokens read", numeric: true, cell: (row) => count(row.resource_usage.usage.input_tokens) },
  { name: "Written", numeric: true, cell: (row) => count(row.resource_usage.usage.output_tokens) },
  { name: "Model", numeric: true, hide: "phone", cell: (row) => count(row.resource_usage.model_calls) },
  { name: "Tools", numeric: true, hide: "phone", cell: (row) => count(row.resource_usage.tool_calls) },
  { name: "Fuel", numeric: true, hide: "phone", cell: (row) => short(row.resource_usage.fuel) },
];
