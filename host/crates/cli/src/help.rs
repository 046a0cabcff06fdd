//! Help: that of the program and of each command, and the chapters of the book in the terminal.
//!
//! `longhaul help` is read before the command line: it needs no data directory, no project and no log. Texts of others
//! never come through here.

mod examples;
mod groups;
pub(super) mod layout;
mod markdown;
mod pager;
mod table;
mod topics;

use super::exit::Exit;
use super::terminal;
use clap::{Command, Parser};
use std::ffi::OsString;
use std::io::IsTerminal as _;

/// Arguments of `longhaul help`.
#[derive(Parser, Debug)]
#[command(name = "longhaul help", about = "Print help: of the program, of a command, or a chapter of the book")]
#[command(after_help = "Examples:\n  longhaul help run\n  longhaul help journal-and-replay")]
struct HelpArgs {
    /// Print every command and option.
    #[arg(long, conflicts_with = "words")]
    all: bool,
    /// A command, such as `run` or `plugin build`, or a chapter of the book. Default: list both.
    #[arg(value_name = "COMMAND|TOPIC")]
    words: Vec<String>,
}

/// The command line with its short help, and with examples at the end of each command's help. Without a command it is
/// an error, which shows the help, unless `allows_none`.
pub(super) fn dressed(command: Command, allows_none: bool) -> Command {
    let brief = groups::brief(&command, layout::columns());
    with_examples(command, "")
        .override_help(brief)
        .subcommand_required(!allows_none)
        .arg_required_else_help(!allows_none)
}

fn with_examples(command: Command, path: &str) -> Command {
    let command = command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        with_examples(below, path.trim_start())
    });
    let Some(examples) = examples::of(path) else { return command };
    // The long help of a command may have an end of its own, which clap would show alone.
    match command.get_after_long_help().map(ToString::to_string) {
        Some(end) => command.after_long_help(format!("{end}\n\n{examples}")).after_help(examples),
        None => command.after_help(examples),
    }
}

/// Carries out `longhaul help`. `command` is the command line without its short help.
pub(super) fn run(command: Command, arguments: &[OsString]) -> Exit {
    let name = OsString::from("longhaul help");
    let args = match HelpArgs::try_parse_from([&name].into_iter().chain(arguments)) {
        Ok(args) => args,
        Err(error) => {
            terminal::arguments(&error);
            return if error.use_stderr() { Exit::Misused } else { Exit::Done };
        }
    };
    let columns = layout::columns();
    let commands = names(&command);
    match &args.words[..] {
        [] if args.all => pager::show(&groups::full(command, columns)),
        [] => {
            let brief = groups::brief(&command, columns);
            outtext!(format!("{brief}\n{}", topics::listed(&commands, columns)));
        }
        [first, ..] if commands.contains(first) => return of_command(command, &args.words),
        words => return chapter(&words.join(" "), &commands, columns),
    }
    Exit::Done
}

/// A chapter of the book, or the name that is most like the one that was given.
fn chapter(name: &str, commands: &[String], columns: usize) -> Exit {
    let Some(topic) = topics::find(name) else {
        let nearest = topics::nearest(name, commands);
        let hint = nearest.map(|nearest| format!("did you mean `longhaul help {nearest}`? ")).unwrap_or_default();
        errln!("longhaul: there is no command or chapter `{name}`; {hint}`longhaul help` lists them");
        return Exit::Misused;
    };
    pager::show(&markdown::rendered(topic.text(), columns, std::io::stdout().is_terminal()));
    Exit::Done
}

/// The help that the command itself prints.
fn of_command(command: Command, words: &[String]) -> Exit {
    let words = ["longhaul"].into_iter().chain(words.iter().map(String::as_str)).chain(["--help"]);
    match dressed(command, false).try_get_matches_from(words) {
        Err(error) => {
            terminal::arguments(&error);
            if error.use_stderr() { Exit::Misused } else { Exit::Done }
        }
        Ok(_) => Exit::Done,
    }
}

