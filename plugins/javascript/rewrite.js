// Rewrites a source where this engine needs it, by inserting text and taking some out.
//
// What is `async` becomes generators that `jobs.js` drives, `import` and `export` become calls, and with
// a timeout each loop and function looks at the clock. No line feed is added or removed, so lines stay
// what they were. Source that needs nothing of it is not even parsed.

import { parse } from "acorn";
import { mayNestDeeper } from "./nesting.js";

/** The name that rewritten source knows this plugin's helpers by. */
export const HELPERS = "__longhaul";

const WORDS = ["async", "await", "import", "export"];
const NEEDS_PARSER = /\b(async|await|import|export)\b/;
/** The engine's own parser does not look at its stack at each level; the stack of the host has room for twice as many. */
const NESTING_MAX = 1_000;

/**
 * The text to evaluate. `isTimed`: look at the clock. `isMain`: may await at the top. `isRich`: find the last expression.
 *
 * With `hasResult` the source ends in an expression. Its value is that of the evaluation, and where the text `isAsync` the
 * `value` of what its generator returns.
 *
 * Throws a SyntaxError with `at`, the line and column, where the source cannot be read.
 */
export function rewrite(source, { isTimed, isMain, isRich = false }) {
  const text = withoutHead(source);
  // Most sources have none of the words, which is seen sooner than what an expression finds.
  const needsParser = isTimed || (WORDS.some((word) => text.includes(word)) && NEEDS_PARSER.test(text));
  checkNesting(text, NESTING_MAX);
  if (!needsParser) return { text, isModule: false, isAsync: false, hasResult: isRich && endsInExpression(text) };
  const { tree, isModule } = parseSource(text, isMain);
  return new Rewriter(text, tree, { isTimed, isModule, isRich }).rewritten();
}

/** True when a script ends in an expression. The engine tells the fault of one that cannot be read. */
function endsInExpression(text) {
  try {
    return lastExpression(parse(text, { ecmaVersion: "latest", sourceType: "script", allowHashBang: true })) !== undefined;
  } catch {
    return false;
  }
}

/** The last statement of a source, if it is an expression. */
function lastExpression(tree) {
  const last = tree.body.findLast((statement) => statement.type !== "EmptyStatement");
  return last?.type === "ExpressionStatement" ? last : undefined;
}

/** With as many characters: what marks the encoding, or names an interpreter, is no JavaScript. */
function withoutHead(source) {
  if (source.startsWith("\ufeff")) return ` ${source.slice(1)}`;
  return source.startsWith("#!") ? `//${source.slice(2)}` : source;
}

