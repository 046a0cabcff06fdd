// Holds the scripted host that stands in for the real one outside a component.

let host;

/** Puts a scripted host in place: an object of interfaces, each with its functions in camelCase. */
export function install(interfaces) {
  host = interfaces;
}

/** The interface `name`, looked up anew at each use, so that each test can have its own. */
export function current(name) {
  return new Proxy(
    {},
    {
      get(_, key) {
        if (host === undefined) {
          throw new Error(`there is no host to ask for \`${name}\`; call \`fakeHost\` of longhaul-sdk/testing first`);
        }
        return host[name][key];
      },
    },
  );
}
