// The plugin's log. What is over the host's bound is dropped and counted. `console` writes here, too.

import host from "#host/log";

import { show } from "./show.js";

const write = (level) => (text) => host.write(level, show(text).toWellFormed());

export const trace = write("trace");
export const debug = write("debug");
export const info = write("info");
export const warn = write("warn");
export const error = write("error");
