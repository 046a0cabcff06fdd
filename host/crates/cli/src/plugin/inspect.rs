//! `longhaul plugin inspect`: shows a component and its requests for grants, without running it.

use super::source;
use crate::context::Context;
use crate::exit::Exit;
use crate::order::print_json;
use longhaul_core::fault;
use longhaul_plugins::InspectedPlugin;

/// Runs the command.
pub fn run(context: &Context, file: &str) -> fault::Result<Exit> {
    let path = source::file_of(context, file)?;
    let known = InspectedPlugin::read(&path)?;
    if context.json {
        print_json(&known.view()?)?;
    } else {
        known.lines().iter().for_each(|line| outln!("{line}"));
    }
    Ok(Exit::Done)
}
