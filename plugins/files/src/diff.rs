//! Unified diffs, as programs and models write them.
//!
//! The lines decide and the numbers only help: models count badly. A hunk must fit at exactly one place, or at the one
//! that its numbers name. What does not fit is an error with what to do; nothing is applied in part.

/// The change of one file.
#[derive(Debug, PartialEq)]
pub(crate) struct FilePatch {
    /// None: the file is new.
    pub(crate) from: Option<String>,
    /// None: the file is to be deleted.
    pub(crate) to: Option<String>,
    hunks: Vec<Hunk>,
}

#[derive(Debug, Default, PartialEq)]
struct Hunk {
    /// The line in the old file, from 1; 0 where none is named.
    line: usize,
    lines: Vec<(Mark, String)>,
    /// True when the new file ends without a line feed.
    ends_bare: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mark {
    Same,
    Added,
    Removed,
}

/// Most files of one diff.
const FILES_MAX: usize = 50;

const FORM: &str = "give a unified diff: `--- a/PATH`, `+++ b/PATH`, then `@@ -LINE,COUNT +LINE,COUNT @@` and lines that \
                    begin with a space, `-` or `+`";

/// Reads a diff.
pub(crate) fn parse(text: &str) -> Result<Vec<FilePatch>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut files: Vec<FilePatch> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if let Some((from, to)) = header(&lines[at..]) {
            files.push(FilePatch { from, to, hunks: Vec::new() });
            at += 2;
        } else if line.starts_with("@@") {
            let Some(file) = files.last_mut() else {
                return Err(format!("line {}: a hunk stands before any `--- a/PATH`; {FORM}", at + 1));
            };
            let (hunk, next) = hunk(&lines, at)?;
            file.hunks.push(hunk);
            at = next;
        } else if line.starts_with("rename from ") || line.starts_with("GIT binary patch") {
            return Err(format!("line {}: `{line}` is not applied here; use `move`, or `write`", at + 1));
        } else {
            // Lines that programs add around: `diff --git`, `index`, modes, fences.
            at += 1;
        }
    }
    match files.iter().find(|file| file.hunks.is_empty()) {
        _ if files.is_empty() => Err(format!("there is no change in it; {FORM}")),
        _ if files.len() > FILES_MAX => Err(format!("it changes {} files; the most is {FILES_MAX}", files.len())),
        Some(file) => Err(format!("`{}` has no hunk; {FORM}", file.name())),
        None => Ok(files),
    }
}

/// Two lines that begin a file. In a hunk, a line that begins with `--- ` may remove one that begins with `-- `.
fn header(lines: &[&str]) -> Option<(Option<String>, Option<String>)> {
    let [first, second, ..] = lines else { return None };
    let name = |text: &str, side: &str| {
        let name = text.split('\t').next().unwrap_or_default().trim();
        (name != "/dev/null").then(|| name.strip_prefix(side).unwrap_or(name).to_owned())
    };
    Some((name(first.strip_prefix("--- ")?, "a/"), name(second.strip_prefix("+++ ")?, "b/")))
}

/// The hunk that begins at `at`, and where the next thing begins.
fn hunk(lines: &[&str], at: usize) -> Result<(Hunk, usize), String> {
    let numbers = lines[at].trim_start_matches('@').trim_start();
    let first = numbers.strip_prefix('-').and_then(|rest| rest.split([',', ' ']).next());
    let mut hunk = Hunk { line: first.and_then(|line| line.parse().ok()).unwrap_or(0), ..Hunk::default() };
    let mut next = at + 1;
    while let Some(line) = lines.get(next) {
        if line.starts_with("@@") || line.starts_with("diff --git ") || header(&lines[next..]).is_some() {
            break;
        }
        let (mark, text) = match line.split_at_checked(1) {
            None => (Mark::Same, ""),
            Some((" ", text)) => (Mark::Same, text),
            Some(("+", text)) => (Mark::Added, text),
            Some(("-", text)) => (Mark::Removed, text),
            Some(("\\", _)) => {
                hunk.ends_bare = !matches!(hunk.lines.last(), Some((Mark::Removed, _)));
                next += 1;
                continue;
            }
            // The end of a fence around the diff.
            Some(("`", _)) if line.starts_with("```") => break,
            Some(_) => return Err(format!("line {}: `{line}` begins with no space, `-` or `+`; {FORM}", next + 1)),
        };
        hunk.lines.push((mark, text.to_owned()));
        next += 1;
    }
    // Empty lines behind a hunk stand between it and what follows.
    while matches!(hunk.lines.last(), Some((Mark::Same, text)) if text.is_empty()) && lines[next - 1].is_empty() {
        hunk.lines.pop();
        next -= 1;
    }
    if hunk.lines.is_empty() {
        return Err(format!("line {}: the hunk is empty; {FORM}", at + 1));
    }
    Ok((hunk, next.max(at + 1)))
}

