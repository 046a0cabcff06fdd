// The outcome of code that was run: its results, its output, its end, and its use of resources.
//
// Of an error its last line comes first. Nothing of it is read as markup.

import { h } from "./dom.js";
import { bytes, count, duration, plural } from "./format.js";
import { errorBlock } from "./part_error.js";
import { outputList } from "./part_outputs.js";
import { facts, mono, muted, plain, section, status } from "./ui.js";

/** Variables of a session that are named. */
const VARIABLES_SHOWN = 50;

/** Draws a report. */
export function jobReport(report) {
  const part = (title, ...inner) => h("div", { class: "stack-small" }, h("h3", null, title), inner);
  const hasPrinted = report.stdout !== "" || report.stderr !== "" || report.outputs.length > 0;
  return section(
    "Result",
    { id: "s-result" },
    h(
      "p",
      { class: "head-line" },
      status(report.success ? "completed" : "failed", ending(report)),
      report.truncated && muted("Some of the output was dropped; raise “Output kept”."),
    ),
    // An exit code alone says less than what the code printed, and is told above.
    report.error_message &&
      (report.limit || report.stderr === "") &&
      errorBlock(report.error_message, { label: "Why it failed", name: "result" }),
    report.outputs.length > 0 && part("Results", outputList(report.outputs)),
    report.stdout !== "" &&
      part("Printed", plain(report.stdout, { code: true, exact: true, label: "Standard output" })),
    report.stderr !== "" &&
      part(
        "Printed as errors",
        report.success
          ? plain(report.stderr, { code: true, exact: true, label: "Standard error" })
          : errorBlock(report.stderr, { label: "Standard error", name: "printed" }),
      ),
    !hasPrinted && report.success && muted("It printed nothing."),
    facts([
      ["Exit code", report.exit_code === null ? "none, it was stopped" : String(report.exit_code)],
      ["Took", duration(report.duration_seconds * 1000)],
      ["Fuel", report.fuel_used > 0 ? count(report.fuel_used) : null],
      ["Peak memory", report.memory_bytes_peak > 0 ? bytes(report.memory_bytes_peak) : null],
      ["Limit", report.limit && mono(report.limit)],
      ["Sandbox", report.sandbox],
    ]),
    report.session && part(`Session ${report.session.name}`, sessionFacts(report.session)),
  );
}

/** How it ended, in a few words. */
export function ending({ success, exit_code: code, limit }) {
  if (success) return "succeeded";
  if (limit) return `stopped by ${limit}`;
  return code === null ? "stopped" : `failed with exit code ${code}`;
}

function sessionFacts(session) {
  return [
    facts([
      ["Steps", String(session.steps)],
      ["Kept", bytes(session.bytes)],
      ["Variables", variables(session.variables)],
    ]),
    session.unkept.length > 0 &&
      h(
        "ul",
        { class: "dots" },
        session.unkept.map((one) => h("li", null, `Not kept: ${one.names.join(", ")}; ${one.reason}`)),
      ),
  ];
}

/** Names of variables, the first of them. */
export function variables(names) {
  if (names.length === 0) return "none";
  const rest = names.length - VARIABLES_SHOWN;
  const shown = names.slice(0, VARIABLES_SHOWN).join(", ");
  return rest > 0 ? `${shown} and ${plural(rest, "more", "more")}` : shown;
}
