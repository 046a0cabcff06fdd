//! The words of a model as people read them while they come.
//!
//! Models answer agents in JSON: alone, within a fence or among words. Of such an object only the text of the field
//! `thought` is shown, decoded as it comes. Words and code are shown as they are. This file decides nothing of an
//! agent's work.

/// Most bytes that are kept of the shown text. Beyond them the beginning is dropped.
const SHOWN_BYTES_MAX: usize = 32 << 10;

/// The field of an object that is shown.
const THOUGHT: &str = "thought";

/// Most lines of one reply that stay in the record, and most characters of a line.
const LINES_MAX: usize = 8;
const LINE_CHARS_MAX: usize = 200;

/// A reply, as it comes.
#[derive(Debug, Default)]
pub struct Speech {
    shown: String,
    /// An object was skipped, so that the next text begins on a line of its own.
    has_gap: bool,
    at: Place,
}

/// The position in a reply.
#[derive(Debug)]
enum Place {
    /// At the beginning of a line, with its spaces and marks so far.
    LineStart(String),
    /// Within a line of words.
    Words,
    /// Behind a brace or bracket and spaces, before it is known whether that is JSON.
    Opening(String, Fence),
    /// Within JSON.
    Json(Object, Fence),
    /// In the line that opens a fence.
    FenceHead(String),
    /// Behind the line that opens a fence, before the content is known.
    FenceStart(String),
    /// At the beginning of a line of code.
    CodeStart(String),
    /// Within a line of code.
    Code,
    /// Behind the JSON of a fence, up to its end.
    FenceRest(String),
}

/// The place of JSON, within a fence of Markdown or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fence {
    Within,
    Without,
}

impl Default for Place {
    fn default() -> Self {
        Self::LineStart(String::new())
    }
}

impl Speech {
    /// Takes another piece.
    pub fn push(&mut self, piece: &str) {
        piece.chars().for_each(|char| self.step(char));
        if self.shown.len() > SHOWN_BYTES_MAX {
            let from = self.shown.ceil_char_boundary(self.shown.len() - SHOWN_BYTES_MAX / 2);
            self.shown.drain(..from);
        }
    }

