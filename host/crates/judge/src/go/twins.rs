//! Edits that make a Go test certainly fail where it passed.
//!
//! The best edit is a near expected value: `got != 5`, in the statement itself, in a row of a table that a loop goes
//! through, or in `assert.Equal`. Else a negated condition, else a failing assertion. Only statements count that a
//! passing test reaches: one that may leave a block before them ends the search.

use super::scan::{Kind, Test, arguments, covered_until};
use crate::clike::{Edit, blank, closing, find, is_literal, is_word, near, trimmed};
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use std::ops::Range;

/// Methods of `testing.T` that fail a test.
const FAILS: [&str; 6] = ["Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"];

/// Calls that are true for equal values.
const EQUALS: [&str; 4] = ["!reflect.DeepEqual(", "!slices.Equal(", "!cmp.Equal(", "!maps.Equal("];

/// Parts of the names of calls that are true for unequal values.
const UNLIKE_EQUAL: [&str; 6] = ["not", "almost", "approx", "near", "close", "fold"];

/// Assertions of testify, and their opposites.
const OPPOSITES: [(&str, &str); 6] = [
    ("Equal", "NotEqual"),
    ("True", "False"),
    ("NoError", "Error"),
    ("Nil", "NotNil"),
    ("Empty", "NotEmpty"),
    ("Contains", "NotContains"),
];

/// Edits each of which makes the test certainly fail where it passed; at most `count`, at least one.
pub(super) fn edits(
    test: &Test,
    text: &str,
    covered: &[u8],
    count: usize,
    has_subtests: bool,
    random: &mut StdRng,
) -> Vec<Edit> {
    if test.kind == Kind::Example {
        return output(text, test.body.clone()).map(|span| near_output(text, &span, count, random)).unwrap_or_default();
    }
    let mut search =
        Search { text, covered, function: test.body.clone(), has_subtests, values: vec![], others: vec![] };
    if test.kind == Kind::Test {
        search.block(test.body.clone(), &test.param, None);
    }
    let Search { values, mut others, .. } = search;
    let changed = |span: Range<usize>, random: &mut StdRng| {
        near(&text[span.clone()], count, random).into_iter().map(|with| (span.clone(), with)).collect::<Vec<_>>()
    };
    let mut found: Vec<Edit> = values.into_iter().flat_map(|span| changed(span, random)).collect();
    found.shuffle(random);
    found.truncate(count);
    if found.is_empty() {
        others.shuffle(random);
        found.extend(others.into_iter().take(1));
    }
    if found.is_empty() {
        found.push(canary(test, random));
    }
    found
}

/// An assertion that fails before anything else of a test runs.
pub(super) fn canary(test: &Test, random: &mut StdRng) -> Edit {
    let left: u32 = random.random_range(0..4_096);
    let right = left + random.random_range(1..5);
    let start = test.body.start;
    (start..start, format!("\n\tif got := {left}; got != {right} {{\n\t\t{}.FailNow()\n\t}}\n", test.param))
}

/// Makes a panicking test fail alone: a twin may panic if the code after an assertion relies on it.
pub(super) fn panics_alone(test: &Test) -> Option<Edit> {
    let (start, param) = (test.body.start, &test.param);
    let deferred = format!(" defer func() {{ if said := recover(); said != nil {{ {param}.Error(said) }} }}();");
    (test.kind != Kind::Example).then_some((start..start, deferred))
}