impl FilePatch {
    /// The file that it is about.
    pub(crate) fn name(&self) -> &str {
        self.to.as_deref().or(self.from.as_deref()).unwrap_or_default()
    }

    /// The text afterwards, or why it does not fit.
    pub(crate) fn applied(&self, before: &str) -> Result<String, String> {
        // A line feed of Windows stays what it is, whatever the diff has.
        let is_crlf = before.contains("\r\n");
        let plain = before.replace("\r\n", "\n");
        let old: Vec<&str> = plain.lines().collect();
        let mut new: Vec<&str> = Vec::new();
        let mut done = 0;
        for (number, hunk) in (1..).zip(&self.hunks) {
            let at = hunk.place(&old, done).map_err(|wrong| {
                format!("hunk {number} of {} of `{}`: {wrong}; nothing was changed", self.hunks.len(), self.name())
            })?;
            new.extend(&old[done..at]);
            let stays = hunk.lines.iter().filter(|(mark, _)| *mark != Mark::Removed);
            new.extend(stays.map(|(_, text)| text.trim_end_matches('\r')));
            done = at + hunk.wanted().count();
        }
        let is_whole = done == old.len();
        new.extend(&old[done..]);
        let mut text = new.join("\n");
        let ends_bare = match self.hunks.last() {
            Some(last) if is_whole && last.ends_bare => true,
            Some(_) if is_whole => false,
            _ => !plain.ends_with('\n'),
        };
        if !text.is_empty() && !ends_bare {
            text.push('\n');
        }
        Ok(if is_crlf { text.replace('\n', "\r\n") } else { text })
    }
}

impl Hunk {
    /// The lines that must be there.
    fn wanted(&self) -> impl Iterator<Item = &str> + Clone {
        self.lines.iter().filter(|(mark, _)| *mark != Mark::Added).map(|(_, text)| text.trim_end_matches('\r'))
    }

    /// The line where it fits, at or behind line `from` of the old text.
    fn place(&self, old: &[&str], from: usize) -> Result<usize, String> {
        let wanted: Vec<&str> = self.wanted().collect();
        if wanted.is_empty() {
            return match self.line {
                line if old.is_empty() || (line >= from && line <= old.len()) => Ok(line.min(old.len())),
                _ => Err("it has no line that is in the file; give some lines around the place".to_owned()),
            };
        }
        let fits = |at: &usize| old[*at..].starts_with(&wanted);
        let named = self.line.saturating_sub(1);
        if self.line > 0 && named >= from && named < old.len() && fits(&named) {
            return Ok(named);
        }
        let mut places = (from..old.len()).filter(fits);
        match (places.next(), places.next()) {
            (Some(at), None) => Ok(at),
            (Some(_), Some(_)) => Err(format!(
                "its lines fit at {} places; give more lines around the one you mean, or its line in the `@@`",
                places.count() + 2
            )),
            (None, _) => Err(missing(old, &wanted)),
        }
    }
}

