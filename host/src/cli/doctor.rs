//! `longhaul doctor`: what this machine has of what a run may need, and how to use it.

use super::{Context, Exit};
use crate::plugins;
use crate::wiring::{cache, variable};
use longhaul_models::{Discovery, discover};

/// Plugins that a project made by `longhaul new` names.
const SHIPPED: [&str; 7] =
    ["initializer", "react", "check-evaluator", "rubric-evaluator", "files", "python", "javascript"];

/// Carries it out.
pub async fn run(context: &Context) -> anyhow::Result<Exit> {
    let missing: Vec<&str> = SHIPPED
        .into_iter()
        .filter(|name| plugins::find(name, Some(&context.project), &context.home).is_err())
        .collect();
    let found = discover(&variable, &longhaul_models::discover::PORTS).await;
    let model = longhaul_models::pull::path_of("smollm2", &cache()?).filter(|path| path.is_file());
    if context.json {
        outln!(
            "{}",
            serde_json::json!({
                "home": context.home.path(),
                "plugins_missing": missing,
                "keys": found.keys,
                "servers": found.servers,
                "local_model": model,
                "local_model_built_in": cfg!(feature = "local-model"),
            })
        );
        return Ok(Exit::Done);
    }
    outln!("data directory   {}", context.home.path().display());
    match missing[..] {
        [] => outln!("plugins          all shipped ones are found"),
        _ => outln!(
            "plugins          missing: {}; build them with `cargo xtask plugins`, or set LONGHAUL_PLUGINS",
            missing.join(", ")
        ),
    }
    print_models(&found);
    let built = if cfg!(feature = "local-model") {
        ""
    } else {
        " (this longhaul was built without; build it with --features local-model)"
    };
    match model {
        Some(path) => outln!("local model      {}{built}; use it with: provider = \"local\"", path.display()),
        None => outln!("local model      none{built}; fetch one with: longhaul models pull smollm2"),
    }
    Ok(Exit::Done)
}

fn print_models(found: &Discovery) {
    if found.keys.is_empty() {
        outln!("keys             none in the environment");
    }
    for key in &found.keys {
        outln!("key              {key} is set; use it with: api_key_env = \"{key}\"");
    }
    if found.servers.is_empty() {
        outln!("model servers    none on the usual ports of this machine");
    }
    for server in &found.servers {
        let (usually, url, models) = (&server.usually, &server.base_url, server.models.join(", "));
        outln!(
            "model server     {usually} at {url} with {models}; use it with: provider = \"openai\", base_url = \"{url}\""
        );
    }
}