/// Texts that reveal expected values beside them: comments, and messages of failures.
pub(super) fn masks(test: &Test, text: &str, covered: &[u8]) -> Vec<Edit> {
    let mut masks: Vec<Edit> = Vec::new();
    if test.kind != Kind::Example {
        let ends_line = |span: &Range<usize>| if text[span.clone()].contains('\n') { "\n" } else { "" };
        let found = comments(text, test.body.clone()).into_iter();
        masks.extend(found.map(|span| (span.clone(), ends_line(&span).to_owned())));
    }
    for open in failures(covered, test.body.clone(), &test.param) {
        let Some((spans, _)) = arguments(text, covered, open) else { continue };
        for span in spans {
            let inner = &text[span.clone()];
            let is_text = inner.starts_with(['"', '`']) && covered[span.clone()].iter().all(u8::is_ascii_whitespace);
            if is_text {
                masks.push((span, "\"\"".to_owned()));
            } else if is_literal(inner) {
                masks.push((span, "0".to_owned()));
            }
        }
    }
    // A comment may stand within a message's arguments.
    masks.sort_by_key(|(span, _)| span.start);
    masks.dedup_by(|later, kept| later.0.start < kept.0.end);
    masks
}

/// The text that an example must print, in the comment at its end.
pub(super) fn output(text: &str, body: Range<usize>) -> Option<Range<usize>> {
    let found = comments(text, body);
    let is_apart = |pair: &[Range<usize>]| {
        let between = &text[pair[0].end..pair[1].start];
        !between.trim().is_empty() || between.matches('\n').count() > 1
    };
    let group = &found[found.windows(2).rposition(is_apart).map_or(0, |at| at + 1)..];
    let (first, last) = (group.first()?, group.last()?);
    let lower = text[first.clone()].trim_start_matches(['/', '*']).trim_start().to_ascii_lowercase();
    let rest = lower.strip_prefix("unordered ").unwrap_or(&lower).strip_prefix("output:")?;
    Some(last.start.max(first.end - rest.len())..last.end)
}

fn near_output(text: &str, span: &Range<usize>, count: usize, random: &mut StdRng) -> Vec<Edit> {
    let span = trimmed(text, span);
    let inner = text[span.clone()].trim_start_matches("//").trim();
    if is_literal(inner) {
        let start = span.end - inner.len();
        return near(inner, count, random).into_iter().map(|with| (start..span.end, with)).collect();
    }
    let word = |random: &mut StdRng| char::from(random.random_range(b'a'..=b'z')).to_string();
    let at = if text[..span.end].ends_with("*/") { span.end - 2 } else { span.end };
    (0..count).map(|_| (at..at, word(random))).collect()
}

/// The places of comments in a part.
pub(super) fn comments(text: &str, part: Range<usize>) -> Vec<Range<usize>> {
    let (bytes, mut at, mut found) = (text.as_bytes(), part.start, Vec::new());
    while at < part.end {
        let end = covered_until(bytes, at);
        if end > at && bytes[at] == b'/' {
            found.push(at..end);
        }
        at = end.max(at + 1);
    }
    found
}

/// A table of rows that a loop goes through.
struct Table {
    /// The names of its columns, if they are written with it.
    columns: Vec<String>,
    rows: Vec<Vec<Range<usize>>>,
}

/// A loop's name for a row of its table.
struct Rows {
    table: Table,
    variable: String,
    body: Range<usize>,
}

struct Search<'a> {
    text: &'a str,
    covered: &'a [u8],
    function: Range<usize>,
    has_subtests: bool,
    /// Literals that are certainly compared.
    values: Vec<Range<usize>>,
    /// Negated conditions.
    others: Vec<Edit>,
}

