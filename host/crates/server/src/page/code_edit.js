// Changes of a text by the keys of an editor of code. Pure: it gets a text with a selection, and gives the same.
//
// It knows no language: a step is two spaces, or four where the text is indented by four already.

/** How far the text is indented by one step. */
export function stepOf(text) {
  const first = /^( +)\S/m.exec(text)?.[1].length ?? 0;
  return first === 2 || first === 0 ? "  " : "    ";
}

/**
 * Tab, or Shift+Tab with `back`: the lines of a selection over several are moved, and otherwise spaces are put in up to the
 * next step. Gives `{from, to, text, start, end}`: the piece that is replaced, by which text, and the selection after it.
 */
export function indented(text, start, end, back = false, step = stepOf(text)) {
  const isOneLine = !text.slice(start, end).includes("\n");
  const from = text.lastIndexOf("\n", start - 1) + 1;
  if (isOneLine && !back) {
    const missing = step.length - ((start - from) % step.length);
    return { from: start, to: end, text: " ".repeat(missing), start: start + missing, end: start + missing };
  }
  // A selection that ends before the first sign of a line does not hold that line.
  const last = end > start && text[end - 1] === "\n" ? end - 1 : end;
  const to = last + (text.slice(last).indexOf("\n") + 1 || text.length - last + 1) - 1;
  const lines = text.slice(from, to).split("\n");
  const moved = lines.map((line) => (back ? outdented(line, step) : line === "" ? line : step + line));
  const first = moved[0].length - lines[0].length;
  const all = moved.join("\n").length - (to - from);
  return { from, to, text: moved.join("\n"), start: Math.max(from, start + first), end: Math.max(from, end + all) };
}

function outdented(line, step) {
  if (line.startsWith("\t")) return line.slice(1);
  const spaces = /^ */.exec(line)[0].length;
  return line.slice(Math.min(spaces, step.length));
}

/** Enter: the new line begins as far to the right as this one, and a step further behind a sign that opens a block. */
export function broken(text, start, end, step = stepOf(text)) {
  const from = text.lastIndexOf("\n", start - 1) + 1;
  const before = text.slice(from, start);
  const own = /^[ \t]*/.exec(before)[0];
  const more = /[:{[(]\s*$/.test(before) ? step : "";
  const line = `\n${own}${more}`;
  return { from: start, to: end, text: line, start: start + line.length, end: start + line.length };
}
