// `URL` and `URLSearchParams`, from core-js, in the form that scripts know from Node.
//
// Names of hosts are written in Punycode and lower case, without the tables of Unicode for look-alikes.

import CoreParams from "core-js-pure/actual/url-search-params";
import CoreUrl from "core-js-pure/actual/url";

import { inspectable } from "./inspect.js";

const FIELDS = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "searchParams", "hash"];

export const URLSearchParams = named(CoreParams, "URLSearchParams");
export const URL = named(CoreUrl, "URL");

inspectable(URL.prototype, (url, inspect) => {
  class URL {}
  return inspect(Object.assign(new URL(), Object.fromEntries(FIELDS.map((name) => [name, url[name]]))));
});

inspectable(URLSearchParams.prototype, (params, inspect) => {
  const pairs = [...params].map(([name, value]) => `${inspect(name)} => ${inspect(value)}`);
  return pairs.length === 0 ? "URLSearchParams {}" : `URLSearchParams { ${pairs.join(", ")} }`;
});

/** `require("url")`. */
export const url = {
  URL,
  URLSearchParams,
  fileURLToPath: (address) => decodeURIComponent(new URL(address).pathname),
  pathToFileURL: (path) => new URL(`file://${encodeURI(path).replaceAll("?", "%3F").replaceAll("#", "%23")}`),
  format: (address) => String(address),
};

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
