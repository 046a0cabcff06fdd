//! Splits a command line into words, as a POSIX shell would without special characters.
//!
//! Refuses every character that a shell would interpret, by its name, and guesses nothing: it knows only quotes, and a
//! backslash before a single character. So an accepted line means the same to its reader and to the program.

/// Splits a line.
///
/// # Errors
/// The special character, and the alternative to it.
pub(super) fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(one) = rest.next() {
        match one {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => quoted(&mut rest, word.get_or_insert_default())?,
            '"' => double_quoted(&mut rest, word.get_or_insert_default())?,
            '\\' => match rest.next() {
                Some('\n') | None => return Err(special("a line that goes on")),
                Some(one) => word.get_or_insert_default().push(one),
            },
            '#' | '~' if word.is_none() => return Err(special(name_of(one))),
            one if is_special(one) => return Err(special(name_of(one))),
            one => word.get_or_insert_default().push(one),
        }
    }
    words.extend(word);
    Ok(words)
}

fn quoted(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), String> {
    for one in rest {
        if one == '\'' {
            return Ok(());
        }
        word.push(one);
    }
    Err("a quote is not closed".to_owned())
}

fn double_quoted(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), String> {
    while let Some(one) = rest.next() {
        match one {
            '"' => return Ok(()),
            '$' | '`' => return Err(special(name_of(one))),
            '\\' => match rest.next() {
                Some(one @ ('"' | '\\' | '$' | '`')) => word.push(one),
                Some(one) => word.extend(['\\', one]),
                None => break,
            },
            one => word.push(one),
        }
    }
    Err("a quote is not closed".to_owned())
}

fn is_special(one: char) -> bool {
    one.is_control()
        || matches!(one, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '?' | '[' | ']' | '{' | '}')
}

fn name_of(one: char) -> &'static str {
    match one {
        ';' | '&' | '|' => "a chain of commands",
        '\n' | '\r' => "a second line",
        '<' | '>' => "a redirection",
        '$' | '`' => "a substitution",
        '(' | ')' => "a subshell",
        '*' | '?' | '[' | ']' | '{' | '}' | '~' => "a pattern",
        '#' => "a comment",
        _ => "a control character",
    }
}

fn special(what: &str) -> String {
    format!("it has {what}, and no shell runs it; quote it, or give `argv`, a list of words")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_a_shell_would() {
        let check = |line: &str, words: &[&str]| {
            assert_eq!(
                split(line).as_deref(),
                Ok(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()[..]),
                "{line}"
            )
        };
        check("", &[]);
        check("  ls\t-l  ", &["ls", "-l"]);
        check(r#"grep "a b" 'c "d"' e\ f"#, &["grep", "a b", "c \"d\"", "e f"]);
        check(r#"a""b '' "\$x \\ \n""#, &["ab", "", "$x \\ \\n"]);
        check("a'#'b x#y a=b~", &["a#b", "x#y", "a=b~"]);
        check("ls ';' \\; '$(id)'", &["ls", ";", ";", "$(id)"]);
    }

    #[test]
    fn what_a_shell_would_act_on_is_refused_by_its_name() {
        for (line, expected) in [
            ("ls; id", "a chain"),
            ("ls && id", "a chain"),
            ("ls | sh", "a chain"),
            ("ls & id", "a chain"),
            ("ls\nid", "a second line"),
            ("ls > /etc/x", "a redirection"),
            ("ls $(id)", "a substitution"),
            ("ls \"$(id)\"", "a substitution"),
            ("ls `id`", "a substitution"),
            ("ls ${x}", "a substitution"),
            ("(id)", "a subshell"),
            ("rm *", "a pattern"),
            ("ls ~root", "a pattern"),
            ("ls # x", "a comment"),
            ("ls \x1b[2J", "a control character"),
            ("ls 'x", "not closed"),
            ("ls \"x", "not closed"),
            ("ls \\", "a line that goes on"),
        ] {
            let told = split(line).expect_err(line);
            assert!(told.contains(expected), "{line}: {told}");
        }
    }
}