/// Names the first of the lines that the file does not have, where it can be determined.
fn missing(old: &[&str], wanted: &[&str]) -> String {
    let lost = wanted.iter().find(|line| !line.trim().is_empty() && !old.contains(line));
    let which = match lost {
        Some(line) => format!("the file has no line `{}`", longhaul_sdk::json::cut(line, 120)),
        None => "its lines are not in the file in this order".to_owned(),
    };
    format!("{which}; read the file and copy the lines exactly")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, patch: &str, expected: Result<&str, &str>) {
        let files = parse(patch).expect("a diff");
        assert_eq!(files.len(), 1);
        match (files[0].applied(before), expected) {
            (Ok(text), Ok(expected)) => assert_eq!(text, expected, "{patch}"),
            (Err(text), Err(expected)) => assert!(text.contains(expected), "{text}"),
            (got, _) => panic!("{got:?} of {patch}"),
        }
    }

    fn of(hunks: &str) -> String {
        format!("--- a/f.txt\n+++ b/f.txt\n{hunks}")
    }

    const FIVE: &str = "one\ntwo\nthree\nfour\nfive\n";

    #[test]
    fn a_hunk_goes_where_its_lines_are() {
        check(FIVE, &of("@@ -2,2 +2,2 @@\n two\n-three\n+3\n"), Ok("one\ntwo\n3\nfour\nfive\n"));
        check(FIVE, &of("@@ -40,9 +41,9 @@ def f():\n two\n-three\n+3\n"), Ok("one\ntwo\n3\nfour\nfive\n"));
        check(FIVE, &of("@@\n four\n-five\n+5\n+6\n"), Ok("one\ntwo\nthree\nfour\n5\n6\n"));
        check(FIVE, &of("@@ -1 +1 @@\n-one\n+1\n@@ -5 +5 @@\n-five\n+5\n"), Ok("1\ntwo\nthree\nfour\n5\n"));
        check("", "--- /dev/null\n+++ b/f.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n", Ok("a\nb\n"));
        check("a\n-- b\n", &of("@@ -1,2 +1 @@\n a\n--- b\n"), Ok("a\n"));
    }

    #[test]
    fn the_same_lines_twice_need_a_number_or_more_of_them() {
        let twice = "a\nx\nb\nx\n";
        check(twice, &of("@@\n-x\n+y\n"), Err("its lines fit at 2 places; give more lines around"));
        check(twice, &of("@@ -4 +4 @@\n-x\n+y\n"), Ok("a\nx\nb\ny\n"));
        check(twice, &of("@@\n b\n-x\n+y\n"), Ok("a\nx\nb\ny\n"));
        check(FIVE, &of("@@ -1 +1 @@\n one\n-zwei\n+2\n"), Err("hunk 1 of 1 of `f.txt`: the file has no line `zwei`"));
        check(FIVE, &of("@@ -1 +1 @@\n two\n-one\n"), Err("not in the file in this order"));
        check(FIVE, &of("@@ -5 +5 @@\n-five\n+5\n@@ -1 +1 @@\n-one\n+1\n"), Err("hunk 2 of 2"));
    }

    #[test]
    fn ends_of_lines_and_of_files_stay_as_they_are() {
        check("a\r\nb\r\n", &of("@@ -1,2 +1,2 @@\n a\n-b\n+c\n"), Ok("a\r\nc\r\n"));
        check("a\nb", &of("@@ -1 +1 @@\n-a\n+A\n"), Ok("A\nb"));
        check("a\nb", &of("@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+c\n"), Ok("a\nc\n"));
        check("a\n", &of("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"), Ok("b"));
    }

    #[test]
    fn several_files_are_told_apart_whatever_stands_around_them() {
        let text = "```diff\ndiff --git a/x b/x\nindex 1..2 100644\n--- a/x\t2026\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\n\
                    diff --git a/y b/y\ndeleted file mode 100644\n--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n```\n";
        let files = parse(text).expect("two");
        let names: Vec<_> = files.iter().map(|file| (file.from.as_deref(), file.to.as_deref())).collect();
        assert_eq!(names, [(Some("x"), Some("x")), (Some("y"), None)]);
        assert_eq!(files[1].applied("gone\n"), Ok(String::new()));
    }

    #[test]
    fn what_is_no_diff_is_refused_with_its_form() {
        for (text, expected) in [
            ("", "no change in it; give a unified diff"),
            ("*** Begin Patch\n", "no change in it"),
            ("@@ -1 +1 @@\n-a\n", "before any `--- a/PATH`"),
            ("--- a/x\n+++ b/x\n", "`x` has no hunk"),
            ("--- a/x\n+++ b/x\n@@\nwords\n", "begins with no space"),
            ("rename from a\nrename to b\n", "use `move`"),
        ] {
            let wrong = parse(text).expect_err(text);
            assert!(wrong.contains(expected), "{text}: {wrong}");
        }
    }
}
