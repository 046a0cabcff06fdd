//! JavaScript: from a source to its [`Analysis`], by tree-sitter's grammar, which keeps its stack on the heap.
//!
//! The namespace is what scripts that run one after another share: what `var`, `let`, `const`, `function`, `class` and
//! `import` declare at the top, and what is assigned without a declaration. Blocks and functions keep their own `let`,
//! `const` and `class`; functions keep their own `var`. What is certain is judged with less care than Python's: a loop,
//! a `switch` and what has a label may have happened in part or not at all.

mod declarations;
mod walk;

use super::facts::{Facts, Range, Symbol};
use super::{Analysis, JavaScript, LEANING_MAX, Language, Mode, Reason, SOURCE_BYTES_MAX, SyntaxError, lines, stack};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use tree_sitter::{Node, Parser, Tree};

/// Depth of the tree up to which a source is walked on the caller's own stack.
const DEPTH_SMALL: usize = 80;

/// Deepest tree, in nodes: an operator or a bracket is two or three of them.
const DEPTH_MAX: usize = 3 * LEANING_MAX;

impl Language for JavaScript {
    fn analyse(&self, source: &str) -> Result<Analysis, SyntaxError> {
        if source.len() > SOURCE_BYTES_MAX {
            let message = format!("the source has {} bytes; the most is {SOURCE_BYTES_MAX}", source.len());
            return Err(SyntaxError { message, line: 1, column: 1 });
        }
        let tree = parse(source)?;
        let depth = checked_depth(source, &tree)?;
        let mode = self.mode;
        if depth <= DEPTH_SMALL {
            return Walk::new(source, mode).program(tree.root_node());
        }
        let owned = source.to_owned();
        stack::on_large_stack(move || Walk::new(&owned, mode).program(tree.root_node())).unwrap_or_else(|| {
            let message = "no thread could be started to walk so deep a source".to_owned();
            Err(SyntaxError { message, line: 1, column: 1 })
        })
    }

    fn name(&self) -> &'static str {
        "javascript"
    }
}

fn parse(source: &str) -> Result<Tree, SyntaxError> {
    let failed = |message: &str| SyntaxError { message: message.into(), line: 1, column: 1 };
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_javascript::LANGUAGE.into())
        .map_err(|_| failed("the grammar of JavaScript is of another version"))?;
    parser.parse(source, None).ok_or_else(|| failed("the parser gave up"))
}

/// The depth of a tree without errors.
fn checked_depth(source: &str, tree: &Tree) -> Result<usize, SyntaxError> {
    let refuse = |node: Node<'_>, message: String| {
        let (line, column) = lines::line_column(source, node.start_byte());
        Err(SyntaxError { message, line, column })
    };
    let (mut cursor, mut depth, mut deepest) = (tree.walk(), 1, 1);
    loop {
        let node = cursor.node();
        if node.is_missing() {
            return refuse(node, format!("`{}` is missing", node.kind()));
        }
        if node.is_error() {
            return refuse(node, "this is no JavaScript".to_owned());
        }
        if depth > DEPTH_MAX {
            return refuse(node, format!("more than {DEPTH_MAX} brackets, blocks and operators are within each other"));
        }
        if cursor.goto_first_child() {
            depth += 1;
            deepest = deepest.max(depth);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Ok(deepest);
            }
            depth -= 1;
        }
    }
}

/// The walk over one program.
struct Walk<'s> {
    source: &'s str,
    mode: Mode,
    facts: Facts,
    /// Names that blocks and functions keep, the innermost last; the program's own are not among them.
    scopes: Vec<HashSet<Symbol>>,
    /// In how many of these a name is, since there may be thousands of them.
    kept: HashMap<Symbol, usize>,
    /// How many functions the walk is in.
    functions: usize,
}

impl<'s> Walk<'s> {
    fn new(source: &'s str, mode: Mode) -> Self {
        Self { source, mode, facts: Facts::default(), scopes: Vec::new(), kept: HashMap::new(), functions: 0 }
    }

    fn program(mut self, root: Node<'_>) -> Result<Analysis, SyntaxError> {
        self.hoist_functions(root);
        self.children(root);
        self.facts.answer(self.source, is_builtin).map_err(|(offset, message)| {
            let (line, column) = lines::line_column(self.source, offset);
            SyntaxError { message: message.to_owned(), line, column }
        })
    }

