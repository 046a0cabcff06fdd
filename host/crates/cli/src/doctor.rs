//! `longhaul doctor`: checks this machine for the needs of a run, and tells how to use what it finds.

mod bombs;
mod checks;
mod toolchains;
mod walls;

use super::context::Context;
use super::exit::Exit;
use super::machine::{self, FoundModels};
use super::order::print_json;
pub use bombs::child as bomb_child;
use clap::Args;
use longhaul_api::wire::doctor::{CheckResult, CheckState, DoctorView};
use longhaul_core::fault;
use longhaul_home::cache;
use longhaul_models::Discovery;

/// Plugins in the configuration that `longhaul new` writes.
const SHIPPED: [&str; 7] =
    ["initializer", "react", "check-evaluator", "rubric-evaluator", "files", "python", "javascript"];

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Read the whole store and compare content with its digests, also while the store is in use.
    #[arg(long)]
    store: bool,
    /// Instead, load components that are made to be slow, huge or deep, each in a process of its own, and print how
    /// each ended, with its time and memory. Exit code 1 when one did not end as it must, or could not be tried since
    /// the compiler did not start. With PART, only those with that text in their names.
    #[arg(long, value_name = "PART", num_args = 0..=1, default_missing_value = "", conflicts_with = "store")]
    bombs: Option<String>,
}

/// Runs the command. Only a broken check is an error; a check that finds room for improvement is not.
pub async fn run(context: &Context, args: DoctorArgs) -> fault::Result<Exit> {
    if let Some(part) = &args.bombs {
        return bombs::run(context, part).await;
    }
    let mut checks = all(context, args.store).await;
    if context.names_project {
        checks.extend(toolchains::all(&context.project, &context.home).await);
    }
    let exit = if checks.iter().any(|found| found.state == CheckState::Broken) { Exit::Error } else { Exit::Done };
    let missing = machine::missing(&SHIPPED, Some(&context.project), &context.home);
    let FoundModels { discovery: found, local: model } = machine::models().await?;
    if context.json {
        print_json(&DoctorView {
            home: context.home.path().display().to_string(),
            plugins_missing: missing.into_iter().map(str::to_owned).collect(),
            keys: found.keys,
            servers: found.servers.into_iter().map(Into::into).collect(),
            local_model: model.map(|path| path.display().to_string()),
            local_model_built_in: context.owner.has_local_model(),
            checks,
        })?;
        return Ok(exit);
    }
    outln!("data directory   {}", context.home.path().display());
    checks.iter().for_each(print_check);
    match missing[..] {
        [] => outln!("plugins          all shipped ones are found"),
        _ => outln!("plugins          {}", machine::missing_words(&missing)),
    }
    print_models(&found);
    let built = if context.owner.has_local_model() {
        ""
    } else {
        " (this longhaul was built without; build it with --features local-model)"
    };
    match model {
        Some(path) => outln!("local model      {}{built}; use it with: provider = \"local\"", path.display()),
        None => outln!("local model      none{built}; fetch one with: longhaul models pull smollm2"),
    }
    Ok(exit)
}

/// Runs all checks of the machine. The whole store is read only with `reads_store`.
async fn all(context: &Context, reads_store: bool) -> Vec<CheckResult> {
    let home = &context.home;
    let mut found = vec![checks::memory(), checks::graphics(), checks::disk("disk of data", home.path())];
    if let Ok(cache) = cache() {
        found.push(checks::cache_disk(&cache));
    }
    found.extend([checks::permissions(home), checks::secrets(home), checks::settings(home), checks::clock(home)]);
    found.extend([walls::of_programs(home).await, walls::of_compiler().await, checks::groups()]);
    let database = context.owner.check_database(home).await;
    let has_database = !database.is_empty();
    found.extend(database);
    found.push(checks::store(context, reads_store, has_database).await);
    found
}

fn print_check(found: &CheckResult) {
    let mark = match found.state {
        CheckState::Fine => "",
        CheckState::Less => "(less) ",
        CheckState::Broken => "BROKEN: ",
    };
    outln!("{:<16} {mark}{}", found.what, found.said);
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
