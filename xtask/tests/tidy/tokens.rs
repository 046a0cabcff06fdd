//! Questions to a run of tokens, each about a place in it.
//!
//! A place beyond the end answers like one that holds something else. Nothing here knows the grammar of Rust beyond
//! paths, attributes and where an item ends.

use proc_macro2::{Delimiter, Literal, Spacing, TokenTree};

/// Words that an item begins with.
pub const ITEMS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "static", "const"];

#[derive(Clone, Copy)]
pub struct Tokens<'a>(pub &'a [TokenTree]);

pub struct Attribute {
    /// The tokens in its brackets.
    pub body: Vec<TokenTree>,
    /// True of `#![...]`, which is about all that surrounds it.
    pub inner: bool,
    /// The place after it.
    pub next: usize,
}

impl Tokens<'_> {
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// True where this word or this character of punctuation stands.
    pub fn is(self, at: usize, text: &str) -> bool {
        match self.0.get(at) {
            Some(TokenTree::Ident(ident)) => ident == text,
            Some(TokenTree::Punct(punct)) => text.chars().eq([punct.as_char()]),
            _ => false,
        }
    }

    pub fn is_any(self, at: usize, texts: &[&str]) -> bool {
        texts.iter().any(|text| self.is(at, text))
    }

    /// The word, without the `r#` of a raw one.
    pub fn word(self, at: usize) -> Option<String> {
        let Some(TokenTree::Ident(ident)) = self.0.get(at) else { return None };
        let word = ident.to_string();
        Some(word.strip_prefix("r#").unwrap_or(&word).to_owned())
    }

    /// The tokens in brackets of this kind.
    pub fn group(self, at: usize, delimiter: Delimiter) -> Option<Vec<TokenTree>> {
        match self.0.get(at) {
            Some(TokenTree::Group(group)) if group.delimiter() == delimiter => {
                Some(group.stream().into_iter().collect())
            }
            _ => None,
        }
    }

    pub fn line(self, at: usize) -> usize {
        self.0.get(at).map_or(0, |token| token.span().start().line)
    }

    /// True where a `::` begins.
    pub fn separator(self, at: usize) -> bool {
        let joint = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.spacing() == Spacing::Joint);
        self.is(at, ":") && self.is(at + 1, ":") && self.0.get(at).is_some_and(joint)
    }

    /// The path that begins here, of one segment or more, and the place after it. The rest of a path, a field and a
    /// method are none.
    pub fn path(self, at: usize) -> Option<(Vec<String>, usize)> {
        let after_path = at >= 2 && self.separator(at - 2);
        let after_range = at >= 2 && self.is(at - 2, ".");
        let after_dot = at >= 1 && self.is(at - 1, ".") && !after_range;
        if after_path || after_dot {
            return None;
        }
        let mut path = vec![self.word(at)?];
        let mut next = at + 1;
        while self.separator(next)
            && let Some(word) = self.word(next + 2)
        {
            path.push(word);
            next += 3;
        }
        Some((path, next))
    }

    pub fn attribute(self, at: usize) -> Option<Attribute> {
        if !self.is(at, "#") {
            return None;
        }
        let inner = self.is(at + 1, "!");
        let bracket = at + 1 + usize::from(inner);
        Some(Attribute { body: self.group(bracket, Delimiter::Bracket)?, inner, next: bracket + 1 })
    }

    /// The place after the item, field, arm or statement that begins here, perhaps with attributes.
    pub fn after_item(self, mut at: usize) -> usize {
        while let Some(attribute) = self.attribute(at) {
            at = attribute.next;
        }
        // A comma ends a field or an arm, and parts the parameters of an item.
        let ends: &[&str] = if self.begins_item(at) { &[";"] } else { &[";", ","] };
        while at < self.len() {
            if self.is_any(at, ends) || self.group(at, Delimiter::Brace).is_some() {
                return at + 1;
            }
            at += 1;
        }
        at
    }

    fn begins_item(self, mut at: usize) -> bool {
        while self.is_any(at, &["pub", "async", "unsafe", "default", "extern"])
            || matches!(self.0.get(at), Some(TokenTree::Group(_) | TokenTree::Literal(_)))
        {
            at += 1;
        }
        self.is_any(at, &ITEMS) || self.is_any(at, &["impl", "mod", "use", "macro_rules"])
    }

    /// True of the body of `cfg(test)` and of `cfg(all(test, ...))`.
    pub fn is_test_only(self) -> bool {
        let Some(condition) = self.group(1, Delimiter::Parenthesis).filter(|_| self.is(0, "cfg")) else {
            return false;
        };
        let condition = Tokens(&condition);
        let all = condition.group(1, Delimiter::Parenthesis).filter(|_| condition.is(0, "all"));
        match all {
            Some(all) => (0..all.len()).any(|at| Tokens(&all).is(at, "test")),
            None => condition.len() == 1 && condition.is(0, "test"),
        }
    }

    /// Texts in plain quotes, in brackets too, with their lines.
    pub fn quoted(self) -> Vec<(String, usize)> {
        let each = self.0.iter().flat_map(|token| match token {
            TokenTree::Group(group) => Tokens(&group.stream().into_iter().collect::<Vec<_>>()).quoted(),
            TokenTree::Literal(literal) => {
                unquoted(literal).map(|text| (text, literal.span().start().line)).into_iter().collect()
            }
            _ => Vec::new(),
        });
        each.collect()
    }
}

fn unquoted(literal: &Literal) -> Option<String> {
    let text = literal.to_string();
    Some(text.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}
