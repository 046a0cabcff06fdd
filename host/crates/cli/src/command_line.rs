//! The command line as a whole: its definition, and how the arguments of this process are read.
//!
//! `longhaul help` and `longhaul exec` are recognized before the rest is described to clap. Nothing is started here,
//! and no data directory is looked at.

use super::commands::Command;
use super::everywhere::EverywhereArgs;
use super::exit::Exit;
use super::{children, exec_line, help, manual};
use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::ffi::OsString;
use std::io::IsTerminal as _;

/// Runs long-lived AI agents as sandboxed components, and survives being killed.
///
/// Exit codes: 0 done; 1 an error, which says what to do; 2 wrong arguments; 3 the run ended and some
/// features do not pass, or steps of a graph failed; 4 the run is paused; 5 the run waits for an answer; 6 another
/// process took over the database that holds the state.
#[derive(Parser, Debug)]
#[command(name = "longhaul", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub(super) everywhere: EverywhereArgs,
    // None: the person at the terminal is told what there is to do.
    #[command(subcommand)]
    pub(super) command: Option<Subcommands>,
}

// No doc comment here: clap would take it for the description of the program.
#[derive(Subcommand, Debug)]
pub(super) enum Subcommands {
    #[command(flatten)]
    Command(Box<Command>),
    #[command(flatten)]
    Manual(manual::ManualCommand),
    #[command(flatten)]
    Child(children::ChildCommand),
}

/// The command line, with the help and the examples of every command, for programs that describe it.
pub fn command() -> clap::Command {
    help::dressed(Cli::command(), false)
}

/// Reads the arguments of this process. Carries out `longhaul help`, for which it returns the end.
///
/// # Errors
/// When the arguments are wrong, or ask for help or the version.
pub fn parse() -> Result<Result<Cli, Exit>, clap::Error> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    match first_word(&arguments) {
        Some((word, words)) if word == "help" => return Ok(Err(help::run(Cli::command(), words))),
        Some((word, _)) if word == "exec" => {
            if let Some(cli) = only_exec(&arguments) {
                return Ok(Ok(cli));
            }
        }
        _ => {}
    }
    let at_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let mut command = help::dressed(Cli::command(), at_terminal);
    let cli = Cli::from_arg_matches(&command.try_get_matches_from_mut(arguments)?)?;
    if cli.command.is_none() && cli.everywhere.json {
        return Err(
            command.error(ErrorKind::MissingSubcommand, "`--json` needs a command, such as `status` or `doctor`")
        );
    }
    Ok(Ok(cli))
}

/// The options of every command that a value follows.
const VALUED: [&str; 4] = ["--home", "--project", "--server", "--token-file"];

/// The command, and the arguments behind it. Options of every command may stand before it.
fn first_word(arguments: &[OsString]) -> Option<(&OsString, &[OsString])> {
    let mut rest = arguments.get(1..)?;
    loop {
        rest = match rest {
            [option, _, below @ ..] if VALUED.iter().any(|valued| option == valued) => below,
            [option, below @ ..] if option.as_encoded_bytes().starts_with(b"--") => below,
            [word, words @ ..] => return Some((word, words)),
            [] => return None,
        };
    }
}

/// Reads the arguments of `longhaul exec`. None: the whole command line has to read them.
fn only_exec(arguments: &[OsString]) -> Option<Cli> {
    let (everywhere, args) = exec_line::read(arguments)?;
    Some(Cli { everywhere, command: Some(Subcommands::Command(Box::new(Command::Exec(args)))) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// README used to name a form of the command that was refused.
    #[test]
    fn a_question_to_the_decisions_needs_no_word_before_it() {
        for words in
            [&["decisions", "--query", "why"][..], &["decisions", "r-1", "--limit", "3"], &["decisions", "list"]]
        {
            let parsed = Cli::try_parse_from([&["longhaul"], words].concat()).map(|cli| cli.command);
            let Ok(Some(Subcommands::Command(command))) = parsed else { panic!("{words:?}") };
            assert!(matches!(*command, Command::Decisions { .. }), "{words:?}");
        }
    }

    #[test]
    fn the_short_help_fits_a_screen_and_has_every_command_in_one_group() {
        help::tests::check_groups(&Cli::command());
    }

    #[test]
    fn the_help_of_every_command_ends_with_two_examples_that_are_read() {
        help::tests::check_examples(&Cli::command(), "");
        let command = command();
        let lines = help::tests::examples_in(&command);
        assert!(lines.len() > 200, "{}", lines.len());
        for line in lines {
            let read = command.clone().try_get_matches_from(help::tests::split(&line));
            assert!(read.is_ok(), "`{line}`: {}", read.err().map(|error| error.to_string()).unwrap_or_default());
        }
    }

    #[test]
    fn help_is_found_behind_the_options_of_every_command() {
        let check = |line: &str, expected: Option<&[&str]>| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let found = first_word(&arguments)
                .filter(|(word, _)| *word == "help")
                .map(|(_, words)| words.iter().map(|word| word.to_string_lossy().into_owned()));
            let expected = expected.map(|words| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
            assert_eq!(found.map(Iterator::collect::<Vec<_>>), expected, "{line}");
        };
        check("longhaul help", Some(&[]));
        check("longhaul --home help --json help run", Some(&["run"]));
        check("longhaul --server help --token-file help help run", Some(&["run"]));
        check("longhaul plugin help", None);
        check("longhaul", None);
    }

    #[test]
    fn exec_alone_is_read_as_the_whole_command_line_reads_it() {
        let split = |line: &str| help::tests::split(line).into_iter().map(OsString::from).collect::<Vec<_>>();
        for line in [
            "longhaul exec job.py",
            "longhaul --json exec job.ts --module lib/names.ts --timeout-ms 10000 --trust",
            "longhaul --home /h --project exec exec - --lang js --context '{\"n\": 3}' --json",
            "longhaul --server http://127.0.0.1:7717 exec job.py --token-file token",
            "longhaul exec job.py --dir /tmp:/tmp:ro --allow-host https://api.example.com --project",
            "longhaul exec job.py --runtime native --venv .venv --rich --home /h",
            "longhaul exec --sessions",
        ] {
            let whole = Cli::try_parse_from(split(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
            let alone = only_exec(&split(line)).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(format!("{alone:?}"), format!("{whole:?}"), "{line}");
        }
        for line in [
            "longhaul exec",
            "longhaul exec job.py --no-such-option",
            "longhaul exec --help",
            "longhaul exec job.py --sessions",
            "longhaul --project exec status",
            "longhaul run",
        ] {
            assert!(only_exec(&split(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn without_a_command_the_help_is_an_error_unless_a_person_is_there() {
        let missing = command().try_get_matches_from(["longhaul"]).map(drop).map_err(|error| error.kind());
        assert_eq!(missing, Err(ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand));
        let allowed = help::dressed(Cli::command(), true).try_get_matches_from(["longhaul"]);
        let cli = allowed.and_then(|matches| Cli::from_arg_matches(&matches));
        assert!(cli.is_ok_and(|cli| cli.command.is_none()));
    }
}