    /// The text that is shown so far.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    fn step(&mut self, char: char) {
        self.at = match std::mem::take(&mut self.at) {
            Place::LineStart(begun) => self.line_start(begun, char),
            Place::Words => self.words(char),
            Place::Opening(begun, fence) => self.opening(begun, fence, char),
            Place::Json(mut object, fence) => match object.step(char) {
                Step::Shown(char) => {
                    self.show_char(char);
                    Place::Json(object, fence)
                }
                Step::Nothing => Place::Json(object, fence),
                Step::End => {
                    self.has_gap = true;
                    if fence == Fence::Within { Place::FenceRest(String::new()) } else { Place::default() }
                }
            },
            Place::FenceHead(head) if char == '\n' => self.fence_start(head),
            // Three backticks within a line are no fence.
            Place::FenceHead(head) if char == '`' => self.show_as(&format!("```{head}`"), Place::Words),
            Place::FenceHead(head) => Place::FenceHead(head + char.encode_utf8(&mut [0; 4])),
            Place::FenceStart(begun) => self.fence_first(begun, char),
            Place::CodeStart(begun) => self.code_start(begun, char),
            Place::Code => {
                self.show_char(char);
                if char == '\n' { Place::CodeStart(String::new()) } else { Place::Code }
            }
            Place::FenceRest(marks) => match (char, marks.as_str()) {
                ('`', "``") => Place::default(),
                ('`', _) => Place::FenceRest(marks + "`"),
                _ => Place::FenceRest(String::new()),
            },
        };
    }

    fn line_start(&mut self, begun: String, char: char) -> Place {
        let is_blank = begun.chars().all(char::is_whitespace);
        let more = begun + char.encode_utf8(&mut [0; 4]);
        match char {
            '\n' => self.show_as(&more, Place::default()),
            '`' if more.trim_start() == "```" => Place::FenceHead(String::new()),
            '`' if more.trim_start().len() < 3 => Place::LineStart(more),
            '{' | '[' if is_blank => Place::Opening(more, Fence::Without),
            _ if is_blank && char.is_whitespace() => Place::LineStart(more),
            _ => self.show_as(&more, Place::Words),
        }
    }

    fn words(&mut self, char: char) -> Place {
        match char {
            '{' => Place::Opening("{".to_owned(), Fence::Without),
            '\n' => self.show_as("\n", Place::default()),
            _ => {
                self.show_char(char);
                Place::Words
            }
        }
    }

    /// In JSON an object begins with the quote of a key, and a list with an object, a list or a text.
    fn opening(&mut self, begun: String, fence: Fence, char: char) -> Place {
        let is_object = begun.trim_start().starts_with('{');
        match char {
            _ if char.is_whitespace() => Place::Opening(begun + char.encode_utf8(&mut [0; 4]), fence),
            '"' | '}' if is_object => self.json(true, fence, char),
            '{' | '[' | '"' if !is_object => self.json(false, fence, char),
            _ if fence == Fence::Within => {
                self.show("```\n");
                self.show(&begun);
                self.again(Place::Code, char)
            }
            _ => {
                self.show(&begun);
                self.again(Place::Words, char)
            }
        }
    }

    fn json(&mut self, is_object: bool, fence: Fence, first: char) -> Place {
        self.has_gap = !self.shown.is_empty();
        self.again(Place::Json(Object::new(is_object), fence), first)
    }

    fn fence_start(&mut self, head: String) -> Place {
        match head.trim().to_ascii_lowercase().as_str() {
            "" | "json" | "json5" | "jsonc" => Place::FenceStart(String::new()),
            _ => self.show_as(&format!("```{head}\n"), Place::CodeStart(String::new())),
        }
    }

    fn fence_first(&mut self, begun: String, char: char) -> Place {
        match char {
            '{' | '[' => Place::Opening(begun + char.encode_utf8(&mut [0; 4]), Fence::Within),
            _ if char.is_whitespace() => Place::FenceStart(begun + char.encode_utf8(&mut [0; 4])),
            _ => {
                self.show("```\n");
                self.again(Place::CodeStart(begun), char)
            }
        }
    }

    fn code_start(&mut self, begun: String, char: char) -> Place {
        let more = begun + char.encode_utf8(&mut [0; 4]);
        match char {
            '`' if more.trim_start() == "```" => self.show_as("```", Place::Words),
            '`' if more.trim_start().len() < 3 => Place::CodeStart(more),
            '\n' => self.show_as(&more, Place::CodeStart(String::new())),
            _ if more.trim().is_empty() => Place::CodeStart(more),
            _ => self.show_as(&more, Place::Code),
        }
    }

    fn again(&mut self, at: Place, char: char) -> Place {
        self.at = at;
        self.step(char);
        std::mem::take(&mut self.at)
    }

    fn show_as(&mut self, text: &str, next: Place) -> Place {
        self.show(text);
        next
    }

    fn show_char(&mut self, char: char) {
        self.show(char.encode_utf8(&mut [0; 4]));
    }

    fn show(&mut self, text: &str) {
        // The text never begins with an empty line.
        let text = if self.shown.is_empty() { text.trim_start_matches('\n') } else { text };
        let text = if self.has_gap { text.trim_start() } else { text };
        if text.is_empty() {
            return;
        }
        if std::mem::take(&mut self.has_gap) && !self.shown.is_empty() && !self.shown.ends_with('\n') {
            self.shown.push('\n');
        }
        self.shown.push_str(text);
    }
}

/// JSON as it comes, with the current field of the outermost object.
#[derive(Debug)]
struct Object {
    is_object: bool,
    /// Open braces and brackets.
    depth: u32,
    key: String,
    /// True when a colon followed the last comma, in the outermost object.
    in_value: bool,
    text: Option<Text>,
}

/// A string within JSON.
#[derive(Debug)]
struct Text {
    role: Role,
    escape: Escape,
    /// The first half of a character that is written as a surrogate pair.
    high: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Key,
    Thought,
    Other,
}

#[derive(Clone, Copy, Debug)]
enum Escape {
    None,
    Begun,
    /// Of a `\u` escape: the digits so far, and their number.
    Code(u32, u8),
}

enum Step {
    Shown(char),
    Nothing,
    End,
}

