//! The child process of `longhaul doctor --bombs`: one bomb.
//!
//! It runs this same binary with a hidden command, and starts no log, no runtime and no service. The children of runs
//! are those of every program that uses the library; the program looks for them before it reads the command line.

use super::doctor;
use clap::{Args, Subcommand};

#[derive(Subcommand, Debug)]
pub enum ChildCommand {
    #[command(name = "bomb-child", hide = true)]
    Bomb(BombArgs),
}

#[derive(Args, Debug)]
pub struct BombArgs {
    name: String,
}

/// Runs the child and ends the process with its exit code.
pub fn run(child: ChildCommand) -> ! {
    let ChildCommand::Bomb(args) = child;
    std::process::exit(doctor::bomb_child(&args.name))
}
