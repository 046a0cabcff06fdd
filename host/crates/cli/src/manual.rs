//! `longhaul completions` and `longhaul man`: completions of shells and manual pages, made from the definition of the
//! command line.
//!
//! They start no log and no runtime, and need neither a data directory nor a home: packagers call them.

use super::exit::Exit;
use super::terminal;
use clap::Subcommand;
use clap_complete::Shell;
use longhaul_core::fault::{self, Context as _};
use std::path::PathBuf;

/// The name of the program.
const PROGRAM: &str = "longhaul";

#[derive(Subcommand, Debug)]
pub enum ManualCommand {
    /// Print the completions of a shell, such as `longhaul completions bash`.
    ///
    /// For bash write them to `~/.local/share/bash-completion/completions/longhaul`, for fish to
    /// `~/.config/fish/completions/longhaul.fish`, for zsh to `_longhaul` in a directory of `$fpath`.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write the manual pages, one a command, into a directory, which is made if it is missing.
    #[command(hide = true)]
    Man {
        /// The directory.
        directory: PathBuf,
    },
}

/// Runs the command; `cli` is the definition of the whole command line.
pub fn run(command: ManualCommand, mut cli: clap::Command) -> fault::Result<Exit> {
    match command {
        ManualCommand::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut cli, PROGRAM, &mut text);
            terminal::out_bytes(&text);
        }
        ManualCommand::Man { directory } => std::fs::create_dir_all(&directory)
            .and_then(|()| clap_mangen::generate_to(cli, &directory))
            .with_context(|| format!("cannot write manual pages to `{}`", directory.display()))?,
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory as _;

    #[test]
    fn every_shell_completes_the_commands() {
        for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), PROGRAM, &mut text);
            let text = String::from_utf8(text).unwrap();
            for command in ["run", "resume", "completions"] {
                assert!(text.contains(command), "{shell}: {command}");
            }
        }
    }

    #[test]
    fn every_visible_command_has_a_manual_page() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("man");
        run(ManualCommand::Man { directory: directory.clone() }, Cli::command()).unwrap();
        for page in ["longhaul.1", "longhaul-run.1", "longhaul-plugin-build.1", "longhaul-completions.1"] {
            let text = std::fs::read_to_string(directory.join(page)).unwrap();
            assert!(text.contains(".TH"), "{page}");
        }
        assert!(!directory.join("longhaul-bomb-child.1").exists());
        assert!(!directory.join("longhaul-man.1").exists());
    }
}
