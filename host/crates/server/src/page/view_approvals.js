// Approvals of tool calls: open questions first, each answered in place, and the rules that answers made.

import * as api from "./api.js";
import { fill, h, keyed } from "./dom.js";
import { live } from "./live.js";
import { approvalCard } from "./part_approvals.js";
import { may } from "./session.js";
import { button, confirm, empty, link, mono, pager, redraw, status, table, tabs, when } from "./ui.js";

const PAGE = 50;

export async function show(ctx) {
  ctx.title("Approvals");
  const part = ctx.path[1] ?? "open";
  const body = h("div", { class: "section" });
  fill(
    ctx.box,
    h("h1", null, "Approvals"),
    tabs(
      "Which approvals",
      [
        { name: "open", href: "#/approvals", text: "Open" },
        { name: "all", href: "#/approvals/all", text: "All" },
        { name: "rules", href: "#/approvals/rules", text: "Rules" },
      ],
      part,
    ),
    body,
  );
  const wants = (line) => ["approval", "parked", "resumed", "done"].includes(line.type);
  if (part === "rules") return rules(ctx, body, wants);
  if (part === "all") return all(ctx, body, wants);
  const list = h("div", { class: "stack" });
  const none = h("div");
  fill(body, none, list);
  const { refresh } = await live(ctx, {
    place: list,
    wants,
    everyMs: 10_000,
    load: (signal) => api.approvals({ open: true, limit: 100 }, signal),
    draw: (page) => {
      keyed(list, page.items, {
        key: (one) => one.id,
        mark: (one) => one.status,
        make: (one) => approvalCard(one, { done: () => refresh() }),
      });
      redraw(
        none,
        page.total === 0 && empty("No call waits for an answer."),
        page.total > page.items.length && h("p", { class: "hint" }, `The first ${page.items.length} of ${page.total}.`),
      );
    },
  });
}

async function all(ctx, body, wants) {
  const offset = Number(ctx.query.get("offset")) || 0;
  await live(ctx, {
    place: body,
    wants,
    load: (signal) => api.approvals({ limit: PAGE, offset }, signal),
    draw: (page) =>
      redraw(
        body,
        page.total === 0 ? empty("No tool needed an approval yet.") : table("Approvals", COLUMNS, page.items),
        pager(page, (to) => ctx.go(`#/approvals/all?offset=${to}`)),
      ),
  });
}

const COLUMNS = [
  {
    name: "Call",
    cell: (row) => [
      h("b", null, row.kind === "question" ? "question" : `${row.tool}.${row.function}`),
      h("span", { class: "sub" }, row.agent),
    ],
  },
  { name: "Outcome", cell: (row) => [status(row.status), h("span", { class: "sub" }, row.status_text)] },
  { name: "Run", cell: (row) => link(`#/runs/${row.run}`, mono(row.run)) },
  { name: "Asked", numeric: true, cell: (row) => when(row.at_ms) },
];

async function rules(ctx, body, wants) {
  const { refresh } = await live(ctx, {
    place: body,
    wants,
    load: (signal) => api.rules(null, signal),
    draw: ({ items }) =>
      redraw(
        body,
        items.length === 0
          ? empty("No rule was made. “Allow for this run” makes one.")
          : table(
              "Rules",
              [
                {
                  name: "Allows",
                  cell: (rule) => [
                    h("b", null, `${rule.tool}.${rule.function}`),
                    rule.program && h("span", { class: "sub" }, "program ", mono(rule.program)),
                  ],
                },
                { name: "Run", cell: (rule) => link(`#/runs/${rule.run}`, mono(rule.run)) },
                { name: "Made", numeric: true, cell: (rule) => when(rule.at_ms) },
                {
                  name: "Actions",
                  bare: true,
                  cell: (rule) =>
                    rule.revoked_ms
                      ? h("span", { class: "muted" }, "revoked ", when(rule.revoked_ms))
                      : may("approve") &&
                        h(
                          "span",
                          { class: "actions" },
                          button("Revoke", {
                            small: true,
                            kind: "danger",
                            focus: `revoke-${rule.id}`,
                            run: () =>
                              confirm(
                                "Revoke the rule",
                                `From now on a person is asked again about ${rule.tool}.${rule.function}.`,
                                "Revoke",
                                async () => {
                                  await api.revokeRule(rule.run, rule.id);
                                  await refresh();
                                },
                              ),
                          }),
                        ),
                },
              ],
              items,
            ),
      ),
  });
}