    fn is_local(&self, symbol: Symbol) -> bool {
        self.kept.contains_key(&symbol)
    }

    /// Opens a scope that keeps these names.
    fn open(&mut self, names: HashSet<Symbol>) {
        for name in &names {
            *self.kept.entry(*name).or_default() += 1;
        }
        self.scopes.push(names);
    }

    fn close(&mut self) {
        for name in self.scopes.pop().unwrap_or_default() {
            if let Entry::Occupied(mut kept) = self.kept.entry(name) {
                *kept.get_mut() -= 1;
                if *kept.get() == 0 {
                    kept.remove();
                }
            }
        }
    }

    fn read(&mut self, node: Node<'_>) {
        let symbol = self.symbol(node);
        if !self.is_local(symbol) {
            self.facts.read(symbol, range(node));
        }
    }

    fn bind(&mut self, node: Node<'_>) {
        let symbol = self.symbol(node);
        if !self.is_local(symbol) {
            self.facts.bind(symbol);
        }
    }

    fn symbol(&mut self, node: Node<'_>) -> Symbol {
        let name = self.source.get(node.byte_range()).unwrap_or_default();
        self.facts.symbol(name)
    }

    fn text(&self, node: Node<'_>) -> &'s str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    /// The value of the name that an expression leads to may be changed in place.
    fn mutate(&mut self, node: Node<'_>, reason: &Reason) {
        let mut base = Some(node);
        while let Some(node) = base {
            base = match node.kind() {
                "member_expression" | "subscript_expression" => node.child_by_field_name("object"),
                "parenthesized_expression" | "spread_element" | "await_expression" | "non_null_expression" => {
                    node.named_child(0)
                }
                "identifier" => {
                    let symbol = self.symbol(node);
                    let stores = matches!(reason, Reason::AttributeStore | Reason::SubscriptStore | Reason::Augmented);
                    let given = stores || self.facts.is_written(symbol) || !is_builtin(self.text(node));
                    if !self.is_local(symbol) && given {
                        self.facts.mutate(symbol, reason);
                    }
                    None
                }
                _ => None,
            };
        }
    }
}

fn range(node: Node<'_>) -> Range {
    // A source has at most a million bytes.
    (u32::try_from(node.start_byte()).unwrap_or(u32::MAX), u32::try_from(node.end_byte()).unwrap_or(u32::MAX))
}

/// Names that every JavaScript of a server has. Sorted.
const BUILTINS: &[&str] = &[
    "AbortController",
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "Atomics",
    "BigInt",
    "BigInt64Array",
    "BigUint64Array",
    "Boolean",
    "DataView",
    "Date",
    "Error",
    "EvalError",
    "FinalizationRegistry",
    "Float32Array",
    "Float64Array",
    "Function",
    "Headers",
    "Infinity",
    "Int16Array",
    "Int32Array",
    "Int8Array",
    "Intl",
    "Iterator",
    "JSON",
    "Map",
    "Math",
    "NaN",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "RangeError",
    "ReferenceError",
    "Reflect",
    "RegExp",
    "Request",
    "Response",
    "Set",
    "SharedArrayBuffer",
    "String",
    "Symbol",
    "SyntaxError",
    "TextDecoder",
    "TextEncoder",
    "TypeError",
    "URIError",
    "URL",
    "URLSearchParams",
    "Uint16Array",
    "Uint32Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "WeakMap",
    "WeakRef",
    "WeakSet",
    "arguments",
    "atob",
    "btoa",
    "clearInterval",
    "clearTimeout",
    "console",
    "decodeURI",
    "decodeURIComponent",
    "encodeURI",
    "encodeURIComponent",
    "escape",
    "eval",
    "fetch",
    "globalThis",
    "isFinite",
    "isNaN",
    "parseFloat",
    "parseInt",
    "queueMicrotask",
    "setInterval",
    "setTimeout",
    "structuredClone",
    "undefined",
    "unescape",
];

fn is_builtin(name: &str) -> bool {
    BUILTINS.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sorted() {
        assert!(super::BUILTINS.is_sorted());
    }
}