/** Deeper source would exhaust the stack, which ends the instance without a word. */
function checkNesting(text, max) {
  if (!mayNestDeeper(text, ["(", "[", "{"], max)) return;
  let depth = 0;
  for (const [mark] of text.matchAll(/[([{]|[)\]}]|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[^]*?\*\//g)) {
    if (mark === "(" || mark === "[" || mark === "{") depth += 1;
    else if (mark === ")" || mark === "]" || mark === "}") depth -= 1;
    if (depth > max) throw new SyntaxError(`brackets are nested deeper than ${max} levels`);
  }
}

function parseSource(text, isMain) {
  const isModule = /^\s*(import\b(?!\s*[(.])|export\b)/m.test(text);
  const attempts = isModule ? ["module", "script"] : ["script", "module"];
  let failure;
  for (const sourceType of attempts) {
    try {
      const options = { ecmaVersion: "latest", sourceType, allowAwaitOutsideFunction: isMain, allowHashBang: true };
      return { tree: parse(text, options), isModule: sourceType === "module" };
    } catch (error) {
      if (!(error instanceof SyntaxError) || error.loc === undefined) throw error;
      failure ??= error;
    }
  }
  const error = new SyntaxError(failure.message.replace(/ \(\d+:\d+\)$/, ""));
  error.at = { line: failure.loc.line, column: failure.loc.column + 1 };
  throw error;
}

class Rewriter {
  #text;
  #tree;
  #isTimed;
  #isModule;
  #isRich;
  /** Replacements of `start` to `end`. `rank` is below 0 for what closes something. */
  #edits = [];
  #exports = [];
  #imports = 0;
  #loops = 0;
  #isAsync = false;
  #head = "";

  constructor(text, tree, { isTimed, isModule, isRich }) {
    this.#text = text;
    this.#tree = tree;
    this.#isTimed = isTimed;
    this.#isModule = isModule;
    this.#isRich = isRich;
  }

  rewritten() {
    this.#walk();
    const last = this.#isRich ? lastExpression(this.#tree) : undefined;
    if (last && this.#isAsync) this.#return(last);
    const exported = this.#exports.map(([name, value]) => `${JSON.stringify(name)}: () => ${value}`);
    const head = this.#isModule ? `"use strict"; ${HELPERS}.exports(exports, { ${exported.join(", ")} }); ${this.#head}` : "";
    return { text: head + this.#apply(), isModule: this.#isModule, isAsync: this.#isAsync, hasResult: last !== undefined };
  }

  /** Has the generator of a source return its last expression. In an object, as a promise would be waited for. */
  #return(last) {
    const end = this.#text[last.end - 1] === ";" ? last.end - 1 : last.end;
    // Made first, as outer edits are.
    this.#edits.unshift(
      { start: last.start, end: last.start, insert: "return { value: (", rank: 0 },
      { start: end, end, insert: ") }", rank: -1 },
    );
  }

  #apply() {
    let text = "";
    let at = 0;
    const order = this.#edits.map((edit, made) => ({ ...edit, made }));
    // At one place, what closes an inner node goes before what closes an outer one, and both before
    // what opens; outer nodes are visited first.
    const byMaking = (one, other) => (one.rank < 0 ? other.made - one.made : one.made - other.made);
    order.sort((one, other) => one.start - other.start || one.end - other.end || one.rank - other.rank || byMaking(one, other));
    for (const { start, end, insert } of order) {
      if (start < at) continue;
      const lineFeeds = this.#text.slice(start, end).replace(/[^\n]/g, "");
      text += this.#text.slice(at, start) + insert + lineFeeds;
      at = end;
    }
    return text + this.#text.slice(at);
  }

  #open(at, insert) {
    this.#edits.push({ start: at, end: at, insert, rank: 0 });
  }

  #close(at, insert) {
    this.#edits.push({ start: at, end: at, insert, rank: -1 });
  }

  #replace(start, end, insert) {
    this.#edits.push({ start, end, insert, rank: 0 });
  }

  /** Visits every node, outer ones first. Not by recursion: the engine's stack is small. */
  #walk() {
    const stack = [{ node: this.#tree, parent: null, owner: null }];
    while (stack.length > 0) {
      const place = stack.pop();
      this.#visit(place);
      const owner = isFunction(place.node) ? place : place.owner;
      const children = [];
      for (const key of Object.keys(place.node)) {
        const value = place.node[key];
        for (const node of Array.isArray(value) ? value : [value]) {
          if (typeof node?.type === "string") children.push({ node, parent: place, owner });
        }
      }
      stack.push(...children.reverse());
    }
  }

  #visit(place) {
    const { node, owner } = place;
    switch (node.type) {
      case "FunctionDeclaration":
      case "FunctionExpression":
      case "ArrowFunctionExpression":
        return this.#function(place);
      case "AwaitExpression":
        return this.#await(place);
      case "YieldExpression":
        if (node.delegate && owner?.node.async) {
          this.#open(node.argument.start, `${HELPERS}.delegate(`);
          this.#close(node.argument.end, ")");
        }
        return undefined;
      case "ForOfStatement":
        if (node.await) this.#forAwait(place);
        return this.#loopBody(node);
      case "ForStatement":
      case "ForInStatement":
      case "WhileStatement":
      case "DoWhileStatement":
        return this.#loopBody(node);
      case "Super":
        return this.#super(place);
      case "ImportExpression":
        return this.#replace(node.start, node.start + "import".length, `${HELPERS}.importLater.bind(null, require)`);
      case "MetaProperty":
        if (node.meta.name === "import") this.#replace(node.start, node.end, `${HELPERS}.meta(module)`);
        return undefined;
      case "ImportDeclaration":
        return this.#import(node);
      case "ExportNamedDeclaration":
      case "ExportDefaultDeclaration":
      case "ExportAllDeclaration":
        return this.#export(node);
      default:
        return undefined;
    }
  }

  #function(place) {
    const { node, parent } = place;
    const isArrow = node.type === "ArrowFunctionExpression";
    if (!isArrow || node.body.type === "BlockStatement") {
      const from = bodyStart(node.body);
      if (node.async) {
        const start = usesSuper(node) ? "const __super = (name) => super[name]; " : "";
        const driver = node.generator ? "asyncGenerator" : "runAsync";
        this.#open(from, `${start}return ${HELPERS}.${driver}(function* () { `);
        this.#close(node.body.end - 1, ` }, this${this.#argumentsOf(node, isArrow)});`);
      }
      if (this.#isTimed) this.#open(from, `${HELPERS}.tick(); `);
    } else {
      const arrow = this.#arrowEnd(node);
      const tick = this.#isTimed ? `${HELPERS}.tick(), ` : "";
      if (node.async) {
        this.#open(arrow, ` ${HELPERS}.runAsync(function* () { return ${tick}(`);
        this.#close(node.end, `); }, this${this.#argumentsOf(node, isArrow)})`);
      } else if (this.#isTimed) {
        this.#open(arrow, ` (${tick}(`);
        this.#close(node.end, "))");
      }
    }
    if (node.async) this.#removeAsync(node, parent);
  }

  /** Just after the `=>` of an arrow function. Comments before its body may hold another one. */
  #arrowEnd(node) {
    const gap = /\/\/[^\n]*|\/\*[^]*?\*\/|=>/g;
    gap.lastIndex = node.params.at(-1)?.end ?? node.start;
    for (let found = gap.exec(this.#text); found !== null; found = gap.exec(this.#text)) {
      if (found[0] === "=>") return gap.lastIndex;
    }
    return node.body.start;
  }

  #argumentsOf(node, isArrow) {
    return !isArrow || mentions(node, "arguments") ? ", arguments" : "";
  }

  /** Takes out `async`, and the `*` of an async generator, whose body becomes a plain generator. */
  #removeAsync(node, parent) {
    const isMethod = parent?.node.value === node && (parent.node.method || parent.node.type === "MethodDefinition");
    const start = isMethod ? parent.node.start : node.start;
    const end = isMethod ? parent.node.key.start : (node.id ?? node.params[0] ?? node.body).start;
    const head = this.#text.slice(start, end);
    const at = start + head.search(/\basync\b/);
    const statement = parent?.node;
    const startsStatement = statement?.type === "ExpressionStatement" && statement.start === node.start;
    this.#replace(at, at + "async".length, startsStatement ? "0, " : "");
    if (node.generator) {
      const star = this.#text.indexOf("*", at);
      // A blank, as the name may follow at once.
      this.#replace(star, star + 1, " ");
    }
  }

  #await(place) {
    const { node, owner } = place;
    if (owner === null) this.#isAsync = true;
    const statement = enclosingStatement(place);
    const startsStatement = statement?.node.type === "ExpressionStatement" && statement.node.start === node.start;
    const value = owner?.node.generator ? `${HELPERS}.awaited(` : "";
    const close = value === "" ? "" : ")";
    // A bracket at the start of a line would continue the line before.
    const whole = startsStatement && statement.node.expression === node;
    const open = whole ? "" : startsStatement ? "0, (" : "(";
    const line = owner === null ? `${HELPERS}.waitAt(${this.#lineOf(node)}, ` : "";
    this.#replace(node.start, node.start + "await".length, `${open}yield ${line}${value}`);
    this.#close(node.end, `${close}${line === "" ? "" : ")"}${whole ? "" : ")"}`);
  }

  #lineOf(node) {
    return this.#text.slice(0, node.start).split("\n").length;
  }

  #forAwait(place) {
    const { node, owner } = place;
    if (owner === null) this.#isAsync = true;
    this.#loops += 1;
    const steps = `__steps${this.#loops}`;
    const atTop = (text) => (owner === null ? `${HELPERS}.waitAt(${this.#lineOf(node)}, ${text})` : text);
    const wait = (text) => (owner?.node.generator ? `(yield ${HELPERS}.awaited(${text}))` : `(yield ${atTop(text)})`);
    const left = this.#text.slice(node.left.start, node.left.end);
    const isDeclaration = node.left.type === "VariableDeclaration";
    const set = isDeclaration ? `${left} = ${steps}.value;` : `(${left} = ${steps}.value);`;
    // A label stays with its loop, so what is put around both begins before it.
    let outer = place;
    while (outer.parent?.node.type === "LabeledStatement") outer = outer.parent;
    this.#open(outer.node.start, `{ let ${steps}; try { `);
    this.#replace(node.start, node.right.start, `for (${steps} = ${HELPERS}.loop(`);
    const close = this.#text.indexOf(")", this.#skipBrackets(node.right, node.body));
    this.#replace(node.right.end, close + 1, `); ${wait(`${steps}.step()`)}; ) { ${set}`);
    this.#close(node.body.end, ` } } finally { if (${steps}) ${wait(`${steps}.close()`)}; } }`);
  }

  /** Where to look for the bracket that closes the head of a loop. */
  #skipBrackets(right, body) {
    const head = this.#text.slice(right.end, body.start);
    return right.end + head.lastIndexOf(")");
  }

  #loopBody(node) {
    if (!this.#isTimed) return;
    if (node.body.type === "BlockStatement") this.#open(node.body.start + 1, ` ${HELPERS}.tick(); `);
    else {
      this.#open(node.body.start, `{ ${HELPERS}.tick(); `);
      this.#close(node.body.end, " }");
    }
  }

  /** A generator knows no `super`, so an async method reads its parent through an arrow function. */
  #super({ node, parent, owner }) {
    let function_ = owner;
    while (function_?.node.type === "ArrowFunctionExpression" && !function_.node.async) function_ = function_.owner;
    if (!function_?.node.async || parent.node.type !== "MemberExpression") return;
    const member = parent.node;
    if (member.computed) {
      this.#replace(node.start, member.property.start, "__super(");
      this.#replace(member.property.end, member.end, ")");
    } else {
      this.#replace(node.start, member.property.start, '__super("');
      this.#close(member.property.end, '")');
    }
    const call = parent.parent.node;
    if (call.type !== "CallExpression" || call.callee !== member) return;
    const open = this.#text.indexOf("(", member.end);
    this.#replace(open, open + 1, call.arguments.length > 0 ? ".call(this, " : ".call(this");
  }

  #import(node) {
    this.#imports += 1;
    const name = `__module${this.#imports}`;
    const parts = [`const ${name} = ${HELPERS}.import(require, ${JSON.stringify(node.source.value)});`];
    for (const specifier of node.specifiers) {
      const local = specifier.local.name;
      if (specifier.type === "ImportNamespaceSpecifier") parts.push(`const ${local} = ${name};`);
      else {
        const imported = specifier.type === "ImportDefaultSpecifier" ? "default" : nameOf(specifier.imported);
        parts.push(`const ${local} = ${HELPERS}.pick(${name}, ${JSON.stringify(imported)}, ${JSON.stringify(node.source.value)});`);
      }
    }
    // Imports come first, wherever they stand.
    this.#head += `${parts.join(" ")} `;
    this.#replace(node.start, node.end, ";");
  }

  #export(node) {
    if (node.type === "ExportAllDeclaration") {
      const source = JSON.stringify(node.source.value);
      if (node.exported) this.#exports.push([nameOf(node.exported), `${HELPERS}.import(require, ${source})`]);
      else this.#head += `${HELPERS}.exportAll(exports, ${HELPERS}.import(require, ${source})); `;
      return this.#replace(node.start, node.end, ";");
    }
    if (node.type === "ExportDefaultDeclaration") return this.#exportDefault(node);
    if (node.declaration) {
      for (const name of declaredNames(node.declaration)) this.#exports.push([name, name]);
      return this.#replace(node.start, node.declaration.start, "");
    }
    for (const { local, exported } of node.specifiers) {
      const value = node.source
        ? `${HELPERS}.import(require, ${JSON.stringify(node.source.value)})[${JSON.stringify(nameOf(local))}]`
        : nameOf(local);
      this.#exports.push([nameOf(exported), value]);
    }
    return this.#replace(node.start, node.end, ";");
  }

  #exportDefault(node) {
    const { declaration } = node;
    const isNamed = /^(Function|Class)Declaration$/.test(declaration.type) && declaration.id;
    if (isNamed) {
      this.#exports.push(["default", declaration.id.name]);
      return this.#replace(node.start, declaration.start, "");
    }
    this.#exports.push(["default", "__default"]);
    const bracket = this.#text.slice(node.start, declaration.start).indexOf("(");
    this.#close(node.end, ";");
    return this.#replace(node.start, bracket < 0 ? declaration.start : node.start + bracket, "const __default = ");
  }
}

