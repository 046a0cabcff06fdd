// `URL` and `URLSearchParams`, from core-js, in the form that scripts know from Node.
//
// Names of hosts are written in Punycode and lower case, without the tables of Unicode for look-alikes.

import text from "./lazy/address.js?text";

import { inspectable } from "./inspect.js";
import { evaluateOwn } from "./stack.js";

const FIELDS = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "searchParams", "hash"];

let module;

/** `require("url")`, made when it is first asked for: most scripts have no use for it. */
export function url() {
  if (module === undefined) {
    // Empty while it is made, since what makes it looks for the globals first.
    module = {};
    module = make();
  }
  return module;
}

function make() {
  const found = evaluateOwn("url", text);
  const URLSearchParams = named(found.URLSearchParams, "URLSearchParams");
  const URL = named(found.URL, "URL");
  inspectable(URL.prototype, showUrl);
  inspectable(URLSearchParams.prototype, (params, inspect) => {
    const pairs = [...params].map(([name, value]) => `${inspect(name)} => ${inspect(value)}`);
    return pairs.length === 0 ? "URLSearchParams {}" : `URLSearchParams { ${pairs.join(", ")} }`;
  });
  return {
    URL,
    URLSearchParams,
    fileURLToPath: (address) => decodeURIComponent(new URL(address).pathname),
    pathToFileURL: (path) => new URL(`file://${encodeURI(path).replaceAll("?", "%3F").replaceAll("#", "%23")}`),
    format: (address) => String(address),
  };
}

function showUrl(url, inspect) {
  const shown = Object.fromEntries(FIELDS.map((name) => [name, url[name]]));
  return `URL ${inspect(shown)}`;
}

/** What is no address is an error with a code, as in Node. */
function named(Kind, name) {
  const found = new Proxy(Kind, {
    construct(target, args, newTarget) {
      try {
        return Reflect.construct(target, args, newTarget);
      } catch (error) {
        if (name !== "URL" || !(error instanceof TypeError)) throw error;
        throw Object.assign(new TypeError("Invalid URL"), { code: "ERR_INVALID_URL", input: String(args[0]) });
      }
    },
  });
  Object.defineProperty(Kind, "name", { value: name, configurable: true });
  Object.defineProperty(Kind.prototype, "constructor", { value: found, writable: true, configurable: true });
  return found;
}
