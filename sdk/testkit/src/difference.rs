//! Differences of texts for people: `-` marks an expected line, `+` a line that came, with two lines of both around.
//!
//! Lines are compared, not words. Two texts that differ in thousands of lines are shown as one change.

/// Lines of a difference that are shown.
const LINES_MAX: usize = 60;

/// Lines of both texts around a change.
const CONTEXT_LINES: usize = 2;

/// The most pairs of lines that are compared for the smallest difference: about 16 MiB.
const PAIRS_MAX: usize = 4_000_000;

/// A line of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'a> {
    Both(&'a str),
    Expected(&'a str),
    Came(&'a str),
}

/// The difference as lines. None when only white space at the end differs.
pub(crate) fn difference(expected: &str, got: &str) -> Option<String> {
    shown(expected, got, &|_, _| "  ...".to_owned(), false)
}

/// The same for calls in full, where a line without indentation begins a call: above each change stands the number of
/// its call, of which the first has the number `first`.
pub(crate) fn difference_of_calls(expected: &str, got: &str, first: u32) -> Option<String> {
    let head = |lines: &[Line], change: usize| {
        let is_expected = !matches!(lines[change], Line::Came(_));
        let heads = lines[..=change].iter().filter_map(|line| match (line, is_expected) {
            (Line::Both(text), _) | (Line::Expected(text), true) | (Line::Came(text), false) => Some(*text),
            _ => None,
        });
        let heads: Vec<&str> = heads.filter(|text| !text.is_empty() && !text.starts_with(' ')).collect();
        let number = u32::try_from(heads.len()).unwrap_or(u32::MAX).saturating_add(first).saturating_sub(1);
        format!("entry {number}, {}:", heads.last().copied().unwrap_or_default())
    };
    shown(expected, got, &head, true)
}

/// The changes with the lines around them. A head stands above each change, or only where lines are left out.
fn shown(expected: &str, got: &str, head: &dyn Fn(&[Line], usize) -> String, heads_all: bool) -> Option<String> {
    let (expected, got): (Vec<&str>, Vec<&str>) =
        (expected.trim_end().lines().collect(), got.trim_end().lines().collect());
    if expected == got {
        return None;
    }
    let lines = compared(&expected, &got);
    let mut told: Vec<String> = Vec::new();
    // The first line that was not shown yet.
    let mut next = 0;
    for (at, line) in lines.iter().enumerate() {
        if matches!(line, Line::Both(_)) || at < next {
            continue;
        }
        let end = end_of_change(&lines, at);
        let begin = at.saturating_sub(CONTEXT_LINES).max(next);
        let has_gap = begin > next && !told.is_empty();
        told.extend((heads_all || has_gap).then(|| head(&lines, at)));
        next = (end + CONTEXT_LINES).min(lines.len());
        told.extend(lines[begin..next].iter().map(|line| match line {
            Line::Both(text) => format!("  {text}"),
            Line::Expected(text) => format!("- {text}"),
            Line::Came(text) => format!("+ {text}"),
        }));
    }
    if told.len() > LINES_MAX {
        let more = told.len() - LINES_MAX;
        told.truncate(LINES_MAX);
        told.push(format!("  and {more} more lines"));
    }
    Some(told.join("\n"))
}

/// The end of the changes that begin at a line and have fewer common lines between them than stand around a change.
fn end_of_change(lines: &[Line], begin: usize) -> usize {
    let mut end = begin;
    for (at, line) in lines.iter().enumerate().skip(begin) {
        match line {
            Line::Both(_) if at >= end + CONTEXT_LINES => break,
            Line::Both(_) => {}
            Line::Expected(_) | Line::Came(_) => end = at + 1,
        }
    }
    end
}

/// All lines of two texts, with the most common ones.
fn compared<'a>(expected: &[&'a str], got: &[&'a str]) -> Vec<Line<'a>> {
    let same = |(one, other): &(&&str, &&str)| one == other;
    let start = expected.iter().zip(got).take_while(same).count();
    let rest = expected.len().min(got.len()) - start;
    let end = expected.iter().rev().zip(got.iter().rev()).take(rest).take_while(same).count();
    let mut lines: Vec<Line> = expected[..start].iter().copied().map(Line::Both).collect();
    changed(&expected[start..expected.len() - end], &got[start..got.len() - end], &mut lines);
    lines.extend(expected[expected.len() - end..].iter().copied().map(Line::Both));
    lines
}

fn changed<'a>(expected: &[&'a str], got: &[&'a str], lines: &mut Vec<Line<'a>>) {
    let (rows, columns) = (expected.len() + 1, got.len() + 1);
    if rows.saturating_mul(columns) > PAIRS_MAX {
        lines.extend(expected.iter().copied().map(Line::Expected));
        lines.extend(got.iter().copied().map(Line::Came));
        return;
    }
    // The number of common lines from each pair of places on.
    let mut common = vec![0_u32; rows * columns];
    for row in (0..expected.len()).rev() {
        for column in (0..got.len()).rev() {
            common[row * columns + column] = if expected[row] == got[column] {
                common[(row + 1) * columns + column + 1] + 1
            } else {
                common[(row + 1) * columns + column].max(common[row * columns + column + 1])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    while row < expected.len() && column < got.len() {
        if expected[row] == got[column] {
            lines.push(Line::Both(expected[row]));
            (row, column) = (row + 1, column + 1);
        } else if common[(row + 1) * columns + column] >= common[row * columns + column + 1] {
            lines.push(Line::Expected(expected[row]));
            row += 1;
        } else {
            lines.push(Line::Came(got[column]));
            column += 1;
        }
    }
    lines.extend(expected[row..].iter().copied().map(Line::Expected));
    lines.extend(got[column..].iter().copied().map(Line::Came));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_what_was_expected_and_what_came() {
        assert_eq!(difference("a\nb\n", "a\nb"), None);
        let shown = difference("a\nb\nc\nd\ne\n", "a\nb\nC\nd\ne\n").unwrap();
        assert_eq!(shown, "  a\n  b\n- c\n+ C\n  d\n  e");
        assert_eq!(difference("", "a").as_deref(), Some("+ a"));
    }

    #[test]
    fn changes_that_are_far_apart_are_shown_one_by_one() {
        let shown = difference("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2!\n3\n4\n5\n6\n7\n8!\n9\n").unwrap();
        assert_eq!(shown, "  1\n- 2\n+ 2!\n  3\n  4\n  ...\n  6\n  7\n- 8\n+ 8!\n  9");
        let shown = difference("1\n2\n3\n", "1!\n2\n3!\n").unwrap();
        assert_eq!(shown, "- 1\n+ 1!\n  2\n- 3\n+ 3!");
    }

    #[test]
    fn a_change_of_a_call_stands_below_its_number_and_name() {
        let expected = "tools.list\ntools.call\n  tool: files\n  path: a\ntools.list\n";
        let got = "tools.list\ntools.call\n  tool: files\n  path: b\ntools.list\n";
        let shown = difference_of_calls(expected, got, 1).unwrap();
        assert_eq!(
            shown,
            "entry 2, tools.call:\n  tools.call\n    tool: files\n-   path: a\n+   path: b\n  tools.list"
        );
        let shown = difference_of_calls("a\n", "a\nb\n  x: 1\n", 5).unwrap();
        assert_eq!(shown, "entry 6, b:\n  a\n+ b\n+   x: 1");
    }

    #[test]
    fn long_texts_are_cut_and_huge_ones_are_not_searched() {
        let many = |word: &str| (0..3_000).map(|number| format!("{word} {number}\n")).collect::<String>();
        let shown = difference(&many("a"), &many("b")).unwrap();
        assert_eq!(shown.lines().count(), LINES_MAX + 1);
        assert!(shown.ends_with("and 5940 more lines"), "{shown}");
    }
}
