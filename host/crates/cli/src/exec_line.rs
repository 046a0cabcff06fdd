//! The command line with `exec` alone, which is read without the others.
//!
//! The whole command line describes more than a hundred commands with their help before it reads a word, and a start
//! with one short job needs none of them. What is read here is read the same by the whole command line. Nothing is
//! refused here and no help is printed: the whole command line does that.

use super::everywhere::EverywhereArgs;
use super::exec::ExecArgs;
use clap::{Parser, Subcommand};
use std::ffi::OsString;

#[derive(Parser)]
#[command(name = "longhaul")]
struct ExecLine {
    #[command(flatten)]
    everywhere: EverywhereArgs,
    #[command(subcommand)]
    command: ExecAlone,
}

#[derive(Subcommand)]
enum ExecAlone {
    Exec(ExecArgs),
}

/// The arguments of `longhaul exec`, with the name of the program before them. None: they are wrong, ask for help, or
/// name another command.
pub(super) fn read(arguments: &[OsString]) -> Option<(EverywhereArgs, ExecArgs)> {
    let ExecLine { everywhere, command: ExecAlone::Exec(args) } = ExecLine::try_parse_from(arguments).ok()?;
    Some((everywhere, args))
}
