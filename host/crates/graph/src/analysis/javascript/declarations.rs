//! What blocks and functions declare, found before they are walked: JavaScript's names are there from their block's
//! beginning, and those of `var` and `function` from their function's.

use super::super::facts::Symbol;
use super::Walk;
use std::collections::HashSet;
use tree_sitter::Node;

/// Nodes that begin a function's own world.
pub(super) fn is_function(kind: &str) -> bool {
    matches!(
        kind,
        "function_declaration"
            | "generator_function_declaration"
            | "function_expression"
            | "generator_function"
            | "arrow_function"
            | "method_definition"
            | "class_static_block"
    )
}

impl Walk<'_> {
    /// The `let`, `const`, `class` and functions that stand directly in a block.
    pub(super) fn declared_in_block(&mut self, block: Node<'_>) -> HashSet<Symbol> {
        let mut names = HashSet::new();
        let mut cursor = block.walk();
        let statements: Vec<Node<'_>> = block.named_children(&mut cursor).collect();
        for statement in statements {
            match statement.kind() {
                "lexical_declaration" => self.declared_by(statement, &mut names),
                "class_declaration" | "function_declaration" | "generator_function_declaration" => {
                    self.name_of(statement, &mut names);
                }
                "switch_case" | "switch_default" => names.extend(self.declared_in_block(statement)),
                _ => {}
            }
        }
        names
    }

    /// The `var`s of a function's body, wherever they stand but in functions of their own.
    pub(super) fn hoisted(&mut self, body: Node<'_>, names: &mut HashSet<Symbol>) {
        let mut open = vec![body];
        while let Some(node) = open.pop() {
            let mut cursor = node.walk();
            for child in node.named_children(&mut cursor) {
                match child.kind() {
                    "variable_declaration" => self.declared_by(child, names),
                    "for_in_statement"
                        if child.child_by_field_name("kind").is_some_and(|kind| kind.kind() == "var") =>
                    {
                        if let Some(left) = child.child_by_field_name("left") {
                            self.bound_by(left, names);
                        }
                    }
                    "function_declaration" | "generator_function_declaration" => self.name_of(child, names),
                    _ => {}
                }
                if !is_function(child.kind()) {
                    open.push(child);
                }
            }
        }
    }

    /// The names that a declaration's targets bind.
    pub(super) fn declared_by(&mut self, declaration: Node<'_>, names: &mut HashSet<Symbol>) {
        let mut cursor = declaration.walk();
        let declarators: Vec<Node<'_>> = declaration.named_children(&mut cursor).collect();
        for declarator in declarators {
            if let Some(target) = declarator.child_by_field_name("name") {
                self.bound_by(target, names);
            }
        }
    }

    /// The names that a pattern binds.
    pub(super) fn bound_by(&mut self, pattern: Node<'_>, names: &mut HashSet<Symbol>) {
        let mut open = vec![pattern];
        while let Some(node) = open.pop() {
            match node.kind() {
                "identifier" | "shorthand_property_identifier_pattern" => {
                    let symbol = self.symbol(node);
                    names.insert(symbol);
                }
                "assignment_pattern" | "object_assignment_pattern" => open.extend(node.child_by_field_name("left")),
                "pair_pattern" => open.extend(node.child_by_field_name("value")),
                "object_pattern" | "array_pattern" | "rest_pattern" | "formal_parameters" => {
                    let mut cursor = node.walk();
                    open.extend(node.named_children(&mut cursor));
                }
                _ => {}
            }
        }
    }

    pub(super) fn name_of(&mut self, declaration: Node<'_>, names: &mut HashSet<Symbol>) {
        if let Some(name) = declaration.child_by_field_name("name") {
            let symbol = self.symbol(name);
            names.insert(symbol);
        }
    }
}
