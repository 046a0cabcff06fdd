//! `longhaul plugin remove`. A run that has begun keeps its plugins: it took their bytes into its own store.

use super::say;
use crate::cli::{Context, Exit};
use crate::plugins::installed::{Installed, Wanted};
use clap::Args;
use serde_json::json;

#[derive(Args, Debug)]
pub struct RemoveArgs {
    /// An installed plugin with all its versions, or one of them.
    #[arg(value_name = "NAME[@VERSION|@sha256:DIGITS]")]
    plugin: Wanted,
}

/// Carries it out.
pub fn run(context: &Context, args: &RemoveArgs) -> anyhow::Result<Exit> {
    let (installed, name) = (Installed::of(&context.home), &args.plugin.name);
    // Before the lock, which would make the folder.
    if installed.versions(name)?.is_empty() {
        installed.find(&args.plugin)?;
    }
    let gone = installed.change(say)?.remove(&args.plugin)?;
    let current = installed.current(name);
    if context.json {
        outln!("{}", json!({ "name": name, "removed": gone, "current": current }));
        return Ok(Exit::Done);
    }
    for version in &gone {
        outln!("removed {name} {} (sha256:{})", version.version, version.digest.short());
    }
    if let Some(current) = current {
        outln!("runs take {name} (sha256:{})", current.short());
    }
    Ok(Exit::Done)
}
