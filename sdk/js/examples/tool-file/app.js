// The tool `reader`: gives the first line of a file in the directory that it was granted.
//
// A path is relative to that directory. The host refuses one that leads out of it, also through a link.

import preopens from "wasi:filesystem/preopens@0.2.12";
import { defineTool, Failed } from "longhaul-sdk";

/** Longest line that it gives, in bytes. */
const LINE_BYTES_MAX = 4096;

export const tool = defineTool({
  id: "reader",
  description: "Reads files.",
  functions: {
    first_line: {
      description: "Gives the first line of a file.",
      effect: "read-only",
      parameters: {
        type: "object",
        properties: { path: { type: "string", minLength: 1, maxLength: 1000 } },
        required: ["path"],
        additionalProperties: false,
      },
      call: ({ path }) => ({ line: text(open(path).read(LINE_BYTES_MAX, 0)[0]).split("\n")[0] }),
    },
  },
});

/** The file, opened without following a link. Each granted directory has the name that `guest` gives it. */
function open(path) {
  const granted = preopens.getDirectories().find(([, guest]) => guest === "/work");
  if (granted === undefined) throw new Failed("there is no directory /work; grant one in longhaul.toml");
  try {
    return granted[0].openAt({}, path, {}, { read: true });
  } catch (error) {
    throw new Failed(`cannot open \`${path}\`: ${error.payload ?? error}`);
  }
}

/** UTF-8: the engine has no TextDecoder. */
function text(bytes) {
  return decodeURIComponent(escape(atob(bytes.toBase64())));
}
