//! Code in a model's reply: the first fenced block, and where it is to go.
//!
//! Nothing here knows a programming language; whether the code works is for checks to say.

/// The first fenced block of a reply.
#[derive(Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) code: String,
    /// False when the reply ended before the fence was closed.
    pub(crate) is_closed: bool,
}

/// The first fenced block of `text` that holds more than blanks.
pub(crate) fn first_block(text: &str) -> Option<Block> {
    let mut lines = text.lines();
    loop {
        lines.by_ref().find(|line| is_fence(line))?;
        let mut code = String::new();
        let mut is_closed = false;
        for line in lines.by_ref() {
            if is_fence(line) {
                is_closed = true;
                break;
            }
            code.push_str(line);
            code.push('\n');
        }
        if !code.trim().is_empty() {
            return Some(Block { code, is_closed });
        }
    }
}

/// `code` without its last line: a reply that was cut ends within one.
pub(crate) fn without_last_line(code: &str) -> String {
    let end = code.trim_end().rfind('\n').map_or(0, |at| at + 1);
    code[..end].to_owned()
}

/// The last line `File: NAME` of an instruction, and the instruction without such lines.
pub(crate) fn file_line(instruction: &str) -> (Option<&str>, String) {
    let name = |line: &str| line.strip_prefix("File:").is_some();
    let file = instruction.lines().rev().find(|line| name(line));
    let file = file.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
    let rest: Vec<&str> = instruction.lines().filter(|line| !name(line)).collect();
    (file.filter(|file| !file.is_empty()), rest.join("\n").trim().to_owned())
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, bool)>) {
        let expected = expected.map(|(code, is_closed)| Block { code: code.to_owned(), is_closed });
        assert_eq!(first_block(text), expected, "{text}");
    }

    #[test]
    fn the_first_block_with_code_is_taken() {
        check("```python\nx = 1\n```\ntext\n```\ny\n```", Some(("x = 1\n", true)));
        check("Sure:\n  ```py\nx = 1", Some(("x = 1\n", false)));
        check("```\n\n```\n```\ny\n```", Some(("y\n", true)));
        check("```python\n", None);
        check("x = 1", None);
        check("", None);
    }

    #[test]
    fn a_cut_reply_loses_its_last_line() {
        assert_eq!(without_last_line("def f():\n    return 1\nprint(f(\n"), "def f():\n    return 1\n");
        assert_eq!(without_last_line("def f("), "");
    }

    #[test]
    fn the_file_line_is_read_and_taken_out() {
        let (file, rest) = file_line("Write it.\n\nFile: a.py");
        assert_eq!((file, rest.as_str()), (Some("a.py"), "Write it."));
        assert_eq!(file_line("Write it.").0, None);
        assert_eq!(file_line("File:").0, None);
    }
}
