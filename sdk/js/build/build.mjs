// Makes a Longhaul plugin of JavaScript or TypeScript: bundles it into one module with esbuild, and
// that into a component with componentize-qjs.
//
//     node build.mjs --wit DIR --world NAME --entry FILE --output FILE [--path DIR]...
//
// It stands beside the `node_modules` that holds the two, and installs nothing. `--path` is a folder to import from: one
// with a package.json is that package, another is searched for modules. `acorn`, `sucrase` and `core-js-pure` can be
// imported, too. Types are removed and not checked. What goes wrong is told on standard error, and the exit code is 1.

import { builtinModules } from "node:module";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { componentize } from "componentize-qjs";
import { build, transform } from "esbuild";

import { renameHttp, renameHttpIn, withRealNames } from "./http.mjs";
import { withStackLimit } from "./stack.mjs";

/** Modules that the host serves: those of the contract, which stay imports. */
const HOST_MODULES = ["longhaul:*", "wasi:*"];

/** The newest language that QuickJS has in full; what is newer is rewritten. */
const LANGUAGE = "es2023";

/** Advice for imports of Node's modules. */
const INSTEAD = {
  assert: "throw `Failed` of longhaul-sdk",
  buffer: "use `Uint8Array`",
  child_process: "an agent calls a tool such as `builtin:shell`; a plugin starts no programs",
  crypto: "use `Math.random`, which follows the journal; for digests, a package in plain JavaScript",
  events: "use a plain list of functions, or a package in plain JavaScript",
  fs: "use `wasi:filesystem/preopens@0.2.12` in a tool or a memory backend, below a directory that [asks] names in plugin.toml (sdk/js/examples/tool-file shows it); what is to last goes into `keyvalue`",
  http: "use `wasi:http/outgoing-handler@0.2.12` in a tool or a memory backend (plugins/javascript/http.js shows it); an agent calls a tool such as `http-fetch`",
  os: "a plugin sees no machine",
  path: "use `split`, `join` and template strings: paths of granted directories are relative, with `/`",
  process: "use the settings of longhaul.toml, which a tool finds in `context.settings`, and `log`",
  stream: "use arrays: nothing in a plugin is async",
  timers: "use `sleep` of longhaul-sdk",
  url: "use a package in plain JavaScript",
  util: "use `JSON.stringify` and template strings",
  worker_threads: "a plugin has one thread; `tools.callMany` does calls beside each other",
};
for (const [name, as] of [["fs/promises", "fs"], ["https", "http"], ["http2", "http"], ["net", "http"], ["dns", "http"], ["tls", "http"], ["path/posix", "path"], ["timers/promises", "timers"]]) {
  INSTEAD[name] = INSTEAD[as];
}

/** Modules of Node are not there: says what is, unless a package of that name is installed. */
const NO_NODE = {
  name: "no-node",
  setup(build) {
    build.onResolve({ filter: /^[^./]/ }, async ({ path, pluginData, ...from }) => {
      const name = path.replace(/^node:/, "").replace(/\/$/, "");
      if (pluginData === NO_NODE || !builtinModules.includes(name)) return undefined;
      if (!path.startsWith("node:")) {
        const { importer, namespace, resolveDir, kind } = from;
        const found = await build.resolve(path, { importer, namespace, resolveDir, kind, pluginData: NO_NODE });
        if (found.errors.length === 0) return found;
      }
      const instead = INSTEAD[name] ?? "use a package in plain JavaScript, or a tool that an agent calls";
      return { errors: [{ text: `\`${path}\` is a module of Node, which a plugin does not have; ${instead}` }] };
    });
  },
};

/** The engine keeps the text of each function in the image, so the tools' own packages go in without what people read. */
const SMALL_PACKAGES = {
  name: "small-packages",
  setup(build) {
    const own = fileURLToPath(new URL("node_modules/", import.meta.url));
    build.onLoad({ filter: /\.m?js$/ }, async ({ path }) => {
      if (!path.startsWith(own)) return undefined;
      const { code } = await transform(readFileSync(path, "utf8"), { minify: true, target: LANGUAGE, charset: "utf8" });
      return { contents: code, loader: "js" };
    });
  },
};

/** `import text from "./FILE?text"`: the bundle of a module as text, for code that is evaluated only when it is needed. */
const AS_TEXT = {
  name: "as-text",
  setup(outer) {
    outer.onResolve({ filter: /\?text$/ }, ({ path, resolveDir }) => ({
      path: resolve(resolveDir, path.slice(0, -"?text".length)),
      namespace: AS_TEXT.name,
    }));
    outer.onLoad({ filter: /.*/, namespace: AS_TEXT.name }, async ({ path }) => {
      const { nodePaths, platform, mainFields, target, charset } = outer.initialOptions;
      const result = await build({
        entryPoints: [path],
        bundle: true,
        write: false,
        minify: true,
        format: "iife",
        globalName: "made",
        nodePaths,
        platform,
        mainFields,
        target,
        charset,
        plugins: [NO_NODE],
      });
      return { contents: result.outputFiles[0].text, loader: "text", watchFiles: [path] };
    });
  },
};

const scratch = mkdtempSync(join(tmpdir(), "longhaul-js-"));
try {
  const options = readOptions();
  const jsSource = await bundle(options);
  const component = await makeComponent(options, jsSource);
  writeFileSync(options.output, component);
} catch (error) {
  // esbuild has shown its own errors already.
  if (!error.errors) console.error(error.message.replace(/^[:\s]+/, ""));
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function readOptions() {
  const text = { type: "string" };
  const { values } = parseArgs({
    options: { wit: text, world: text, entry: text, output: text, path: { type: "string", multiple: true } },
  });
  for (const name of ["wit", "world", "entry", "output"]) {
    if (values[name] === undefined) throw new Error(`\`--${name}\` is missing`);
  }
  return { ...values, paths: (values.path ?? []).map((path) => resolve(path)) };
}

async function bundle({ entry, world, paths }) {
  const packages = join(scratch, "node_modules");
  for (const path of paths.filter((path) => isFile(join(path, "package.json")))) {
    const link = join(packages, packageName(path));
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(path, link, "junction");
  }
  const result = await build({
    entryPoints: [resolve(entry)],
    absWorkingDir: dirname(resolve(entry)),
    bundle: true,
    write: false,
    metafile: true,
    outfile: "app.js",
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    target: LANGUAGE,
    charset: "utf8",
    external: HOST_MODULES,
    nodePaths: [packages, ...paths, fileURLToPath(new URL("node_modules", import.meta.url))],
    logLevel: "warning",
    plugins: [NO_NODE, AS_TEXT, SMALL_PACKAGES],
  });
  const role = world.replace(/-plugin$/, "");
  const [{ exports }] = Object.values(result.metafile.outputs);
  if (!exports.includes(role)) {
    const found = exports.length > 0 ? exports.join(", ") : "nothing";
    throw new Error(`\`${entry}\` exports ${found}; the world \`${world}\` asks for \`export const ${role} = ...\``);
  }
  return result.outputFiles[0].text;
}

async function makeComponent({ wit, world }, jsSource) {
  const witPath = join(scratch, "wit");
  cpSync(wit, witPath, { recursive: true });
  renameHttp(witPath);
  const options = { witPath, world, jsSource: renameHttpIn(jsSource), sync: true };
  const { component } = await componentize(options);
  return withRealNames(withStackLimit(component));
}

function packageName(path) {
  return JSON.parse(readFileSync(join(path, "package.json"), "utf8")).name;
}

function isFile(path) {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
