// Typed results of code, drawn: pictures as images, tables, JSON as a tree that is folded, texts.
//
// All of it was made by code that nobody trusts. A picture is an image and never a part of the page, and what is no picture
// by its bytes is said to be none.

import { add, h } from "./dom.js";
import { count, visible } from "./format.js";
import { ROWS_SHOWN, cellText, entriesOf, isBranch, pngOf, summaryOf, svgOf, tableOf } from "./outputs.js";
import { button, empty, fold, muted, plain, table } from "./ui.js";

/** Draws the results, in their order. */
export function outputList(outputs) {
  return h(
    "ol",
    { class: "outputs", "aria-label": "Results" },
    outputs.map((one, at) => h("li", null, drawOutput(one, at + 1))),
  );
}

function drawOutput(output, number) {
  const draw = DRAW[output.kind];
  return draw ? draw(output, number) : muted(`Result ${number} is of a kind that this page does not know.`);
}

const DRAW = {
  text: ({ text }, number) => plain(text, { code: true, exact: true, label: `Result ${number}` }),
  json: ({ value }, number) =>
    h("div", { class: "tree", role: "group", "aria-label": `Result ${number}` }, tree(value)),
  table: (output, number) => rowsOf(output, number),
  png: ({ base64 }, number) => picture(pngOf(base64), number, "PNG"),
  svg: ({ text }, number) => picture(svgOf(text), number, "SVG"),
};

function picture({ address, width, height, fault }, number, kind) {
  if (fault) return muted(`Result ${number} is shown as no picture: ${fault}.`);
  const size = width ? `, ${width} × ${height}` : "";
  return h(
    "figure",
    { class: "picture" },
    h("img", { src: address, alt: `Picture, result ${number}`, decoding: "async" }),
    h("figcaption", { class: "hint" }, `${kind}${size}`),
  );
}

function rowsOf(output, number, shown = ROWS_SHOWN) {
  const { columns, rows, kept, total } = tableOf(output, shown);
  if (columns.length === 0) return empty("A table without columns.");
  const cells = columns.map(({ name, numeric }, at) => ({
    name: visible(name),
    numeric,
    cell: (row) => (row[at] === null ? muted("null") : visible(cellText(row[at]))),
  }));
  const box = h("div", { class: "stack-small" });
  const more =
    rows.length < kept &&
    button(`Show all ${count(kept)} rows`, {
      small: true,
      kind: "quiet",
      run: () => box.replaceWith(rowsOf(output, number, kept)),
    });
  const told =
    total > rows.length ? `The first ${count(rows.length)} of ${count(total)} rows.` : `${count(total)} rows.`;
  return add(
    box,
    table(`Result ${number}`, cells, rows),
    h("div", { class: "toolbar" }, h("p", { class: "hint" }, told), more),
  );
}

/** JSON, one level at a time: what is folded is made when it is opened. */
function tree(value, name = null) {
  const label = name === null ? null : h("span", { class: "tree-name" }, visible(name), ": ");
  if (!isBranch(value)) return h("p", { class: "tree-leaf" }, label, h("code", null, visible(summaryOf(value))));
  const { entries } = entriesOf(value);
  if (entries.length === 0) return h("p", { class: "tree-leaf" }, label, muted(summaryOf(value)));
  return fold([label, muted(summaryOf(value))], () => branch(value), { open: name === null });
}

function branch(value) {
  const list = h("ul", { class: "tree-list" });
  const show = (from) => {
    const { entries, rest } = entriesOf(value, from);
    add(
      list,
      entries.map(([name, one]) => h("li", null, tree(one, name))),
    );
    if (rest <= 0) return;
    const row = h("li", null);
    const more = button(`Show more of ${count(rest)}`, {
      small: true,
      kind: "quiet",
      run: () => {
        row.remove();
        show(from + entries.length);
      },
    });
    add(list, add(row, more));
  };
  show(0);
  return list;
}
