//! Patterns over names and texts, in which `*` stands for any characters and `?` for one.
//!
//! Patterns and texts may both be an agent's, so a match backtracks to the last `*` only and takes no more steps than
//! the product of their lengths. Classes and alternatives are not supported: every other character stands for itself.

/// True when `pattern` covers the whole of `text`. `*` and `?` never stand for `separator`.
#[must_use]
pub fn covers(pattern: &str, text: &str, separator: Option<char>) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let is_open = |at: usize| Some(text[at]) != separator;
    let (mut p, mut t) = (0, 0);
    // The place of the last star, and its match so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == text[t] || *c == '?' && is_open(t) => {
                p += 1;
                t += 1;
            }
            _ => match star.filter(|(_, taken)| is_open(*taken)) {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_the_whole_text() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abcd", false),
            ("a?c", "abc", true),
            ("a", "ab", false),
            ("*a*b*", "xxaxxbxx", true),
            ("docs/*", "docs/a/b", true),
            ("a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(covers(pattern, text, None), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn patterns_stay_within_a_name() {
        for (pattern, text, expected) in [
            ("crates/*", "crates/one", true),
            ("crates/*", "crates/one/two", false),
            ("crates/*", "crates", false),
            ("crates?one", "crates/one", false),
            ("it*", "it", true),
            ("?t", "it", true),
            ("it", "its", false),
            ("*/*", "a/b", true),
            ("*b/c", "a/b/c", false),
        ] {
            assert_eq!(covers(pattern, text, Some('/')), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn no_pattern_takes_long() {
        let (pattern, text) = (format!("{}b", "*a".repeat(200)), "a".repeat(5_000));
        assert!(!covers(&pattern, &text, None) && !covers(&pattern, &text, Some('/')));
    }
}
