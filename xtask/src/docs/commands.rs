//! The pages of the command line, from the help of each command, and that of exit codes.
//!
//! A page has the commands of one group of `longhaul help --all`. Refuses a help without groups.

use super::page::{cell, joined, opened};
use super::program::Program;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;

const SOURCE: &str = "the program's own help";

/// The arguments with which the program prints the help that lists all commands.
const ALL: [&str; 2] = ["help", "--all"];

/// Options that every command has; they stand once, on the first page.
const GLOBAL: [&str; 7] = ["--home", "--project", "--server", "--token-file", "--json", "--trust", "--help"];

/// The words in the help before the exit codes.
const CODES: &str = "Exit codes: ";

/// Commands that belong together, as the help of the program groups them: a page.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    title: String,
    commands: Vec<String>,
}

/// The pages, and the one that lists all commands.
pub(crate) fn pages(program: &Program) -> Result<BTreeMap<String, String>> {
    let help = program.said(&ALL)?;
    let groups = groups(&help);
    ensure!(!groups.is_empty(), "`longhaul help --all` lists no group of commands");
    let mut pages = BTreeMap::new();
    let mut index = opened(SOURCE, "Command line");
    index += "Every command takes the options of the first section. Where a command wants a run and none is named, it takes \
              the newest run\nof the project in the current directory. [Exit codes](exit-codes.md) are those of all \
              commands.\n\n";
    index += &format!("```text\n{}\n```\n", usage(&help)?);
    for Group { title, commands } in &groups {
        let page = title.to_lowercase();
        index += &format!("\n## {title}\n\n| command | what it does |\n|---|---|\n");
        let mut text = opened(SOURCE, title);
        text += "The options of all commands are in [Command line](../commands.md).\n";
        for command in commands {
            let help = program.said(&[command, "--help"])?;
            index += &format!("| [{command}](commands/{page}.md#longhaul-{command}) | {} |\n", about(&help));
            text += &sections(program, &[command], &help)?;
        }
        pages.insert(format!("commands/{page}.md"), text);
    }
    pages.insert("commands.md".to_owned(), index);
    Ok(pages)
}

/// The page of exit codes, which the help of the program lists, and that of `exec` for the code that it runs.
pub(crate) fn exit_codes(program: &Program) -> Result<String> {
    let mut text = opened(SOURCE, "Exit codes");
    text += &table_of_codes(&program.said(&ALL)?)?;
    text += "\nErrors are text on standard error, which says what to do. With `--json`, standard output has one value, or \
             one value a\nline while a run goes on.\n";
    text += "\n## longhaul exec\n\n`longhaul exec` ends as the code does that it runs, or says what stopped it. Wrong \
             arguments are 2 here, too.\n\n";
    text += &table_of_codes(&program.said(&["exec", "--help"])?)?;
    text += "\nCode may end with each of these numbers itself; `exit_code` and `limit` of `--json` tell which it was. With\n\
             `--exit-code-of-longhaul` the command ends with 0 once the code was run and its result printed, whatever \
             the result\nis, and with 1 if the code was not run.\n";
    Ok(text)
}

/// The table of the exit codes that a help lists.
fn table_of_codes(help: &str) -> Result<String> {
    let about = help.split("\n\nUsage:").next().unwrap_or_default();
    let codes = about.split("\n\n").find_map(|part| joined(part).strip_prefix(CODES).map(str::to_owned));
    let codes = codes.with_context(|| format!("the help has no paragraph that begins with `{CODES}`"))?;
    let mut text = "| code | meaning |\n|---|---|\n".to_owned();
    for code in codes.trim_end_matches('.').split("; ") {
        let (number, meaning) = code.split_once(' ').with_context(|| format!("`{code}` is no exit code"))?;
        text += &format!("| {number} | {} |\n", cell(meaning));
    }
    Ok(text)
}

