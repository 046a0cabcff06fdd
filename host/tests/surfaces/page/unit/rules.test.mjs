// Rules of the page that a machine can check: one way to the document, nothing from elsewhere, tokens in one place.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";

const folder = new URL(".", process.env.PAGE_MODULES);
const names = readdirSync(folder).filter((name) => /\.(js|css|html|svg)$/.test(name));
const files = new Map(names.map((name) => [name, readFileSync(new URL(name, folder), "utf8")]));
const scripts = [...files].filter(([name]) => name.endsWith(".js"));
const code = (text) => text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");

const session = await import(new URL("session.js", folder));
const { isOurs } = await import(new URL("dom.js", folder));
const { isCorrection } = await import(new URL("part_approvals.js", folder));

test("there is no way for text to become HTML or code", () => {
  const ways =
    /innerHTML|outerHTML|insertAdjacentHTML|setHTML|parseHTMLUnsafe|createContextualFragment|DOMParser|document\.write|\beval\b|new Function|javascript:|importScripts|\.srcdoc|setTimeout\(\s*["'`]/;
  assert.ok(scripts.length > 20);
  for (const [name, text] of scripts) assert.doesNotMatch(code(text), ways, name);
});

test("only the one helper makes elements and sets attributes", () => {
  for (const [name, text] of scripts) {
    if (name === "dom.js") continue;
    assert.doesNotMatch(
      code(text),
      /createElement|createTextNode|setAttributeNS|\.style\b|cssText|\.href\s*=|\.src\s*=/,
      name,
    );
    for (const [, attribute] of code(text).matchAll(/setAttribute\(\s*"([^"]+)"/g))
      assert.match(attribute, /^(aria-|data-|x$|y$|width$|height$)/, `${name}: ${attribute}`);
  }
});

test("nothing is asked of another host", () => {
  for (const [name, text] of files) {
    const hosts = [...text.matchAll(/(?:https?:)?\/\/[a-z0-9.-]+\.[a-z]+[^\s"'`)]*/gi)]
      .map(([address]) => address)
      .filter((address) => address !== "http://www.w3.org/2000/svg");
    assert.deepEqual(hosts, [], name);
    assert.doesNotMatch(text, /@import|url\(/, name);
  }
});

test("the token is handled in one file and sent by two, as a header", () => {
  for (const [name, text] of scripts) {
    if (name !== "session.js") assert.doesNotMatch(code(text), /sessionStorage/, name);
    if (/session\.bearer\(\)/.test(code(text))) assert.ok(["api.js", "stream.js", "app.js"].includes(name), name);
    assert.doesNotMatch(code(text), /document\.cookie|[?&]token=/, name);
  }
});

test("the frame has no script, style or handler in it", () => {
  const html = files.get("index.html");
  assert.doesNotMatch(html, /<style|style=|\son[a-z]+=|<script(?![^>]*\ssrc=)/i);
  for (const [, address] of html.matchAll(/(?:src|href)="([^"]+)"/g)) assert.match(address, /^[/#]/, address);
});

test("every file says what it is for, and is short enough to be read", () => {
  for (const [name, text] of scripts) {
    assert.match(text, /^\/\/ \S.{20,}/, name);
    assert.ok(text.split("\n").length < 500, name);
  }
});

test("every module that is named is there", () => {
  for (const [name, text] of scripts) {
    for (const [, other] of text.matchAll(/(?:from|import\()\s*"\.\/([^"]+)"/g))
      assert.ok(files.has(other), `${name} wants ${other}`);
  }
});

test("what a module imports it uses", () => {
  for (const [name, text] of scripts) {
    const body = text.replace(/^\s*(\/\/|\/?\*).*$/gm, "").replace(/^import\s[\s\S]*?;$/gm, "");
    for (const [, list] of text.matchAll(/^import\s*\{([^}]+)\}/gm))
      for (const one of list
        .split(",")
        .map((part) => part.trim())
        .filter(Boolean))
        assert.match(body, new RegExp(`\\b${one}\\b`), `${name} imports ${one} for nothing`);
    for (const [, one] of text.matchAll(/^import\s*\*\s*as\s+(\w+)/gm))
      assert.match(body, new RegExp(`\\b${one}\\.`), `${name} imports ${one} for nothing`);
  }
});

test("links lead to places of the page alone", () => {
  for (const address of ["#/runs", "blob:http://x/1"]) assert.ok(isOurs(address), address);
  for (const address of [
    "https://x",
    "javascript:alert(1)",
    "//x",
    "/api",
    "data:text/html,x",
    "",
    " #/runs",
    "JaVaScRiPt:x",
  ])
    assert.equal(isOurs(address), false, address);
});

test("a scope holds what the server says that it holds", () => {
  const cases = [
    ["read", ["read"], true],
    ["run", ["read"], false],
    ["read", ["run"], true],
    ["approve", ["run"], false],
    ["approve", ["approve"], true],
    ["admin", ["run", "approve"], false],
    ["approve", ["admin"], true],
    ["read", [], false],
  ];
  for (const [scope, own, expected] of cases) assert.equal(session.may(scope, own), expected, `${scope} of ${own}`);
});

test("a correction that would be read as a decision is none", () => {
  for (const text of ["y", " YES ", "n", "No", "a", "allow", "n because", "", "  "])
    assert.equal(isCorrection(text), false, text);
  for (const text of ["use the other file", "yes, but smaller", "never do this", "y2k"])
    assert.equal(isCorrection(text), true, text);
});