impl Object {
    fn new(is_object: bool) -> Self {
        Self { is_object, depth: 1, key: String::new(), in_value: false, text: None }
    }

    fn step(&mut self, char: char) -> Step {
        if let Some(text) = &mut self.text {
            let role = text.role;
            return match text.step(char) {
                TextStep::Char(char) => self.take(role, char),
                TextStep::Nothing => Step::Nothing,
                TextStep::End => {
                    self.text = None;
                    Step::Nothing
                }
            };
        }
        let is_outermost = self.depth == 1 && self.is_object;
        match char {
            '"' => {
                let role = match (is_outermost, self.in_value) {
                    (true, false) => Role::Key,
                    (true, true) if self.key == THOUGHT => Role::Thought,
                    _ => Role::Other,
                };
                if role == Role::Key {
                    self.key.clear();
                }
                self.text = Some(Text { role, escape: Escape::None, high: None });
            }
            ':' if is_outermost => self.in_value = true,
            ',' if is_outermost => self.in_value = false,
            '{' | '[' => self.depth = self.depth.saturating_add(1),
            '}' | ']' => self.depth -= 1,
            _ => {}
        }
        if self.depth == 0 { Step::End } else { Step::Nothing }
    }

    fn take(&mut self, role: Role, char: char) -> Step {
        match role {
            Role::Thought => return Step::Shown(char),
            // A longer key is not the one that is looked for.
            Role::Key if self.key.len() <= THOUGHT.len() => self.key.push(char),
            Role::Key | Role::Other => {}
        }
        Step::Nothing
    }
}

enum TextStep {
    Char(char),
    Nothing,
    End,
}

impl Text {
    fn step(&mut self, char: char) -> TextStep {
        match (self.escape, char) {
            (Escape::None, '\\') => self.escape = Escape::Begun,
            (Escape::None, '"') => return TextStep::End,
            (Escape::None, char) => return TextStep::Char(char),
            (Escape::Begun, 'u') => self.escape = Escape::Code(0, 0),
            (Escape::Begun, char) => {
                self.escape = Escape::None;
                return match char {
                    'n' => TextStep::Char('\n'),
                    't' => TextStep::Char('\t'),
                    'r' | 'b' | 'f' => TextStep::Nothing,
                    char => TextStep::Char(char),
                };
            }
            (Escape::Code(code, digits), char) => {
                let Some(digit) = char.to_digit(16) else {
                    // No escape of JSON; the character is taken as it is.
                    self.escape = Escape::None;
                    return TextStep::Nothing;
                };
                let code = code * 16 + digit;
                self.escape = Escape::Code(code, digits + 1);
                if digits == 3 {
                    self.escape = Escape::None;
                    return self.code(code);
                }
            }
        }
        TextStep::Nothing
    }

    fn code(&mut self, code: u32) -> TextStep {
        match (self.high.take(), code) {
            (_, 0xd800..=0xdbff) => {
                self.high = Some(code);
                TextStep::Nothing
            }
            (Some(high), 0xdc00..=0xdfff) => {
                let both = 0x1_0000 + ((high - 0xd800) << 10) + (code - 0xdc00);
                TextStep::Char(char::from_u32(both).unwrap_or('\u{fffd}'))
            }
            (_, code) => TextStep::Char(char::from_u32(code).unwrap_or('\u{fffd}')),
        }
    }
}

/// A whole reply in a few lines. Code and long text are left out and named.
pub fn lines(reply: &str) -> Vec<String> {
    let mut speech = Speech::default();
    speech.push(reply);
    let (mut lines, mut code): (Vec<String>, Option<usize>) = (Vec::new(), None);
    let mut has_words = false;
    for line in speech.shown().lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        match (line.trim_start().starts_with("```"), &mut code) {
            (true, None) => code = Some(0),
            (true, Some(count)) => {
                lines.push(code_words(*count));
                code = None;
            }
            (false, Some(count)) => *count += 1,
            (false, None) => {
                has_words = true;
                let mut shown: String = line.chars().take(LINE_CHARS_MAX).collect();
                if shown.len() < line.len() {
                    shown.push('…');
                }
                lines.push(shown);
            }
        }
    }
    lines.extend(code.map(code_words));
    if !has_words {
        // A reply of code alone is a text that the agent is about to write, and a later line names it.
        return Vec::new();
    }
    if lines.len() > LINES_MAX {
        let more = lines.split_off(LINES_MAX - 1).len();
        lines.push(format!("… {}", longhaul_core::text::count(more, "more line")));
    }
    lines
}

