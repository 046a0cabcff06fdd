//! JavaScript: from a source to its [`Analysis`], by tree-sitter's grammar, which keeps its stack on the heap.
//!
//! The namespace is what scripts that run one after another share: what `var`, `let`, `const`, `function`, `class` and
//! `import` declare at the top, and what is assigned without a declaration. Blocks and functions keep their own `let`,
//! `const` and `class`; functions keep their own `var`. What is certain is judged with less care than Python's: a loop,
//! a `switch` and what has a label may have happened in part or not at all.

mod declarations;
mod walk;

use super::flow::{Flow, Status};
use super::symbols::{Symbol, Symbols};
use super::{
    Analysis, JavaScript, LEANING_MAX, Language, Mode, Name, Reason, SOURCE_BYTES_MAX, SyntaxError, lines, stack,
};
use std::collections::{BTreeMap, HashMap, HashSet};
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
    symbols: Symbols,
    /// Names that blocks and functions keep, the innermost last; the program's own are not among them.
    scopes: Vec<Scope>,
    flow: Flow,
    deferred: usize,
    later: HashMap<Symbol, (u32, u32)>,
    pending: Vec<Symbol>,
    reads: HashMap<Symbol, (u32, u32)>,
    writes: HashSet<Symbol>,
    mutates: HashMap<Symbol, Reason>,
    sees_all: Option<Reason>,
    error: Option<(usize, &'static str)>,
}

/// What a block or function keeps to itself.
#[derive(Default)]
struct Scope {
    names: HashSet<Symbol>,
    function: bool,
}

impl<'s> Walk<'s> {
    fn new(source: &'s str, mode: Mode) -> Self {
        Self {
            source,
            mode,
            symbols: Symbols::default(),
            scopes: Vec::new(),
            flow: Flow::new(),
            deferred: 0,
            later: HashMap::new(),
            pending: Vec::new(),
            reads: HashMap::new(),
            writes: HashSet::new(),
            mutates: HashMap::new(),
            sees_all: None,
            error: None,
        }
    }

    fn program(mut self, root: Node<'_>) -> Result<Analysis, SyntaxError> {
        self.hoist_functions(root);
        self.children(root);
        if let Some((offset, message)) = self.error {
            let (line, column) = lines::line_column(self.source, offset);
            return Err(SyntaxError { message: message.to_owned(), line, column });
        }
        for (name, range) in std::mem::take(&mut self.later) {
            self.expose(name, range);
        }
        Ok(self.answer())
    }

    fn answer(self) -> Analysis {
        let Self { symbols, flow, source, reads, writes, .. } = self;
        let name = |symbol: &Symbol| symbols.name(*symbol);
        let ranges: Vec<(u32, u32)> = reads.values().copied().collect();
        let (mut read, mut builtin) = (BTreeMap::new(), BTreeMap::new());
        for (symbol, span) in reads.keys().zip(lines::spans(source, &ranges)) {
            let name = name(symbol);
            let into = if is_builtin(&name) { &mut builtin } else { &mut read };
            into.insert(name, span);
        }
        let certain = |status| flow.module().filter(move |(_, one)| *one == status).map(|(symbol, _)| symbol);
        let definite_writes: std::collections::BTreeSet<Name> =
            certain(Status::Bound).filter(|symbol| writes.contains(symbol)).map(|symbol| name(&symbol)).collect();
        Analysis {
            reads: read,
            builtins: builtin,
            writes: writes.iter().map(name).collect(),
            settles: definite_writes.clone(),
            definite_writes,
            mutates: self.mutates.iter().map(|(symbol, reason)| (name(symbol), reason.clone())).collect(),
            deletes: std::collections::BTreeSet::new(),
            sees_all: self.sees_all,
        }
    }

    fn expose(&mut self, symbol: Symbol, range: (u32, u32)) {
        if self.flow.status((0, symbol)).is_none() {
            self.reads.entry(symbol).or_insert(range);
        }
    }

    /// Code that is not seen here may run now, and with it every function that was defined before.
    fn may_call(&mut self) {
        if self.deferred == 0 {
            for symbol in std::mem::take(&mut self.pending) {
                if let Some(range) = self.later.get(&symbol).copied() {
                    self.expose(symbol, range);
                }
            }
        }
    }

    fn is_local(&self, symbol: Symbol) -> bool {
        self.scopes.iter().any(|scope| scope.names.contains(&symbol))
    }

    fn read(&mut self, node: Node<'_>) {
        let symbol = self.symbol(node);
        if self.is_local(symbol) {
            return;
        }
        let range = range(node);
        if self.deferred == 0 {
            self.expose(symbol, range);
        } else {
            self.later.entry(symbol).or_insert(range);
            self.pending.push(symbol);
        }
    }

    fn bind(&mut self, node: Node<'_>) {
        let symbol = self.symbol(node);
        if !self.is_local(symbol) {
            self.writes.insert(symbol);
            if self.deferred == 0 {
                self.flow.bind((0, symbol));
            }
        }
    }

    fn symbol(&mut self, node: Node<'_>) -> Symbol {
        let name = self.source.get(node.byte_range()).unwrap_or_default();
        self.symbols.symbol(name)
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
                    let given = stores || self.writes.contains(&symbol) || !is_builtin(self.text(node));
                    if !self.is_local(symbol) && given {
                        self.mutates.entry(symbol).or_insert_with(|| reason.clone());
                    }
                    None
                }
                _ => None,
            };
        }
    }
}

fn range(node: Node<'_>) -> (u32, u32) {
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
