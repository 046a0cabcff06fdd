// HTTP for plugins in JavaScript.
//
// componentize-qjs runs a module once when it builds, against a WASI of its own without HTTP: what it puts in place of
// `wasi:http` has other streams than its `wasi:io`, and cannot be linked. So HTTP and what it stands on are built under
// another name, where all of it is put in place alike, and get their own name back in the component. Their version is
// another one than that of the other imports, since no name may stand there twice; a host takes both for the same.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { rewriteSections, SECTION } from "./sections.mjs";

/** Of one length, so that no length in the component changes. */
const REAL = "wasi:";
const BUILT = "wasj:";

const VERSION = "@0.2.12";
const BUILT_VERSION = "@0.2.11";

/** The packages that HTTP stands on, and itself. */
const PACKAGES = ["http", "io", "clocks"];

/** Makes a copy of the contract one that the tool can build with. */
export function renameHttp(witPath) {
  const dependencies = join(witPath, "deps");
  for (const name of PACKAGES) {
    const text = readFileSync(join(dependencies, `${name}.wit`), "utf8");
    // The worlds import more than the interfaces need.
    const interfaces = text.replace(/(?:^(?:\/\/\/|@).*\n)*^world [^]*?^}\n/gm, "");
    writeFileSync(join(dependencies, `built-${name}.wit`), renamed(interfaces));
  }
  for (const file of readdirSync(witPath).filter((file) => file.endsWith(".wit"))) {
    const path = join(witPath, file);
    writeFileSync(path, renameHttpIn(readFileSync(path, "utf8")));
  }
}

/** The imports of HTTP in a source, under the name that they are built with. */
export function renameHttpIn(source) {
  return source.replace(/wasi:http\/[\w-]+@[\d.]+/g, renamed);
}

/** The component with the real names; what the engine's image holds is no name of an import. */
export function withRealNames(component) {
  return rewriteSections(component, (id, body) => {
    if (id === SECTION.component) return withRealNames(body);
    return id === SECTION.coreModule ? moduleWithRealNames(body) : realName(body);
  });
}

function moduleWithRealNames(module) {
  return rewriteSections(module, (id, body) => ([SECTION.imports, SECTION.exports].includes(id) ? realName(body) : body));
}

function realName(bytes) {
  const copy = Buffer.from(bytes);
  for (let at = copy.indexOf(BUILT); at >= 0; at = copy.indexOf(BUILT, at + 1)) copy.write(REAL, at);
  return copy;
}

function renamed(text) {
  return text.replaceAll(REAL, BUILT).replaceAll(VERSION, BUILT_VERSION);
}
