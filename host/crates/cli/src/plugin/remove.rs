//! `longhaul plugin remove`. Runs keep their plugins: each run stores the bytes when it begins.

use super::say;
use crate::confirm::agreed;
use crate::context::Context;
use crate::exit::Exit;
use crate::order::print_json;
use clap::Args;
use longhaul_api::wire::plugins::PluginRemoval;
use longhaul_core::fault;
use longhaul_plugins::installed::{InstalledPlugins, PluginRef, PluginVersion};

#[derive(Args, Debug)]
pub struct RemoveArgs {
    /// An installed plugin with all its versions, or one of them.
    #[arg(value_name = "NAME[@VERSION|@sha256:DIGITS]")]
    plugin: PluginRef,
    /// Remove several versions without a question.
    #[arg(long, short)]
    yes: bool,
}

/// Asks before several versions are removed, since they may be more than was meant.
fn ask(context: &Context, name: &str, going: &[PluginVersion]) -> fault::Result<()> {
    if !context.json {
        for version in going {
            outln!("{name} {} (sha256:{})", version.version, version.digest.short());
        }
    }
    let question = format!("remove these {} versions?", going.len());
    let advice = format!("these are {} versions of {name}: name one, or add --yes", going.len());
    agreed(context, &question, "nothing was removed", &advice)
}

/// Runs the command.
pub fn run(context: &Context, args: &RemoveArgs) -> fault::Result<Exit> {
    let (installed, name) = (InstalledPlugins::of(&context.home), &args.plugin.name);
    // Checked before the lock is taken, which would make the folder.
    if installed.versions(name)?.is_empty() {
        installed.find(&args.plugin)?;
    }
    let (going, _) = installed.parted(&args.plugin)?;
    if going.len() > 1 && !args.yes {
        ask(context, name, &going)?;
    }
    let gone = installed.change(say)?.remove(&args.plugin)?;
    let current = installed.current(name);
    if context.json {
        let removed = gone.into_iter().map(Into::into).collect();
        print_json(&PluginRemoval {
            name: name.to_string(),
            removed,
            current: current.map(|digest| digest.to_string()),
        })?;
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