/// The names of the visible commands.
fn names(command: &Command) -> Vec<String> {
    command.get_subcommands().filter(|below| !below.is_hide_set()).map(|below| below.get_name().to_owned()).collect()
}

/// Tests of the tables, which need the whole command line.
#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every visible command stands in one group, and the short help fits a screen.
    pub(crate) fn check_groups(command: &Command) {
        let grouped = groups::grouped();
        let mut once = BTreeSet::new();
        let twice: Vec<_> = grouped.iter().filter(|name| !once.insert(**name)).collect();
        assert!(twice.is_empty(), "in several groups of help/groups.rs: {twice:?}");
        let names = names(command);
        let missing: Vec<_> = names.iter().filter(|name| !once.contains(name.as_str())).collect();
        assert!(missing.is_empty(), "in no group of help/groups.rs: {missing:?}");
        let gone: Vec<_> = once.iter().filter(|name| !names.iter().any(|known| known == *name)).collect();
        assert!(gone.is_empty(), "no command, but in help/groups.rs: {gone:?}");

        let brief = groups::brief(command, 80);
        assert!(brief.lines().count() <= 24, "{} lines:\n{brief}", brief.lines().count());
        assert!(brief.lines().all(|line| line.chars().count() <= 80), "{brief}");
        let narrow = groups::brief(command, 40);
        let usage = |line: &str| line.starts_with("Usage:");
        assert!(narrow.lines().all(|line| usage(line) || line.chars().count() <= 40), "{narrow}");
        for name in &names {
            assert!(brief.split_whitespace().any(|word| word == name), "`{name}` is not in:\n{brief}");
        }
    }

    /// Every command has two examples that begin with it and that the command line reads.
    pub(crate) fn check_examples(command: &Command, path: &str) {
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let path = format!("{path} {}", below.get_name());
            let path = path.trim_start();
            let text = examples::of(path).unwrap_or_else(|| panic!("`{path}` is not in help/examples.rs"));
            let lines: Vec<&str> = text.lines().skip(1).map(str::trim).collect();
            assert_eq!(lines.len(), 2, "`{path}`: {text}");
            for line in lines {
                check_example(path, line);
            }
            check_examples(below, path);
        }
    }

    #[track_caller]
    fn check_example(path: &str, line: &str) {
        let words = split(line);
        assert_eq!(words.first().map(String::as_str), Some("longhaul"), "`{line}`");
        let mut expected = path.split(' ').peekable();
        for word in &words[1..] {
            let _ = expected.next_if(|expected| expected == word);
        }
        assert_eq!(expected.next(), None, "`{line}` is no example of `{path}`");
    }

    /// The words of a line as a shell reads them, with quotes and without anything else.
    pub(crate) fn split(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for char in line.chars() {
            match (quote, char) {
                (Some(open), char) if open == char => quote = None,
                (None, '\'' | '"') => {
                    quote = Some(char);
                    word.get_or_insert_default();
                }
                (None, ' ') => words.extend(word.take()),
                (_, char) => word.get_or_insert_default().push(char),
            }
        }
        words.extend(word);
        words
    }

    /// The lines with examples in the help of all commands.
    pub(crate) fn examples_in(command: &Command) -> Vec<String> {
        let mut lines = Vec::new();
        for below in command.get_subcommands() {
            let text = below.get_after_help().map(ToString::to_string).unwrap_or_default();
            lines.extend(text.lines().skip(1).map(|line| line.trim().to_owned()));
            lines.extend(examples_in(below));
        }
        lines
    }

    #[test]
    fn words_of_a_shell_are_split_at_spaces_outside_of_quotes() {
        assert_eq!(split("a 'b c' --d '{\"n\": 3}'"), ["a", "b c", "--d", "{\"n\": 3}"]);
    }
}
