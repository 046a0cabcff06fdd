// Code that a person runs in the sandbox: an editor, its limits, its output as it comes, and what came of it; sessions
// of Python with the variables that they keep.
//
// Code gets no directory and no host here. It is stopped by giving up the request, which ends the instance, and so it is
// when the view is left. What stopped code has printed stays on the page. The text stays while one goes elsewhere in the
// page, and is kept nowhere else.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { LANGUAGES, execAddress, firstOf, jobOf } from "./exec_job.js";
import { runCode } from "./exec_stream.js";
import { bytes } from "./format.js";
import { live } from "./live.js";
import { KEYS_HINT, codeArea } from "./part_code_editor.js";
import { jobReport, variables } from "./part_job.js";
import { liveOutput } from "./part_live_output.js";
import { may } from "./session.js";
import {
  announce,
  area,
  button,
  check,
  confirm,
  empty,
  field,
  form,
  input,
  link,
  pager,
  redraw,
  section,
  select,
  table,
  toast,
  when,
} from "./ui.js";

const PAGE = 50;

/** What was typed and not run yet, by language. */
const drafts = new Map();

export async function show(ctx) {
  ctx.title("Run code");
  const [result, list] = [h("div"), h("div")];
  let refresh = async () => {};
  fill(
    ctx.box,
    h("h1", null, "Run code"),
    may("run") ? editor(ctx, result, () => refresh()) : empty("To run code takes a token with the scope run."),
    result,
    section("Sessions", { id: "s-sessions" }, list),
  );
  let offset = 0;
  ({ refresh } = await live(ctx, {
    place: list,
    wants: () => false,
    load: (signal) => api.sessions({ limit: PAGE, offset }, signal),
    draw: (page) =>
      redraw(
        list,
        page.total === 0
          ? noSession()
          : table(
              "Sessions",
              columns(() => refresh()),
              page.items,
              { rowKey: (one) => one.name },
            ),
        pager(page, (to) => {
          offset = to;
          return refresh();
        }),
      ),
  }));
}

const noSession = () =>
  empty(
    "No session is kept.",
    h(
      "p",
      null,
      "A session keeps the variables of Python for the next step. Name one above, or run ",
      h("code", null, "longhaul exec job.py --session NAME"),
      ".",
    ),
  );

const columns = (refresh) => [
  { name: "Session", cell: (one) => link(execAddress({ session: one.name }), one.name) },
  { name: "Runs in", cell: (one) => one.runtime },
  { name: "Steps", numeric: true, cell: (one) => String(one.steps) },
  { name: "Kept", numeric: true, cell: (one) => bytes(one.bytes) },
  { name: "Variables", wide: true, cell: (one) => variables(one.variables) },
  { name: "Begun", numeric: true, hide: "narrow", cell: (one) => when(one.created_ms) },
  { name: "Used", numeric: true, cell: (one) => when(one.used_ms) },
  {
    name: "Actions",
    bare: true,
    cell: (one) =>
      may("run") &&
      h(
        "span",
        { class: "actions" },
        button("End", {
          small: true,
          kind: "danger",
          focus: `end-${one.name}`,
          "aria-label": `End session ${one.name}`,
          run: () =>
            confirm(`End session ${one.name}`, "Its variables are removed.", "End it", async () => {
              await api.endSession(one.name);
              await refresh();
            }),
        }),
      ),
  },
];

