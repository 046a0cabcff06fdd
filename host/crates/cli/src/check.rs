//! `longhaul check`, and the first step of `longhaul resume --reread-goal`.

use super::arguments::ModelArgs;
use super::context::Context;
use super::exit::Exit;
use super::models;
use super::order::print_json;
use clap::Args;
use longhaul_api::checks::Overview;
use longhaul_api::operations::{ProjectOperations as _, RunOperations as _};
use longhaul_api::projects::CheckProject;
use longhaul_api::runs::RereadGoal;
use longhaul_api::runs::RunRef;
use longhaul_api::wire::projects::ProjectCheckView;
use longhaul_core::fault::{self, bail};

#[derive(Args, Debug)]
pub struct CheckArgs {
    #[command(flatten)]
    models: ModelArgs,
    /// If there is no finding, also send each model one small request of each kind that runs use, as `longhaul models
    /// test` does. Default: send nothing.
    #[arg(long, conflicts_with = "recorded")]
    online: bool,
}

/// Runs the command.
pub async fn run(context: &Context, args: CheckArgs) -> fault::Result<Exit> {
    if args.online && context.is_of_server() {
        bail!(
            "--online asks models from this machine; leave it out, or run `longhaul check --online` on the server's machine"
        );
    }
    if args.online {
        context.client.keep();
    }
    let models = args.models.options(|path| context.whole(path));
    let request = CheckProject { directory: context.project.clone(), models };
    let check = context.check_project(request).await?;
    let is_fine = check.findings.is_empty();
    let exit = if is_fine { Exit::Done } else { Exit::Error };
    if context.json {
        print_json(&ProjectCheckView::from(check))?;
    } else if is_fine {
        show(&check.overview);
    } else {
        check.findings.iter().for_each(|finding| outln!("{finding}"));
    }
    if args.online && is_fine {
        return models::run(context, models::ModelsCommand::Test { name: None }).await;
    }
    Ok(exit)
}

/// Reads the goal of a run again and prints the changes.
pub async fn reread(context: &Context, run: RunRef, is_for_programs: bool) -> fault::Result<()> {
    let changes = context.reread_goal(RereadGoal { run }).await?.changes;
    // A stream is for programs: no other text is printed between its lines.
    changes.iter().for_each(|line| if is_for_programs { errln!("{line}") } else { outln!("{line}") });
    Ok(())
}

fn show(overview: &Overview) {
    let Overview { project, parts, models, checks, turn, features, run_needs } = overview;
    match run_needs {
        Some(_) => outln!("{project}: nothing is wrong; it has no goal, and this would answer `longhaul ask`"),
        None => outln!("{project}: nothing is wrong; this would run"),
    }
    let planned = match (features, run_needs) {
        (Some(features), _) => features.clone(),
        (None, None) => vec!["as a planner splits the goal, with a model".to_owned()],
        (None, Some(_)) => Vec::new(),
    };
    let needs = run_needs.clone().unwrap_or_default();
    let sections = [
        ("parts", parts),
        ("models", models),
        ("checks", checks),
        ("turn", turn),
        ("features", &planned),
        ("a run would need more", &needs),
    ];
    for (what, lines) in sections {
        if !lines.is_empty() {
            outln!("{what}");
            lines.iter().for_each(|line| outln!("  {line}"));
        }
    }
}