impl Search<'_> {
    /// Examines the statements of a block until one may leave it.
    fn block(&mut self, block: Range<usize>, param: &str, rows: Option<&Rows>) {
        let mut at = block.start;
        while at < block.end {
            at += blank(&self.covered[at..block.end]);
            let end = self.statement_end(at, block.end);
            let statement = at..end;
            let goes_on = match self.word(at) {
                "return" | "goto" | "break" | "continue" | "panic" => false,
                "if" => self.condition(statement, param, rows),
                "for" => self.repeated(statement, param),
                "switch" | "select" => !self.leaves(statement),
                _ => {
                    self.call(statement, param, rows);
                    true
                }
            };
            if !goes_on {
                return;
            }
            at = end + 1;
        }
    }

    /// `if got := f(); got != 5 { t.Errorf(...) }`. Returns whether the code after it is reached.
    fn condition(&mut self, statement: Range<usize>, param: &str, rows: Option<&Rows>) -> bool {
        let header_start = statement.start + 2;
        let Some(open) = self.block_start(header_start..statement.end) else { return !self.leaves(statement) };
        let Some(close) = closing(self.covered, open) else { return false };
        let is_failure = failures(self.covered, open + 1..close, param).into_iter().any(|at| self.is_top(open + 1, at));
        if !is_failure || self.has_word(header_start..open, &["func"]) {
            return !self.leaves(statement);
        }
        let start = self.last_at_top(header_start..open, b';').map_or(header_start, |at| at + 1);
        let condition = trimmed(self.text, &(start..open));
        self.others.push((condition.clone(), format!("!({})", &self.text[condition.clone()])));
        if self.parted(&condition, "&&").len() == 1 {
            for part in self.parted(&condition, "||") {
                let sides = self.compared(&part);
                let literals = sides.iter().flat_map(|side| self.literals(side, rows, &statement)).collect::<Vec<_>>();
                self.values.extend(literals);
            }
        }
        !self.leaves(close + 1..statement.end)
    }

    /// The two sides that must be equal for a test to pass.
    fn compared(&self, part: &Range<usize>) -> Vec<Range<usize>> {
        let whole = &self.text[part.clone()];
        if let Some(call) = EQUALS.iter().find(|call| whole.starts_with(**call)) {
            let found = arguments(self.text, self.covered, part.start + call.len() - 1);
            return found.filter(|(_, end)| end + 1 == part.end).map(|(spans, _)| spans).unwrap_or_default();
        }
        let sides = self.parted(part, "!=");
        if sides.len() == 2 { sides } else { Vec::new() }
    }

    /// Literals that decide a value: the value itself, the elements of a slice, or a column of a table.
    fn literals(&self, side: &Range<usize>, rows: Option<&Rows>, statement: &Range<usize>) -> Vec<Range<usize>> {
        let whole = &self.text[side.clone()];
        if is_literal(whole) {
            return vec![side.clone()];
        }
        if whole.starts_with("[]") && whole.ends_with('}') {
            let open =
                find(self.covered, b"{", side.start).filter(|open| closing(self.covered, *open) == Some(side.end - 1));
            let spans = open.and_then(|open| arguments(self.text, self.covered, open));
            let spans = spans.map(|(spans, _)| spans).unwrap_or_default();
            return spans.into_iter().filter(|span| is_literal(&self.text[span.clone()])).collect();
        }
        let Some(rows) = rows else { return Vec::new() };
        let column = whole.strip_prefix(rows.variable.as_str()).and_then(|rest| rest.strip_prefix('.'));
        let Some(column) = column.filter(|column| column.bytes().all(is_word)) else { return Vec::new() };
        if self.is_used_elsewhere(whole, rows, statement) {
            return Vec::new();
        }
        let cells = rows.table.rows.iter().filter_map(|row| self.cell(row, column, &rows.table.columns));
        cells.flat_map(|cell| self.literals(&cell, None, statement)).collect()
    }

    /// True when a column decides more than the comparison and the text of a failure.
    fn is_used_elsewhere(&self, name: &str, rows: &Rows, statement: &Range<usize>) -> bool {
        let (mut from, mut is_used) = (rows.body.start, false);
        while let Some(at) = find(&self.covered[..rows.body.end], name.as_bytes(), from) {
            from = at + name.len();
            is_used |= !self.covered.get(from).is_some_and(|byte| is_word(*byte)) && !statement.contains(&at);
        }
        is_used
    }

    /// A column of a row: by its name, or by its position.
    fn cell(&self, row: &[Range<usize>], column: &str, columns: &[String]) -> Option<Range<usize>> {
        let keyed = |cell: &Range<usize>| {
            let at = self.last_at_top(cell.clone(), b':')?;
            let is_it = self.text[cell.start..at].trim() == column;
            Some(is_it.then(|| trimmed(self.text, &(at + 1..cell.end))))
        };
        if row.iter().any(|cell| keyed(cell).is_some()) {
            return row.iter().find_map(|cell| keyed(cell).flatten());
        }
        row.get(columns.iter().position(|name| name == column)?).cloned()
    }

    /// `for _, tt := range tests { ... }`, with a table of the function. Returns whether the code after it is reached.
    fn repeated(&mut self, statement: Range<usize>, param: &str) -> bool {
        let goes_on = !self.has_word(statement.clone(), &["return", "goto"]);
        let Some(open) = self.block_start(statement.start + 3..statement.end) else { return goes_on };
        let Some(close) = closing(self.covered, open) else { return false };
        let words: Vec<&str> = self.text[statement.start..open].split_whitespace().collect();
        let ["for", _, variable, ":=", "range", table] = words.as_slice() else { return goes_on };
        let Some(table) = self.table(table, statement.start) else { return goes_on };
        let body = open + 1..close;
        let whole = &self.text[body.clone()];
        // Parallel subtests saw only the last row before Go 1.22.
        let is_shared = whole.contains(".Parallel()") && !whole.contains(&format!("{variable} := {variable}"));
        let rows = Rows { table, variable: (*variable).to_owned(), body: body.clone() };
        self.block(body, param, Some(&rows).filter(|_| !is_shared));
        goes_on
    }

    /// `tests := []struct{ ... }{ ... }` of this function, with at least one row.
    fn table(&self, name: &str, before: usize) -> Option<Table> {
        let before_it = &self.covered[..before];
        let forms = [format!("{name} := "), format!("var {name} = ")];
        let found = |form: &String| Some((find(before_it, form.as_bytes(), self.function.start)?, form.len()));
        let (at, length) = forms.iter().find_map(found)?;
        let is_once = find(before_it, format!("{name} =").as_bytes(), at + length).is_none();
        if !is_once || is_word(self.covered[at.checked_sub(1)?]) {
            return None;
        }
        let kind = at + length;
        let rest = &self.covered[kind..];
        let is_map = rest.starts_with(b"map[");
        let bracket = if is_map { kind + 3 } else { kind };
        let element = closing(self.covered, bracket).filter(|_| self.covered[bracket] == b'[')? + 1;
        let (columns, open) = if self.covered[element..].starts_with(b"struct") {
            let fields = find(self.covered, b"{", element)?;
            let end = closing(self.covered, fields)?;
            (columns(&self.text[fields + 1..end]), end + 1)
        } else {
            (Vec::new(), find(self.covered, b"{", element)?)
        };
        if self.covered.get(open) != Some(&b'{') {
            return None;
        }
        let (spans, _) = arguments(self.text, self.covered, open)?;
        let row = |span: Range<usize>| {
            let start = if is_map { self.first_at_top(span.clone(), b':')? + 1 } else { span.start };
            let open = find(&self.covered[..span.end], b"{", start)?;
            arguments(self.text, self.covered, open).filter(|(_, end)| end + 1 == span.end).map(|(cells, _)| cells)
        };
        let rows: Vec<_> = spans.into_iter().map(row).collect::<Option<_>>()?;
        (!rows.is_empty()).then_some(Table { columns, rows })
    }

    /// `t.Run(name, func(t *testing.T) { ... })` and assertions of testify.
    fn call(&mut self, statement: Range<usize>, param: &str, rows: Option<&Rows>) {
        let Some(open) = find(&self.covered[..statement.end], b"(", statement.start) else { return };
        let Some((spans, _)) = arguments(self.text, self.covered, open) else { return };
        let (receiver, method) =
            self.text[statement.start..open].split_once('.').unwrap_or(("", &self.text[statement.start..open]));
        let has_param = spans.first().is_some_and(|first| self.text[first.clone()] == *param);
        let is_testify = has_param && matches!(receiver, "assert" | "require");
        if receiver == param && method == "Run" && self.has_subtests {
            self.subtest(&spans, rows);
        }
        let sides = if has_param { &spans[1..] } else { &spans[..] };
        // A third argument may be a name, or a message.
        let is_equal =
            is_testify && matches!(method, "Equal" | "Equalf" | "EqualValues" | "Exactly") && sides.len() > 1
                || is_equal(method) && sides.len() == 2 && (has_param || !receiver.is_empty());
        if is_equal {
            let found = sides[..2].iter().flat_map(|side| self.literals(side, rows, &statement)).collect::<Vec<_>>();
            self.values.extend(found);
        }
        if is_testify {
            let pairs = OPPOSITES.iter().flat_map(|(one, other)| [(*one, *other), (*other, *one)]);
            let opposite = pairs.into_iter().find(|(one, _)| *one == method);
            if let Some((_, opposite)) = opposite.filter(|_| self.text.contains("github.com/stretchr/testify/")) {
                self.others.push((open - method.len()..open, opposite.to_owned()));
            }
        }
    }

    fn subtest(&mut self, spans: &[Range<usize>], rows: Option<&Rows>) {
        let Some(closure) = spans.get(1).filter(|span| self.text[(*span).clone()].starts_with("func(")) else { return };
        let Some(end) = closing(self.covered, closure.start + 4) else { return };
        let params = &self.text[closure.start + 5..end];
        let Some((param, _)) = params.split_once(' ').map(|(name, kind)| (name.to_owned(), kind)) else { return };
        let open = end + 1 + blank(&self.covered[end + 1..]);
        let Some(close) = closing(self.covered, open).filter(|_| self.covered[open] == b'{') else { return };
        self.block(open + 1..close, &param, rows);
    }

    fn word(&self, at: usize) -> &str {
        let end = at + self.covered[at..].iter().take_while(|byte| is_word(**byte)).count();
        &self.text[at..end]
    }

    fn leaves(&self, span: Range<usize>) -> bool {
        self.has_word(span, &["return", "goto", "break", "continue"])
    }

    fn has_word(&self, span: Range<usize>, words: &[&str]) -> bool {
        let is_start = |at: &usize| *at == 0 || !is_word(self.covered[*at - 1]);
        span.filter(|at| is_word(self.covered[*at])).filter(is_start).any(|at| words.contains(&self.word(at)))
    }

    /// The end of the line on which no bracket is open any more.
    fn statement_end(&self, start: usize, end: usize) -> usize {
        self.first_at_top(start..end, b'\n').unwrap_or(end)
    }

    fn first_at_top(&self, span: Range<usize>, wanted: u8) -> Option<usize> {
        self.at_top(span).find(|at| self.covered[*at] == wanted)
    }

    fn last_at_top(&self, span: Range<usize>, wanted: u8) -> Option<usize> {
        self.at_top(span).filter(|at| self.covered[*at] == wanted).last()
    }

    /// True when no bracket is open between `start` and `at`.
    fn is_top(&self, start: usize, at: usize) -> bool {
        // The bracket of the call itself.
        self.covered[start..at].iter().fold(0_i32, |depth, byte| depth + turn(*byte)) == 0
    }

    /// The places of a span where no bracket is open.
    fn at_top(&self, span: Range<usize>) -> impl Iterator<Item = usize> {
        let mut depth = 0_i32;
        span.filter(move |at| {
            depth += turn(self.covered[*at]);
            depth == 0
        })
    }

    /// The bracket of the block after the header of a statement, as `gofmt` writes it: after a blank, unlike that of a
    /// literal.
    fn block_start(&self, span: Range<usize>) -> Option<usize> {
        let mut depth = 0_i32;
        for at in span.clone() {
            let byte = self.covered[at];
            let is_block = byte == b'{' && depth == 0 && self.covered[at - 1] == b' ';
            let is_type = |word: &&[u8]| self.covered[span.start..at].trim_ascii_end().ends_with(word);
            if is_block && ![&b"struct"[..], b"interface"].iter().any(is_type) {
                return Some(at);
            }
            depth += turn(byte);
        }
        None
    }

    /// Splits a span at an operator outside of brackets.
    fn parted(&self, span: &Range<usize>, operator: &str) -> Vec<Range<usize>> {
        let places: Vec<usize> = self
            .at_top(span.clone())
            .filter(|at| self.covered[*at..span.end].starts_with(operator.as_bytes()))
            .collect();
        let starts = std::iter::once(span.start).chain(places.iter().map(|at| at + operator.len()));
        let ends = places.iter().copied().chain([span.end]);
        starts.zip(ends).map(|(start, end)| trimmed(self.text, &(start..end))).collect()
    }
}

