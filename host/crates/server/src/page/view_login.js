// The login: one field for a token. It says clearly when a token is wrong, and why somebody was sent out.
//
// The token is tried before it is kept, and it is never shown again.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import * as session from "./session.js";
import { field, form, input } from "./ui.js";

/** Draws it. `done(token, who)` is called with a token that the server took. */
export function login(place, why, done) {
  const token = input({
    type: "password",
    name: "token",
    required: true,
    autocomplete: "current-password",
    autocapitalize: "off",
  });
  const submit = async () => {
    const own = token.value.trim();
    if (!/^[\x21-\x7e]{1,512}$/.test(own))
      throw Object.assign(new Error("A token is one word that starts with lh_. Paste it whole."), { field: "token" });
    session.begin(own, null);
    try {
      done(own, await api.whoami());
    } catch (error) {
      session.begin(null, null);
      if (error.status === 401) {
        token.select();
        throw Object.assign(
          new Error("This token is wrong, expired or removed. Make a new one with the command below."),
          { field: "token" },
        );
      }
      throw error;
    }
  };
  fill(
    place,
    h(
      "main",
      { id: "main", class: "login", tabindex: "-1" },
      h("h1", null, "Longhaul"),
      why && h("p", { class: "login-why", role: "alert" }, why),
      form(
        "Log in",
        [
          h("input", { type: "text", autocomplete: "username", hidden: true }),
          field("Token", token, { name: "token", hint: "Kept in this tab alone, until it is closed." }),
        ],
        { action: "Log in", submit },
      ),
      h("p", { class: "hint" }, "No token yet? On the machine that Longhaul runs on:"),
      h("pre", { class: "plain code" }, "longhaul token add my-page --scope run --scope approve"),
    ),
  );
  token.focus();
}