/** The form with the code. */
function editor(ctx, result, refresh) {
  const chosen = LANGUAGES.some(([name]) => name === ctx.query.get("language")) ? ctx.query.get("language") : "python";
  const language = select(LANGUAGES, chosen, { name: "language" });
  const code = codeArea(drafts.get(chosen) ?? firstOf(chosen), { name: "source", run: () => element.requestSubmit() });
  const session = input({ name: "session", placeholder: "none", prop: { value: ctx.query.get("session") ?? "" } });
  const rich = check("Typed results: the last value, what display is given, figures", true, { name: "rich" });
  const more = limits();
  const ofPython = field("Session", session, { name: "session", hint: SESSION_HINT });
  const suit = () => {
    ofPython.hidden = language.value !== "python";
    more.suit(language.value);
  };
  let before = chosen;
  code.addEventListener("input", () => drafts.set(language.value, code.value));
  language.addEventListener("change", () => {
    drafts.set(before, code.value);
    before = language.value;
    code.value = drafts.get(before) ?? firstOf(before);
    ctx.keep(execAddress({ language: before, session: session.value.trim() }));
    suit();
  });
  session.addEventListener("change", () =>
    ctx.keep(execAddress({ language: language.value, session: session.value.trim() })),
  );
  const read = () => {
    const own = { language: language.value, source: code.value, session: session.value.trim(), rich: rich.box.checked };
    try {
      return jobOf({ ...own, ...more.values() });
    } catch (error) {
      more.reveal(error.field);
      throw error;
    }
  };
  let stop = null;
  const halt = button("Stop", { sign: "bad", disabled: true, run: () => stop?.abort() });
  const submit = async () => {
    const body = read();
    stop = new AbortController();
    halt.disabled = false;
    const output = liveOutput();
    fill(result, output.element);
    try {
      const signal = AbortSignal.any([stop.signal, ctx.signal]);
      const report = await runCode(body, { signal, onEvent: output.take });
      fill(result, jobReport(report));
      announce(report.success ? "The code ran." : "The code failed.");
      if (body.session) await refresh();
    } catch (error) {
      if (stop.signal.aborted) {
        output.end("abandoned", "stopped");
        toast("The code was stopped.", "wait");
        return;
      }
      if (output.isEmpty()) fill(result);
      else output.end("failed", "ended without a result");
      more.reveal(error.field);
      throw error;
    } finally {
      halt.disabled = true;
      stop = null;
    }
  };
  const element = form(
    "Code",
    [
      h("div", { class: "form-row" }, field("Language", language, { name: "language" })),
      field("Code", code, { name: "source", hint: KEYS_HINT }),
      h("div", { class: "form-row" }, ofPython, rich.element),
      more.element,
    ],
    { action: "Run", submit },
  );
  // Faults in folded fields have to be seen, and this comes before the form looks for them.
  element.addEventListener("submit", () => more.reveal(), { capture: true });
  element.querySelector(".form-actions").append(halt);
  suit();
  return element;
}

const SESSION_HINT = "Variables are kept under this name for the next step. Left empty: nothing is kept.";

/** Limits, what the code reads, and where it runs; left empty, the server's own defaults hold. */
function limits() {
  const number = (name, hint) => input({ name, type: "number", min: "1", placeholder: hint });
  const all = {
    timeout_ms: number("timeout_ms", "300"),
    memory_bytes_max: number("memory_bytes_max", "256"),
    fuel_max: number("fuel_max", "1000000000000"),
    output_bytes_max: number("output_bytes_max", "1024"),
    context: area("", { name: "context", class: "code", rows: "2" }),
    stdin: area("", { name: "stdin", class: "code", rows: "2" }),
    runtime: select(
      [
        ["wasm", "WebAssembly"],
        ["native", "Python of the server's machine"],
      ],
      "wasm",
      { name: "runtime" },
    ),
    venv: input({ name: "venv", placeholder: "python3 of the server's PATH" }),
  };
  const fuel = field("Fuel, instructions", all.fuel_max, { name: "fuel_max" });
  const venv = field("Virtual environment", all.venv, {
    name: "venv",
    hint: "An absolute path on the server's machine.",
  });
  const native = h("div", { class: "form-row" }, field("Runs in", all.runtime, { name: "runtime" }), venv);
  const isNative = () => may("admin") && !native.hidden && all.runtime.value === "native";
  const suit = (language) => {
    native.hidden = language !== "python" || !may("admin");
    fuel.hidden = isNative();
    venv.hidden = !isNative();
  };
  all.runtime.addEventListener("change", () => suit("python"));
  const element = h(
    "details",
    { class: "fold" },
    h("summary", null, "Limits and input"),
    h(
      "div",
      { class: "form" },
      h(
        "div",
        { class: "form-row" },
        field("Time, seconds", all.timeout_ms, { name: "timeout_ms" }),
        field("Memory, MiB", all.memory_bytes_max, { name: "memory_bytes_max" }),
        fuel,
        field("Output kept, KiB", all.output_bytes_max, { name: "output_bytes_max" }),
      ),
      native,
      field("CONTEXT, a JSON object", all.context, { name: "context" }),
      field("Standard input", all.stdin, { name: "stdin" }),
    ),
  );
  const values = () => {
    const read = Object.fromEntries(Object.entries(all).map(([name, control]) => [name, control.value]));
    return { ...read, runtime: isNative() ? "native" : "wasm" };
  };
  const reveal = (name) => {
    if (all[name] || Object.values(all).some((control) => control.validity && !control.validity.valid))
      element.open = true;
  };
  return { element, suit, values, reveal };
}