/// True when a call of this name makes a test fail if its two sides differ.
fn is_equal(method: &str) -> bool {
    let name = method.to_ascii_lowercase();
    name.bytes().all(is_word) && name.contains("equal") && !UNLIKE_EQUAL.iter().any(|part| name.contains(part))
}

fn turn(byte: u8) -> i32 {
    match byte {
        b'(' | b'[' | b'{' => 1,
        b')' | b']' | b'}' => -1,
        _ => 0,
    }
}

/// Names of the fields of a struct, in their order.
fn columns(fields: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in fields.split(['\n', ';']).map(|line| line.split("//").next().unwrap_or_default().trim()) {
        let mut rest = line;
        while let Some((name, more)) = rest.split_once(',').filter(|(name, _)| name.bytes().all(is_word)) {
            names.push(name.to_owned());
            rest = more.trim_start();
        }
        names.extend(rest.split_whitespace().next().map(str::to_owned));
    }
    names
}

/// The opening brackets of calls that fail a test.
fn failures(covered: &[u8], span: Range<usize>, param: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for method in FAILS {
        let call = format!("{param}.{method}(");
        let mut from = span.start;
        while let Some(at) = find(&covered[..span.end], call.as_bytes(), from) {
            from = at + call.len();
            if !at.checked_sub(1).is_some_and(|before| is_word(covered[before]) || covered[before] == b'.') {
                found.push(from - 1);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::scan::covered;
    use super::super::source::tests;
    use super::*;
    use rand::SeedableRng as _;

    /// The changed lines, with a star for each replaced literal.
    #[track_caller]
    fn check(body: &str, expected: &[&str]) {
        let text = format!(
            "package p\n\nimport \"github.com/stretchr/testify/assert\"\n\n\
                            func TestIt(t *testing.T) {{\n{body}\n}}\n"
        );
        let test = tests(&text).remove(0);
        let found = edits(&test, &text, &covered(&text), 40, true, &mut StdRng::from_seed([3; 32]));
        let mut said: Vec<String> = found.iter().map(|(span, with)| told(&text, span, with)).collect();
        said.sort();
        said.dedup();
        assert_eq!(said, expected, "{body}");
    }

    fn told(text: &str, span: &Range<usize>, with: &str) -> String {
        let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
        let end = text[span.end..].find('\n').map_or(text.len(), |at| span.end + at);
        let with = if is_literal(&text[span.clone()]) { "*" } else { with };
        if with.contains("FailNow") {
            return "CANARY".to_owned();
        }
        format!("{}{with}{}", &text[start..span.start], &text[span.end..end]).trim().to_owned()
    }

    #[test]
    fn what_is_compared_for_certain_is_changed() {
        check("if got := Add(2, 3); got != 5 {\n\tt.Errorf(\"5\")\n}", &["if got := Add(2, 3); got != * {"]);
        check("if err != nil || \"a\" != got {\n\tt.Fatal(err)\n}", &["if err != nil || * != got {"]);
        check(
            "if !reflect.DeepEqual(f(1), []int{1, 2}) {\n\tt.Fail()\n}",
            &["if !reflect.DeepEqual(f(1), []int{*, 2}) {", "if !reflect.DeepEqual(f(1), []int{1, *}) {"],
        );
        check("assert.Equal(t, 5, Add(2, 3))", &["assert.Equal(t, *, Add(2, 3))"]);
        check("assertEqual(t, Add(2, 3), 5)", &["assertEqual(t, Add(2, 3), *)"]);
        check("assertEqual(t, \"sum\", Add(2, 3), 5)", &["CANARY"]);
        check("t.Run(\"a\", func(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Fatal()\n\t}\n})", &["if f() != * {"]);
    }

    #[test]
    fn a_row_of_a_table_is_changed() {
        let of = |table: &str, body: &str| format!("tests := {table}\nfor _, tt := range tests {{\n{body}\n}}");
        let compares = "if got := f(tt.in); got != tt.want {\n\tt.Errorf(\"%d\", tt.want)\n}";
        let table = "[]struct {\n\tname, in string\n\twant int\n}{\n\t{\"a\", \"b\", 1},\n\t{\"c\", \"d\", 2},\n}";
        check(&of(table, compares), &["{\"a\", \"b\", *},", "{\"c\", \"d\", *},"]);
        let run = format!("t.Run(tt.name, func(t *testing.T) {{\n{compares}\n}})");
        check(&of(table, &run), &["{\"a\", \"b\", *},", "{\"c\", \"d\", *},"]);
        check(&of("[]row{\n\t{in: 1, want: 7},\n}", compares), &["{in: 1, want: *},"]);
        check(&of("map[string]row{\n\t\"a\": {want: 7},\n}", compares), &["\"a\": {want: *},"]);
        let turned = "if got := f(tt.in); !(got != tt.want) {";
        check(&of("[]row{\n\tmade(1),\n}", compares), &["CANARY"]);
        check(&of(table, &format!("skip(tt.want)\n{compares}")), &[turned]);
        check(&of(table, &format!("if tt.in == 3 {{\ncontinue\n}}\n{compares}")), &["CANARY"]);
    }

    #[test]
    fn a_condition_is_turned_round_and_what_is_not_sure_is_left() {
        check("if !ok() {\n\tt.Fatal()\n}", &["if !(!ok()) {"]);
        check("assert.True(t, ok())", &["assert.False(t, ok())"]);
        check("if a != 1 && b != 2 {\n\tt.Fatal()\n}", &["if !(a != 1 && b != 2) {"]);
        check(
            "if err := f(); err != nil {\n\tt.Error(err)\n\treturn\n}\nif g() != 1 {\n\tt.Fail()\n}",
            &["if g() != * {"],
        );
        for unsure in [
            "if f() {\n\treturn\n}\nif g() != 1 {\n\tt.Fail()\n}",
            "for i := 0; i < n(); i++ {\n\tif i != 1 {\n\t\tt.Fail()\n\t}\n}",
            "helper(t)",
            "go func() {\n\tif f() != 1 {\n\t\tt.Fail()\n\t}\n}()",
        ] {
            check(unsure, &["CANARY"]);
        }
    }

    #[test]
    fn the_output_of_an_example_is_at_its_end() {
        let of = |body: &str| output(body, 0..body.len()).map(|span| body[span].trim().to_owned());
        assert_eq!(of("f()\n// Output: 5\n"), Some("5".to_owned()));
        assert_eq!(of("f()\n// unordered output:\n// a\n// b\n"), Some("// b".to_owned()));
        assert_eq!(of("f()\n// Output: 5\ng() // more\n"), None);
        assert_eq!(of("f()\n// so\n// Output: 5\n"), None);
        assert_eq!(of("f()"), None);
    }
}
