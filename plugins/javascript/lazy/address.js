// A part that is kept as text until a script asks for it: addresses.

export { default as URL } from "core-js-pure/actual/url";
export { default as URLSearchParams } from "core-js-pure/actual/url-search-params";
