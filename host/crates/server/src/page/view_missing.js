// The page for an address that names no view, or a thing that is gone.

import { fill, h } from "./dom.js";
import { link } from "./ui.js";

export async function show(ctx) {
  missing(ctx, `The page has no place ${ctx.path.join("/")}.`);
}

/** Says what is not there, and where one can go from here. */
export function missing(ctx, text) {
  ctx.title("Not found");
  fill(
    ctx.box,
    h(
      "div",
      { class: "missing" },
      h("h1", null, "Not found"),
      h("p", null, text),
      h(
        "p",
        null,
        link("#/projects", "Projects"),
        " · ",
        link("#/runs", "Runs"),
        " · ",
        link("#/approvals", "Approvals"),
      ),
    ),
  );
}
