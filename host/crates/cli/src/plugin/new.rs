//! `longhaul plugin new`: makes a project that builds at once. It never overwrites a file.

use crate::context::Context;
use crate::exit::Exit;
use crate::order::print_json;
use clap::Args;
use longhaul_api::wire::plugins::NewPluginView;
use longhaul_build::{Draft, PluginKind, PluginLanguage};
use longhaul_core::fault;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct NewArgs {
    /// Name of the plugin and its folder: lower-case words with hyphens between them.
    name: String,
    /// Kind of the plugin: agent, planner, tool, evaluator or memory.
    #[arg(long)]
    kind: String,
    /// Language of the plugin: rust, python, js or c.
    #[arg(long)]
    lang: String,
    /// The folder to make the project in. It is created if it is missing.
    #[arg(long, value_name = "DIR", default_value = ".")]
    into: PathBuf,
}

/// Runs the command.
pub fn run(context: &Context, args: &NewArgs) -> fault::Result<Exit> {
    let (kind, language): (PluginKind, PluginLanguage) = (args.kind.parse()?, args.lang.parse()?);
    let directory = Draft::new(&args.name, kind, language)?.write(&context.project.join(&args.into))?;
    let shown = directory.strip_prefix(&context.project).unwrap_or(&directory);
    if context.json {
        print_json(&NewPluginView {
            name: args.name.clone(),
            kind: kind.word().to_owned(),
            language: language.word().to_owned(),
            directory: directory.display().to_string(),
        })?;
    } else {
        outln!("made {0}; its README.md says what is where. Build it: longhaul plugin build {0}", shown.display());
    }
    Ok(Exit::Done)
}
