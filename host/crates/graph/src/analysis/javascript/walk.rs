//! Statements and expressions, in the order in which JavaScript runs them.

use super::super::Name;
use super::declarations::is_function;
use super::{Mode, Reason, Walk, is_builtin, range};
use std::collections::HashSet;
use tree_sitter::Node;

impl Walk<'_> {
    pub(super) fn children(&mut self, node: Node<'_>) {
        for child in children(node) {
            self.node(child);
        }
    }

    /// Functions of a block are there, and bound, from its beginning.
    pub(super) fn hoist_functions(&mut self, block: Node<'_>) {
        for statement in children(block) {
            let declared = match statement.kind() {
                "export_statement" => statement.child_by_field_name("declaration"),
                _ => Some(statement),
            };
            if let Some(one) = declared.filter(|one| is_declared_function(one.kind())) {
                self.function(one);
                if let Some(name) = one.child_by_field_name("name") {
                    self.bind(name);
                }
            }
        }
    }

    fn node(&mut self, node: Node<'_>) {
        match node.kind() {
            "identifier" | "shorthand_property_identifier" => self.read(node),
            kind if is_declared_function(kind) => {}
            kind if is_function(kind) => self.function(node),
            "statement_block" => self.block(node, HashSet::new()),
            "class" | "class_declaration" => self.class(node),
            "variable_declarator" => self.declarator(node),
            "assignment_expression" => self.assignment(node),
            "augmented_assignment_expression" => self.augmented(node),
            "update_expression" => self.update(node),
            "unary_expression" => self.unary(node),
            "call_expression" | "new_expression" => self.call(node),
            "member_expression" => self.field(node, "object"),
            "pair" => {
                self.computed_key(node);
                self.field(node, "value");
            }
            "binary_expression" => self.binary(node),
            "ternary_expression" | "if_statement" => self.choice(node),
            "for_statement" => self.for_loop(node),
            "for_in_statement" => self.for_in(node),
            "while_statement" => {
                self.field(node, "condition");
                self.maybe_field(node, "body");
            }
            "do_statement" => {
                self.maybe_field(node, "body");
                self.field(node, "condition");
            }
            "switch_statement" => self.switch(node),
            "try_statement" => self.attempt(node),
            "labeled_statement" => self.maybe_field(node, "body"),
            "with_statement" => {
                self.facts.sees_all.get_or_insert(Reason::CodeFromText { function: "with".into() });
                self.children(node);
            }
            "return_statement" => {
                if self.functions == 0 {
                    self.facts.refuse(range(node).0, "`return` outside of a function");
                }
                self.children(node);
                self.facts.jump();
            }
            "throw_statement" | "break_statement" | "continue_statement" => {
                if node.kind() == "throw_statement" {
                    self.children(node);
                }
                self.facts.jump();
            }
            "import_statement" => self.import(node),
            "export_specifier" => self.field(node, "name"),
            "export_statement" if node.child_by_field_name("source").is_some() => {}
            _ => self.children(node),
        }
    }

    fn field(&mut self, node: Node<'_>, field: &str) {
        if let Some(child) = node.child_by_field_name(field) {
            self.node(child);
        }
    }

    fn maybe_field(&mut self, node: Node<'_>, field: &str) {
        let mark = self.facts.flow.mark();
        self.field(node, field);
        self.facts.flow.maybe(mark);
    }

    /// A block with names of its own.
    fn block(&mut self, block: Node<'_>, mut names: HashSet<u32>) {
        names.extend(self.declared_in_block(block));
        self.open(names);
        self.hoist_functions(block);
        self.children(block);
        self.close();
    }

    fn function(&mut self, function: Node<'_>) {
        let mut names = HashSet::new();
        let own = self.facts.symbol("arguments");
        names.insert(own);
        let parameters =
            function.child_by_field_name("parameters").or_else(|| function.child_by_field_name("parameter"));
        if let Some(parameters) = parameters {
            self.bound_by(parameters, &mut names);
        }
        if !is_declared_function(function.kind()) && function.kind() != "method_definition" {
            self.name_of(function, &mut names);
        }
        self.computed_key(function);
        let body = function.child_by_field_name("body");
        if let Some(body) = body {
            self.hoisted(body, &mut names);
        }
        self.open(names);
        self.functions += 1;
        // A block of a class runs at once; to take it for later exposes no less.
        self.facts.deferred += 1;
        if let Some(parameters) = parameters {
            self.defaults(parameters);
        }
        if let Some(body) = body {
            self.node(body);
        }
        self.facts.deferred -= 1;
        self.functions -= 1;
        self.close();
    }

    /// The values in a pattern: defaults and computed keys.
    fn defaults(&mut self, pattern: Node<'_>) {
        match pattern.kind() {
            "assignment_pattern" | "object_assignment_pattern" => {
                self.field(pattern, "right");
                pattern.child_by_field_name("left").into_iter().for_each(|left| self.defaults(left));
            }
            "pair_pattern" => {
                self.computed_key(pattern);
                pattern.child_by_field_name("value").into_iter().for_each(|value| self.defaults(value));
            }
            "object_pattern" | "array_pattern" | "rest_pattern" | "formal_parameters" => {
                children(pattern).into_iter().for_each(|child| self.defaults(child));
            }
            _ => {}
        }
    }

    fn computed_key(&mut self, node: Node<'_>) {
        let key = node.child_by_field_name("key").or_else(|| node.child_by_field_name("name"));
        if let Some(key) = key.filter(|key| key.kind() == "computed_property_name") {
            self.children(key);
        }
    }

    fn class(&mut self, class: Node<'_>) {
        let mut names = HashSet::new();
        self.name_of(class, &mut names);
        self.open(names);
        for child in children(class) {
            match child.kind() {
                "class_heritage" => {
                    self.children(child);
                    self.facts.may_call();
                }
                "class_body" => self.class_body(child),
                _ => {}
            }
        }
        self.close();
        if class.kind() == "class_declaration"
            && let Some(name) = class.child_by_field_name("name")
        {
            self.bind(name);
        }
    }

    fn class_body(&mut self, body: Node<'_>) {
        for member in children(body) {
            if member.kind() == "field_definition" {
                // Values of fields are made with each object; those of `static` ones now.
                self.facts.deferred += 1;
                self.field(member, "value");
                self.facts.deferred -= 1;
            } else {
                self.node(member);
            }
        }
    }

    fn declarator(&mut self, declarator: Node<'_>) {
        self.field(declarator, "value");
        let is_var = declarator.parent().is_some_and(|parent| parent.kind() == "variable_declaration");
        if let Some(target) = declarator.child_by_field_name("name") {
            // `var x` alone leaves a value that is there; `let x` makes a new variable.
            if !is_var || declarator.child_by_field_name("value").is_some() {
                self.store(target);
            }
        }
    }

    /// Stores to a name, a member or a pattern.
    fn store(&mut self, target: Node<'_>) {
        match target.kind() {
            "identifier" | "shorthand_property_identifier_pattern" => self.bind(target),
            "member_expression" => {
                self.node(target);
                self.store_to_global(target);
                self.mutate(target, &Reason::AttributeStore);
            }
            "subscript_expression" => {
                self.node(target);
                self.mutate(target, &Reason::SubscriptStore);
            }
            "assignment_pattern" | "object_assignment_pattern" => {
                let mark = self.facts.flow.mark();
                self.field(target, "right");
                self.facts.flow.maybe(mark);
                target.child_by_field_name("left").into_iter().for_each(|left| self.store(left));
            }
            "pair_pattern" => {
                self.computed_key(target);
                target.child_by_field_name("value").into_iter().for_each(|value| self.store(value));
            }
            "object_pattern" | "array_pattern" | "rest_pattern" | "parenthesized_expression" => {
                children(target).into_iter().for_each(|child| self.store(child));
            }
            _ => self.node(target),
        }
    }

    /// `globalThis.x = ...` binds a variable that is not told by its name here.
    fn store_to_global(&mut self, target: Node<'_>) {
        if target.child_by_field_name("object").is_some_and(|object| self.text(object) == "globalThis") {
            self.facts.sees_all.get_or_insert(Reason::Namespace { function: "globalThis".into() });
        }
    }

    fn assignment(&mut self, node: Node<'_>) {
        self.field(node, "right");
        node.child_by_field_name("left").into_iter().for_each(|left| self.store(left));
    }

    fn augmented(&mut self, node: Node<'_>) {
        let Some(left) = node.child_by_field_name("left") else { return };
        if left.kind() == "identifier" {
            self.read(left);
        }
        // `||=`, `&&=` and `??=` may do nothing.
        let logical = node
            .child_by_field_name("operator")
            .is_some_and(|operator| matches!(operator.kind(), "||=" | "&&=" | "??="));
        let mark = self.facts.flow.mark();
        self.field(node, "right");
        self.store(left);
        if logical {
            self.facts.flow.maybe(mark);
        }
    }

    fn update(&mut self, node: Node<'_>) {
        let Some(argument) = node.child_by_field_name("argument") else { return };
        if argument.kind() == "identifier" {
            self.read(argument);
        }
        self.store(argument);
    }

    fn unary(&mut self, node: Node<'_>) {
        self.children(node);
        let deletes = node.child_by_field_name("operator").is_some_and(|operator| operator.kind() == "delete");
        if let (true, Some(argument)) = (deletes, node.child_by_field_name("argument")) {
            self.mutate(argument, &Reason::AttributeStore);
        }
    }

    fn binary(&mut self, node: Node<'_>) {
        self.field(node, "left");
        let short = node.child_by_field_name("operator").is_some_and(|one| matches!(one.kind(), "&&" | "||" | "??"));
        if short { self.maybe_field(node, "right") } else { self.field(node, "right") }
    }

    fn choice(&mut self, node: Node<'_>) {
        self.field(node, "condition");
        let mark = self.facts.flow.mark();
        self.field(node, "consequence");
        let consequence = self.facts.flow.take(mark);
        self.field(node, "alternative");
        let alternative = self.facts.flow.take(mark);
        self.facts.flow.join(&[consequence, alternative]);
    }

    fn for_loop(&mut self, node: Node<'_>) {
        let names = self.loop_names(node.child_by_field_name("initializer"));
        self.open(names);
        self.field(node, "initializer");
        self.field(node, "condition");
        let mark = self.facts.flow.mark();
        self.field(node, "body");
        self.field(node, "increment");
        self.facts.flow.maybe(mark);
        self.close();
    }

    /// The names that the head of a loop keeps to itself.
    fn loop_names(&mut self, initializer: Option<Node<'_>>) -> HashSet<u32> {
        let mut names = HashSet::new();
        if let Some(declaration) = initializer.filter(|one| one.kind() == "lexical_declaration") {
            self.declared_by(declaration, &mut names);
        }
        names
    }

    fn for_in(&mut self, node: Node<'_>) {
        self.field(node, "right");
        let Some(left) = node.child_by_field_name("left") else { return };
        let kept = node.child_by_field_name("kind").is_some_and(|kind| matches!(kind.kind(), "let" | "const"));
        let mut names = HashSet::new();
        if kept {
            self.bound_by(left, &mut names);
        }
        self.open(names);
        let mark = self.facts.flow.mark();
        self.store(left);
        self.field(node, "body");
        self.facts.flow.maybe(mark);
        self.close();
    }

    fn switch(&mut self, node: Node<'_>) {
        self.field(node, "value");
        let Some(body) = node.child_by_field_name("body") else { return };
        let names = self.declared_in_block(body);
        self.open(names);
        for case in children(body) {
            let mark = self.facts.flow.mark();
            self.hoist_functions(case);
            self.children(case);
            self.facts.flow.maybe(mark);
        }
        self.close();
    }

    fn attempt(&mut self, node: Node<'_>) {
        let began = self.facts.flow.mark();
        self.field(node, "body");
        let mut met = vec![self.facts.flow.take(began)];
        if let Some(handler) = node.child_by_field_name("handler") {
            let mut names = HashSet::new();
            if let Some(parameter) = handler.child_by_field_name("parameter") {
                self.bound_by(parameter, &mut names);
            }
            self.open(names);
            self.field(handler, "body");
            self.close();
            met.push(self.facts.flow.take(began));
        }
        let last = node.child_by_field_name("finalizer").map(|finalizer| {
            self.children(finalizer);
            self.facts.flow.take(began)
        });
        self.facts.flow.join(&met);
        if let Some(last) = last {
            self.facts.flow.apply(&last);
        }
    }

    fn import(&mut self, node: Node<'_>) {
        let mut open = children(node);
        while let Some(one) = open.pop() {
            match one.kind() {
                "identifier" => self.bind(one),
                "import_specifier" => {
                    let name = one.child_by_field_name("alias").or_else(|| one.child_by_field_name("name"));
                    name.into_iter().for_each(|name| self.bind(name));
                }
                "import_clause" | "named_imports" | "namespace_import" => open.extend(children(one)),
                _ => {}
            }
        }
    }

    fn call(&mut self, node: Node<'_>) {
        let callee = node.child_by_field_name("function").or_else(|| node.child_by_field_name("constructor"));
        let Some(callee) = callee else { return self.children(node) };
        self.node(callee);
        self.field(node, "arguments");
        if self.text_call(callee) || self.leaves_arguments(callee) {
            return;
        }
        self.facts.may_call();
        if self.mode == Mode::Sound {
            self.unknown_call(callee, node.child_by_field_name("arguments"));
        }
    }

    /// `eval(text)`, `new Function(text)`.
    fn text_call(&mut self, callee: Node<'_>) -> bool {
        let name = self.text(callee);
        let symbol = self.facts.symbol(name);
        let plain = !self.is_local(symbol) && !self.facts.is_written(symbol);
        if plain && matches!(name, "eval" | "Function") {
            self.facts.sees_all.get_or_insert(Reason::CodeFromText { function: name.into() });
            self.facts.may_call();
            return true;
        }
        false
    }

    /// Functions of the language that change nothing that they are given.
    fn leaves_arguments(&mut self, callee: Node<'_>) -> bool {
        let base =
            if callee.kind() == "member_expression" { callee.child_by_field_name("object") } else { Some(callee) };
        let Some(base) = base.filter(|base| base.kind() == "identifier") else { return false };
        let symbol = self.symbol(base);
        if self.is_local(symbol) || self.facts.is_written(symbol) || !is_builtin(self.text(base)) {
            return false;
        }
        let property = callee.child_by_field_name("property").map(|property| self.text(property));
        match self.text(base) {
            "console" | "Math" | "Number" | "Boolean" | "BigInt" | "String" | "Date" | "Symbol" | "parseInt"
            | "parseFloat" | "isNaN" | "isFinite" => true,
            "JSON" => matches!(property, Some("stringify" | "parse")),
            "Object" => matches!(property, Some("keys" | "values" | "entries" | "is" | "fromEntries")),
            "Array" => matches!(property, Some("isArray" | "of")),
            "structuredClone" | "encodeURIComponent" | "decodeURIComponent" => property.is_none(),
            _ => false,
        }
    }

    fn unknown_call(&mut self, callee: Node<'_>, arguments: Option<Node<'_>>) {
        let function: Name = match callee.kind() {
            "member_expression" => {
                let property = callee.child_by_field_name("property");
                let method = Name::from(property.map_or("", |property| self.text(property)));
                self.mutate(callee, &Reason::MethodCall { method: method.clone() });
                method
            }
            "identifier" => self.text(callee).into(),
            _ => "a function without a name".into(),
        };
        let reason = Reason::Argument { function };
        arguments.into_iter().flat_map(children).for_each(|argument| self.given(argument, &reason));
    }

    /// What is given away may be changed by who has it, and so may what a container holds.
    fn given(&mut self, node: Node<'_>, reason: &Reason) {
        match node.kind() {
            "array" | "object" | "ternary_expression" => {
                children(node).into_iter().for_each(|child| self.given(child, reason));
            }
            "pair" => node.child_by_field_name("value").into_iter().for_each(|value| self.given(value, reason)),
            "shorthand_property_identifier" => {
                let symbol = self.symbol(node);
                if !self.is_local(symbol) && !is_builtin(self.text(node)) {
                    self.facts.mutate(symbol, reason);
                }
            }
            _ => self.mutate(node, reason),
        }
    }
}

fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
}

fn is_declared_function(kind: &str) -> bool {
    matches!(kind, "function_declaration" | "generator_function_declaration")
}
