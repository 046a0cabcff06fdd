//! Pages of the book as plain text for a terminal.
//!
//! It knows what the book uses: headings, paragraphs, lists, quotes, tables, blocks of code, links, comments. Anything
//! else stays as it is written. It highlights no code and loads no picture.

use super::layout::wrapped;
use super::table;
use std::iter::Peekable;
use std::str::Lines;

/// The text of a page in lines of at most `columns`, but for code, which is not wrapped. `is_styled` makes headings and
/// emphasised words bold.
pub(super) fn rendered(page: &str, columns: usize, is_styled: bool) -> String {
    let mut renderer = Renderer { text: String::new(), columns, is_styled };
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        renderer.block(line, &mut lines);
    }
    // A page may begin with a comment.
    renderer.text.trim_start_matches('\n').to_owned()
}

struct Renderer {
    text: String,
    columns: usize,
    is_styled: bool,
}

impl Renderer {
    /// Renders the block that begins with this line.
    fn block(&mut self, line: &str, lines: &mut Peekable<Lines<'_>>) {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") {
            self.code(lines);
        } else if trimmed.starts_with("<!--") {
            comment(line, lines);
        } else if trimmed.is_empty() {
            self.text.push('\n');
        } else if trimmed.starts_with('|') {
            self.table(line, lines);
        } else if let Some(heading) = heading(line) {
            let heading = self.bold(&self.inline(heading));
            self.text += &format!("{heading}\n");
        } else {
            self.paragraph(line, lines);
        }
    }

    /// The lines up to the end of a block of code, which are indented.
    fn code(&mut self, lines: &mut Peekable<Lines<'_>>) {
        for line in lines.take_while(|line| !line.trim_start().starts_with("```")) {
            self.text += format!("    {line}").trim_end();
            self.text.push('\n');
        }
    }

    /// A table, with the rows that follow its first one.
    fn table(&mut self, first: &str, lines: &mut Peekable<Lines<'_>>) {
        let mut rows = vec![self.inline(first)];
        while let Some(row) = lines.next_if(|line| line.trim_start().starts_with('|')) {
            rows.push(self.inline(row));
        }
        self.text += &table::rendered(&rows, self.columns);
    }

    /// A paragraph, an item of a list or a quote, with the lines that continue it.
    fn paragraph(&mut self, line: &str, lines: &mut Peekable<Lines<'_>>) {
        let body = line.trim_start();
        let indent = &line[..line.len() - body.len()];
        let mark = mark(body);
        let mut words = body[mark.len()..].to_owned();
        while let Some(next) = lines.next_if(|next| continues(next)) {
            let next = next.trim_start();
            words.push(' ');
            words.push_str(if mark == "> " { next.strip_prefix("> ").unwrap_or(next) } else { next });
        }
        let rest = if mark == "> " { mark.to_owned() } else { " ".repeat(mark.len()) };
        let words = self.inline(&words);
        self.text += &wrapped(&words, &format!("{indent}{mark}"), &format!("{indent}{rest}"), self.columns);
    }

    /// Links as their texts, with the address of another site behind it; emphasised words without their marks.
    fn inline(&self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        // Every second part is code, which stays as it is.
        for (number, part) in text.split('`').enumerate() {
            if number > 0 {
                shown.push('`');
            }
            shown += &if number % 2 == 1 { part.to_owned() } else { self.emphasised(part) };
        }
        without_links(&shown)
    }

    fn emphasised(&self, text: &str) -> String {
        let parts: Vec<&str> = text.split("**").collect();
        // A single mark is none.
        if parts.len().is_multiple_of(2) {
            return text.to_owned();
        }
        let shown = parts.iter().enumerate().map(|(number, part)| match number % 2 {
            1 => self.bold(part),
            _ => (*part).to_owned(),
        });
        shown.collect()
    }

    fn bold(&self, text: &str) -> String {
        if self.is_styled { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Reads over a comment that begins in this line.
fn comment(line: &str, lines: &mut Peekable<Lines<'_>>) {
    if !line.contains("-->") {
        let _ = lines.find(|line| line.contains("-->"));
    }
}

/// The words of a heading.
fn heading(line: &str) -> Option<&str> {
    let words = line.trim_start_matches('#');
    let level = line.len() - words.len();
    words.strip_prefix(' ').filter(|_| (1..=6).contains(&level))
}

/// The mark at the beginning of an item or a quote, with its space; empty for a paragraph.
fn mark(line: &str) -> &str {
    if line.starts_with("- ") || line.starts_with("* ") || line.starts_with("> ") {
        return &line[..2];
    }
    let digits = line.len() - line.trim_start_matches(|char: char| char.is_ascii_digit()).len();
    let is_item = (1..=3).contains(&digits) && line[digits..].starts_with(". ");
    if is_item { &line[..digits + 2] } else { "" }
}

/// True when a line belongs to the paragraph before it.
fn continues(line: &str) -> bool {
    let body = line.trim_start();
    let mark = mark(body);
    let begins = body.is_empty() || body.starts_with("```") || body.starts_with('|') || body.starts_with("<!--");
    !begins && heading(line).is_none() && (mark.is_empty() || mark == "> ")
}

/// The texts of links. An address of another site follows in parentheses.
fn without_links(text: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, words, address, after)) = link(rest) {
        shown += before;
        shown += words;
        if address.starts_with("http") && address != words {
            shown += &format!(" ({address})");
        }
        rest = after;
    }
    shown + rest
}

/// The text before the first link, its words, its address, and the text after it.
fn link(text: &str) -> Option<(&str, &str, &str, &str)> {
    let (head, tail) = text.split_once("](")?;
    let (before, words) = head.rsplit_once('[')?;
    let (address, after) = tail.split_once(')')?;
    Some((before, words, address, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(page: &str, expected: &str) {
        assert_eq!(rendered(page, 24, false), expected);
    }

    #[test]
    fn each_kind_of_block_has_its_form() {
        check("# A page\n\nWords that go on\nand on here.\n", "A page\n\nWords that go on and on\nhere.\n");
        check("```sh,no-test=why\nlonghaul run --with-a-long-option\n```\n", "    longhaul run --with-a-long-option\n");
        check("- one item that is long\n  and more\n- two\n", "- one item that is long\n  and more\n- two\n");
        check("1. first\n2. second\n", "1. first\n2. second\n");
        check("| a | b |\n|---|---|\n", "| a | b |\n|---|---|\n");
        check("| a |\n|---|\n| [b](c.md) |\n\nnext\n", "| a |\n|---|\n| b |\n\nnext\n");
        check("> quoted words here\n> and more\n", "> quoted words here and\n> more\n");
        check("<!-- hidden\nstill -->\nseen\n", "seen\n");
        check("#hashtag\n", "#hashtag\n");
    }

    #[test]
    fn links_and_emphasis_are_plain_words() {
        check("See [the guide](../a.md), **now**.\n", "See the guide, now.\n");
        check("[site](https://x.org)\n", "site (https://x.org)\n");
        check("`a ** b` and 2 ** 3\n", "`a ** b` and 2 ** 3\n");
        assert_eq!(rendered("# **One** `x`\n", 80, true), "\u{1b}[1m\u{1b}[1mOne\u{1b}[0m `x`\u{1b}[0m\n");
    }

    #[test]
    fn an_unclosed_block_ends_with_the_page() {
        check("```\ncode\n", "    code\n");
        check("<!-- open\nlost\n", "");
    }
}