function isFunction(node) {
  return /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type);
}

/** After the `{` and the directives of a body. */
function bodyStart(body) {
  const directive = body.body.findLast((statement) => statement.directive !== undefined);
  return directive ? directive.end : body.start + 1;
}

function enclosingStatement(place) {
  let at = place;
  while (at !== null && !/(Statement|Declaration)$/.test(at.node.type)) at = at.parent;
  return at;
}

function usesSuper(node) {
  return contains(node.body, (inner) => inner.type === "Super");
}

function mentions(node, name) {
  return contains(node.body, (inner) => inner.type === "Identifier" && inner.name === name);
}

/** Whether `wanted` holds for a node in `node`, or in an arrow function there. */
function contains(node, wanted) {
  const stack = [node];
  while (stack.length > 0) {
    const inner = stack.pop();
    if (wanted(inner)) return true;
    for (const value of Object.values(inner)) {
      for (const child of Array.isArray(value) ? value : [value]) {
        const isNode = typeof child?.type === "string";
        if (isNode && (!isFunction(child) || child.type === "ArrowFunctionExpression")) stack.push(child);
      }
    }
  }
  return false;
}

function nameOf(node) {
  return node.type === "Literal" ? node.value : node.name;
}

function declaredNames(declaration) {
  if (declaration.id) return [declaration.id.name];
  return declaration.declarations.flatMap(({ id }) => patternNames(id));
}

function patternNames(pattern) {
  switch (pattern?.type) {
    case "Identifier":
      return [pattern.name];
    case "ObjectPattern":
      return pattern.properties.flatMap((property) => patternNames(property.value ?? property.argument));
    case "ArrayPattern":
      return pattern.elements.flatMap(patternNames);
    case "AssignmentPattern":
      return patternNames(pattern.left);
    case "RestElement":
      return patternNames(pattern.argument);
    default:
      return [];
  }
}
