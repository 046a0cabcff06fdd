//! `longhaul models`: what is configured, whether it works, and fetching a small model.

mod test;

use super::context::Context;
use super::exit::Exit;
use clap::Subcommand;
use longhaul_config::Config;
use longhaul_core::fault;
use longhaul_home::cache;

#[derive(Subcommand, Debug)]
pub enum Command {
    /// List the models of this project.
    List,
    /// Send each model one small request of each kind that runs use, and say what works.
    Test {
        /// One model, by its name under `[models]`. Default: all.
        name: Option<String>,
    },
    /// Fetch a small model that runs on the processor, and check its digest.
    Pull {
        /// Its name: `smollm2`, which answers, or `minilm`, which says what sentences mean.
        name: String,
    },
}

/// Carries it out.
pub async fn run(context: &Context, command: Command) -> fault::Result<Exit> {
    match command {
        Command::List => {
            let config = Config::read(&context.project)?;
            if context.json {
                outln!("{}", serde_json::to_string(&config.models)?);
            } else {
                for (name, model) in &config.models {
                    outln!("{name:<12} {}", serde_json::to_string(model)?);
                }
            }
            Ok(Exit::Done)
        }
        Command::Test { name } => test::run(context, name.as_deref()).await,
        Command::Pull { name } => {
            let mut told = |text: &str| errln!("{text}");
            let path = longhaul_models::pull(&name, &cache()?, &mut told).await?;
            if context.json {
                outln!("{}", serde_json::json!({ "model": name, "path": path }));
            } else {
                outln!("{name} is at {}", path.display());
            }
            Ok(Exit::Done)
        }
    }
}
