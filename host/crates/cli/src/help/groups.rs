//! The help of the program: a short one that fits a screen, and a full one with every command and option.
//!
//! Both are made of the commands' own descriptions, and of one table, in which each command stands once. clap has no
//! groups of commands.

use super::layout::wrapped;
use clap::Command;

/// Commands that belong together.
struct Group {
    name: &'static str,
    commands: &'static [&'static str],
}

const GROUPS: [Group; 9] = [
    Group {
        name: "Projects",
        commands: &["onboard", "init", "new", "projects", "project", "check", "doctor", "schema", "detect", "do"],
    },
    Group {
        name: "Runs",
        commands: &["run", "resume", "status", "runs", "attach", "pause", "cancel", "steer", "answer", "abandon"],
    },
    Group {
        name: "Results",
        commands: &["features", "log", "diff", "merge", "revert", "report", "decisions", "journal", "replay"],
    },
    Group { name: "History", commands: &["fork", "compare", "rehearse", "move", "scenario", "crashtest"] },
    Group { name: "Asks", commands: &["ask", "exec", "graph", "runtimes", "packages"] },
    Group { name: "Agents", commands: &["agent", "schedule", "memory", "trajectories"] },
    Group { name: "Tools", commands: &["models", "plugin", "conform", "mcp", "skill", "completions"] },
    Group { name: "Security", commands: &["trust", "approvals", "secrets", "audit", "token"] },
    Group {
        name: "Operation",
        commands: &["serve", "ps", "top", "workers", "metrics", "checkpoint", "gc", "backup", "restore", "store"],
    },
];

/// Commands whose descriptions the short help has.
const OFTEN: [&str; 7] = ["onboard", "init", "run", "resume", "status", "merge", "ask"];

/// Columns of a description in the short help.
const ABOUT_COLUMNS_MAX: usize = 66;

/// Columns of a name, with the spaces around it.
const NAME_COLUMNS: usize = 16;

/// The end of the short help.
const MORE: &str = "More: `longhaul help --all`, `longhaul help COMMAND`, `longhaul help`: the book.";

/// The short help of the program.
pub(super) fn brief(command: &Command, columns: usize) -> String {
    let mut text = wrapped(&about(command), "", "", columns);
    text += "Usage: longhaul [OPTIONS] <COMMAND>\n\nOften used:\n";
    for name in OFTEN {
        let about = command.find_subcommand(name).map(|found| cut(&about(found), ABOUT_COLUMNS_MAX).to_owned());
        text += &wrapped(&about.unwrap_or_default(), &format!("  {name:<9} "), "            ", columns);
    }
    text += "\nAll commands:\n";
    for Group { name, commands } in &GROUPS {
        text += &wrapped(&commands.join(" "), &format!("  {name:<9} "), "            ", columns);
    }
    text.push('\n');
    text += &wrapped(MORE, "", "", columns);
    text
}

/// All commands with their descriptions, and all options: the help that clap would print, with its list of commands in
/// groups.
pub(super) fn full(mut command: Command, columns: usize) -> String {
    let groups = listed(&command, columns);
    let help = command.render_long_help().to_string();
    let (before, rest) = help.split_once("\nCommands:\n").unwrap_or((&help, ""));
    let (_, options) = rest.split_once("\nOptions:\n").unwrap_or_default();
    format!("{before}\nCommands:\n{groups}\nOptions:\n{options}")
}

fn listed(command: &Command, columns: usize) -> String {
    let mut text = String::new();
    for Group { name, commands } in &GROUPS {
        text += &format!("\n {name}\n");
        for name in *commands {
            let about = command.find_subcommand(name).map(about).unwrap_or_default();
            let (first, rest) = (format!("  {name:<14}"), " ".repeat(NAME_COLUMNS));
            text += &wrapped(&about, &first, &rest, columns);
        }
    }
    text
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// The first sentence of a description, without what comes after the last comma or colon that fits.
fn cut(about: &str, columns: usize) -> &str {
    let sentence = about.split_once(". ").map_or(about, |(first, _)| first);
    if sentence.chars().count() <= columns {
        return sentence;
    }
    let mut ends = sentence.match_indices([',', ':', ';']).map(|(at, _)| &sentence[..at]);
    ends.rfind(|part| part.chars().count() <= columns).unwrap_or(sentence)
}

/// The names in all groups, for the tests of the table.
#[cfg(test)]
pub(super) fn grouped() -> Vec<&'static str> {
    GROUPS.iter().flat_map(|group| group.commands).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_cut_where_a_part_of_it_ends() {
        assert_eq!(cut("Show a run. Then more", 20), "Show a run");
        assert_eq!(cut("Show a run: its name, and its features", 25), "Show a run: its name");
        assert_eq!(cut("Show a run: its name, and its features", 15), "Show a run");
        assert_eq!(cut("Show everything there is", 10), "Show everything there is");
    }
}
