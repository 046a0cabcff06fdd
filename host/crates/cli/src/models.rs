//! `longhaul models`: lists and tests the configured models, and fetches a small one.

mod test;

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use clap::Subcommand;
use longhaul_api::wire::models::{ModelListing, PulledModelView};
use longhaul_config::Config;
use longhaul_core::fault;
use longhaul_home::cache;

#[derive(Subcommand, Debug)]
pub enum ModelsCommand {
    /// List the models of this project.
    List,
    /// Send each model one small request of each kind that runs use, and print which work.
    Test {
        /// One model, by its name under `[models]`. Default: all.
        name: Option<String>,
    },
    /// Fetch a small model that runs on the processor, and verify its digest.
    Pull {
        /// Name of the model: `smollm2`, which answers, or `minilm`, which compares the meaning of sentences.
        name: String,
    },
}

/// Runs the command.
pub async fn run(context: &Context, command: ModelsCommand) -> fault::Result<Exit> {
    match command {
        ModelsCommand::List => {
            let config = Config::read(&context.project)?;
            let listing = ModelListing::try_from(&config.models)?;
            if context.json {
                print_json(&listing)?;
            } else {
                for (name, model) in &listing.models {
                    outln!("{name:<12} {}", serde_json::to_string(model)?);
                }
            }
            Ok(Exit::Done)
        }
        ModelsCommand::Test { name } => test::run(context, name.as_deref()).await,
        ModelsCommand::Pull { name } => {
            let mut told = |text: &str| errln!("{text}");
            let path = longhaul_models::pull(&name, &cache()?, &mut told).await?;
            if context.json {
                print_json(&PulledModelView { model: name, path: path.display().to_string() })?;
            } else {
                outln!("{name} is at {}", path.display());
            }
            Ok(Exit::Done)
        }
    }
}
