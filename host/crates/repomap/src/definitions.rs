//! The definitions of source files, by tree-sitter's grammars, whose stacks are on the heap.
//!
//! A file with errors gives the definitions that can be read. The parsers' steps and the walked nodes are capped: a
//! file that would take more gives none, nor does any later one once the sum is used up.

use crate::input::{BYTES_MAX, FILE_BYTES_MAX, SourceFile};
use crate::language::{self, Language, Sort};
use crate::text::plain;
use std::ops::ControlFlow;
use tree_sitter::{Node, ParseOptions, Parser, Tree};

/// A definition of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    /// The name that other code uses.
    pub(crate) name: String,
    /// The text before its body, on one line.
    pub(crate) signature: String,
    /// The number of definitions around it.
    pub(crate) depth: usize,
}

/// Longest signature, in characters.
const SIGNATURE_CHARS_MAX: usize = 100;

/// Most definitions of one file.
const DEFINITIONS_MAX: usize = 500;

/// The depth of the deepest listed definition: a method of a class in a module.
const DEPTH_MAX: usize = 2;

/// Longest line, in bytes, of a hand-written file.
const LINE_BYTES_MAX: usize = 2_000;

/// Steps of a parser on one file and on all, a hundred of its operations each: a file of 256 KiB takes some 2 000.
const STEPS_MAX: u32 = 20_000;
const STEPS_OF_ALL_MAX: u32 = 400_000;

/// Nodes that are walked in one file: a file of 256 KiB has some 100 000.
const NODES_MAX: u32 = 500_000;

/// The definitions of each file, in the files' order.
pub(crate) fn of_all(files: &[&SourceFile]) -> Vec<Vec<Definition>> {
    let (mut steps, mut bytes) = (STEPS_OF_ALL_MAX, BYTES_MAX);
    let mut one = |file: &&SourceFile| {
        let text = file.text.as_deref()?;
        let language = language::of(&file.path)?;
        let length = text.len() as u64;
        if length > FILE_BYTES_MAX || length > bytes || steps == 0 || !is_by_hand(text) {
            return None;
        }
        bytes -= length;
        let tree = parse(language, text, &mut steps)?;
        Some(walk(language, text, &tree))
    };
    files.iter().map(|file| one(file).unwrap_or_default()).collect()
}

fn is_by_hand(text: &str) -> bool {
    !text.contains('\0') && text.lines().all(|line| line.len() <= LINE_BYTES_MAX)
}

fn parse(language: Language, text: &str, steps: &mut u32) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&language.grammar()).ok()?;
    let mut left = STEPS_MAX.min(*steps);
    let before = left;
    let mut count = |_: &tree_sitter::ParseState| {
        left = left.saturating_sub(1);
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut count);
    let bytes = text.as_bytes();
    let tree = parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options));
    *steps -= before - left;
    tree
}

/// With an own cursor and no recursion: the author of a source decides how deep it nests.
fn walk(language: Language, text: &str, tree: &Tree) -> Vec<Definition> {
    let mut found: Vec<Definition> = Vec::new();
    let mut cursor = tree.walk();
    // For each node on the way down: whether it is a definition that holds others.
    let mut holders: Vec<bool> = Vec::new();
    let mut depth = 0;
    for _ in 0..NODES_MAX {
        let node = cursor.node();
        let sort = language.sort(node.kind()).filter(|sort| *sort != Sort::Variable || is_callable(node));
        let definition = sort.and_then(|_| definition(language, text, node, depth));
        // No other file uses a Rust file's own tests.
        let is_tests = definition.as_ref().is_some_and(|one| one.signature == "mod tests");
        let is_holder = sort == Some(Sort::Holder) && definition.is_some();
        let goes_down = match sort {
            None => true,
            Some(Sort::Holder) => depth < DEPTH_MAX && !is_tests,
            Some(_) => false,
        };
        found.extend(definition.filter(|_| !is_tests));
        if found.len() >= DEFINITIONS_MAX {
            break;
        }
        if goes_down && cursor.goto_first_child() {
            holders.push(is_holder);
            depth += usize::from(is_holder);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
            depth -= usize::from(holders.pop().unwrap_or_default());
        }
    }
    found
}

/// A variable that stands for a function or a class.
fn is_callable(node: Node<'_>) -> bool {
    let value = node.child_by_field_name("value").map(|value| value.kind());
    matches!(value, Some("arrow_function" | "function_expression" | "generator_function" | "class"))
}

fn definition(language: Language, text: &str, node: Node<'_>, depth: usize) -> Option<Definition> {
    let body = node.child_by_field_name("body").or_else(|| {
        let value = node.child_by_field_name("value")?;
        value.child_by_field_name("body")
    });
    // `struct s x;` in C uses it and does not define it, and `mod m;` in Rust only refers to a file.
    if body.is_none() && (node.kind() == "mod_item" || (language == Language::C && node.kind().ends_with("_specifier")))
    {
        return None;
    }
    let name = plain(&text[name_of(node)?.byte_range()]);
    if name.is_empty() || name.len() > SIGNATURE_CHARS_MAX {
        return None;
    }
    let all = &text[node.byte_range()];
    let end = body.map_or(all.len(), |body| body.start_byte() - node.start_byte());
    // Without a body, only the first line is listed: a type may continue for pages.
    let front = if body.is_some() { &all[..end] } else { all.lines().next().unwrap_or_default() };
    let front: String = front.chars().take(SIGNATURE_CHARS_MAX * 4).collect();
    let signature = plain(&front);
    let signature = signature.trim_end_matches(['{', ':', '(', ' ']);
    let kind = if node.kind() == "type_spec" { "type " } else { "" };
    Some(Definition { name, signature: cut(&format!("{kind}{signature}")), depth })
}

fn name_of(node: Node<'_>) -> Option<Node<'_>> {
    if let Some(name) = node.child_by_field_name("name") {
        return Some(name);
    }
    if node.kind() == "impl_item" {
        return node.child_by_field_name("type");
    }
    // `int *(*f(void))(int) { ... }`: each declarator is within the one around it.
    let mut declarator = node.child_by_field_name("declarator")?;
    for _ in 0..16 {
        match declarator.child_by_field_name("declarator").or_else(|| declarator.named_child(0)) {
            _ if declarator.kind().ends_with("identifier") => return Some(declarator),
            Some(within) => declarator = within,
            None => return None,
        }
    }
    None
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SIGNATURE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