/// The groups in the help that lists all commands: a title is indented by one space, an entry by two, and the further
/// lines of an entry by more.
fn groups(help: &str) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    for line in listed.take_while(|line| line.is_empty() || line.starts_with(' ')) {
        let text = line.trim_start();
        match (line.len() - text.len(), text.split_whitespace().next(), groups.last_mut()) {
            (1, Some(_), _) => groups.push(Group { title: text.to_owned(), commands: Vec::new() }),
            (2, Some(command), Some(group)) => group.commands.push(command.to_owned()),
            _ => {}
        }
    }
    groups
}

/// The sections of a command and of everything below it.
fn sections(program: &Program, path: &[&str], help: &str) -> Result<String> {
    let mut text = format!("\n## longhaul {}\n\n```text\n{}\n```\n", path.join(" "), without_globals(help));
    for below in subcommands(help) {
        let path = [path, &[below.as_str()]].concat();
        let arguments = [path.as_slice(), &["--help"]].concat();
        text += &sections(program, &path, &program.said(&arguments)?)?;
    }
    Ok(text)
}

/// The commands that a help lists, without `help` itself.
fn subcommands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| line.is_empty() || line.starts_with(' '));
    // What an entry says goes on in lines that are indented more.
    let entries = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = entries.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// A help without the options that every command has.
fn without_globals(help: &str) -> String {
    let (mut kept, mut is_option, mut is_global) = (Vec::new(), false, false);
    for line in help.lines() {
        if line == "Options:" {
            is_option = true;
        } else if !line.is_empty() && !line.starts_with(' ') {
            if is_global {
                kept.push("");
            }
            (is_option, is_global) = (false, false);
        }
        if is_option && line.starts_with(' ') && line.trim_start().starts_with('-') {
            let mut names = line.split([' ', ',', '[', '=']).filter(|name| !name.is_empty()).take(2);
            is_global = names.any(|name| GLOBAL.contains(&name));
        }
        if !(is_option && is_global) {
            kept.push(line);
        }
    }
    let text = kept.join("\n");
    let text = text.trim_end();
    text.strip_suffix("\nOptions:").unwrap_or(text).trim_end().to_owned()
}

/// The usage and the options in the help of the program.
fn usage(help: &str) -> Result<String> {
    let usage = help.split_once("Usage:").and_then(|(_, rest)| rest.split_once("\nCommands:"));
    let (usage, rest) = usage.context("the help has a usage and commands")?;
    let (_, options) = rest.split_once("\nOptions:").context("the help has options")?;
    Ok(format!("Usage:{}\n\nOptions:{}", usage.trim_end(), options.trim_end()))
}

/// The first paragraph of a help.
fn about(help: &str) -> String {
    cell(help.split("\n\n").next().unwrap_or_default())
}

#[test]
fn a_help_is_read_with_what_stands_below_it() {
    let help = "Do things\n\nUsage: longhaul x <COMMAND>\n\nCommands:\n  one   First\n        and more\n  help  Print\n\n\
                Options:\n      --json  Print JSON\n              at length\n  -h, --help  Print help\n";
    assert_eq!(subcommands(help), ["one"]);
    assert!(without_globals(help).ends_with("help  Print"));
    let own = "Usage: x\n\nOptions:\n      --all   All\n      --json  Print JSON\n\nExamples:\n  longhaul x\n";
    assert_eq!(without_globals(own), "Usage: x\n\nOptions:\n      --all   All\n\nExamples:\n  longhaul x");
}

#[test]
fn commands_are_read_with_their_groups() {
    let help = "Longhaul\n\nUsage: longhaul <COMMAND>\n\nCommands:\n\n Runs\n  run           Start\n                it\n  stop          End\n\n \
                Tools\n  mcp           Serve\n\nOptions:\n  --json\n";
    let group = |title: &str, commands: &[&str]| Group {
        title: title.to_owned(),
        commands: commands.iter().map(|&command| command.to_owned()).collect(),
    };
    assert_eq!(groups(help), [group("Runs", &["run", "stop"]), group("Tools", &["mcp"])]);
}