fn code_words(count: usize) -> String {
    format!("[{} of code]", longhaul_core::text::count(count, "line"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(reply: &str) -> String {
        let mut speech = Speech::default();
        speech.push(reply);
        speech.shown().to_owned()
    }

    #[track_caller]
    fn check(reply: &str, expected: &str) {
        assert_eq!(shown(reply), expected, "{reply}");
        // However the reply is cut into pieces, the shown text only grows and never shows JSON in between.
        let (mut speech, mut before) = (Speech::default(), String::new());
        for char in reply.chars() {
            speech.push(char.encode_utf8(&mut [0; 4]));
            assert!(speech.shown().starts_with(&before) && !speech.shown().contains("\"action\""), "{reply}");
            before = speech.shown().to_owned();
        }
        assert_eq!(before, expected, "{reply}, char by char");
    }

    #[test]
    fn of_an_action_its_thought_is_shown_as_it_comes() {
        check(r#"{"thought": "First, read it.", "action": "files.read", "args": {"path": "a"}}"#, "First, read it.");
        check(r#"{"thought":"a \"b\"\n\u0041\ud83d\ude00\\","action":"x"}"#, "a \"b\"\nA😀\\");
        check(r#"{"thought": "half of it, and th"#, "half of it, and th");
        check(r#"{"action": "x", "args": {"thought": "inner"}, "thought": "outer"}"#, "outer");
        check(r#"{"action": "finish", "answer": "42", "confidence": 0.9}"#, "");
        check(r#"{"thoughtful": "no", "thought ": "no"}"#, "");
        check(r#"[{"thought": "in a list"}, {"a": [1, "]"]}]"#, "");
        check("{}", "");
    }

    #[test]
    fn words_around_an_action_are_shown_and_the_action_is_not() {
        check("I will look.\n{\"action\": \"files.list\", \"args\": {}}\nThen go on.", "I will look.\nThen go on.");
        check("Here: {\"action\": \"x\"} done", "Here: \ndone");
        check("```json\n{\"thought\": \"fenced\", \"action\": \"x\"}\n```\nafter", "fenced\nafter");
        check("```\n{\n  \"action\": \"x\"\n}\n```", "");
        check("one\n\n```json\n[{\"action\": \"x\"}]\n```", "one\n\n");
    }

    #[test]
    fn words_and_code_are_shown_as_they_are() {
        check("Just words.\n\n- a list\n", "Just words.\n\n- a list\n");
        check("```python\nd = {\"a\": 1}\n```\n", "```python\nd = {\"a\": 1}\n```\n");
        check("```\nint main() {\n}\n```", "```\nint main() {\n}\n```");
        check("use `x` and ``` here ```", "use `x` and ``` here ```");
        check("a set {1, 2} and [a link](b)", "a set {1, 2} and [a link](b)");
        check("[see] {x}", "[see] {x}");
        check("`code` first", "`code` first");
    }

    #[test]
    fn a_reply_stays_in_the_record_with_its_words_and_without_its_code() {
        assert_eq!(lines("I add it.\n\n```python\na\nb\n```\nDone."), ["I add it.", "[2 lines of code]", "Done."]);
        assert!(lines("```python\na\n```").is_empty() && lines("{\"action\": \"x\"}").is_empty());
        assert_eq!(lines("```python\na\nb").len(), 0);
        let long = lines(&"word\n".repeat(20));
        assert_eq!((long.len(), long[LINES_MAX - 1].as_str()), (LINES_MAX, "… 13 more lines"));
        assert_eq!(lines(&"é".repeat(300))[0].chars().count(), LINE_CHARS_MAX + 1);
    }

    #[test]
    fn a_reply_without_end_keeps_its_end_alone() {
        let mut speech = Speech::default();
        (0..10_000).for_each(|number| speech.push(&format!("line {number} é\n")));
        assert!(speech.shown().len() <= SHOWN_BYTES_MAX && speech.shown().ends_with("line 9999 é\n"));
    }
}
