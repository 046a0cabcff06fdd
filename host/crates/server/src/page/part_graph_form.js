// A new graph: its name, its language, and its first step.
//
// Its steps see no directory and no host: those are named on the command line. The server says which names it takes.

import * as api from "./api.js";
import { graphHref, newGraphOf } from "./graphs.js";
import { KEYS_HINT, codeArea } from "./part_code_editor.js";
import { dialog, field, form, input, select } from "./ui.js";

/** Languages of steps: the word of the API, and its name. */
const LANGUAGES = [["python", "Python"]];

/** Asks for it, and goes to the graph that is made. */
export function newGraph(ctx) {
  dialog(
    "New graph",
    (close) => {
      const name = input({ name: "name", required: true });
      const language = select(LANGUAGES, "python", { name: "language" });
      const step = input({ name: "step", prop: { value: "first" } });
      const source = codeArea("", { name: "source", rows: "8", run: () => asked.requestSubmit() });
      const asked = form(
        "New graph",
        [
          field("Name", name, { name: "name", hint: "Graphs are found by their names, such as sales." }),
          field("Language", language, { name: "language" }),
          field("First step", step, { name: "step", hint: "Its name. More steps are added to the graph." }),
          field("Source", source, { name: "source", hint: `Left empty: the graph has no step yet. ${KEYS_HINT}` }),
        ],
        {
          action: "Make",
          cancel: close,
          submit: async () => {
            const fields = { name: name.value, language: language.value, step: step.value, source: source.value };
            const made = await api.createGraph(newGraphOf(fields));
            close();
            ctx.go(graphHref(made.name));
          },
        },
      );
      return asked;
    },
    { wide: true },
  );
}
