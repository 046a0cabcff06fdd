//! `longhaul do`: makes a project from a prompt and runs it, where the prompt is worth one.
//!
//! The detector looks at the words of the prompt and asks no model. No project is made unless the user switched that
//! on, for once or in the file of [`user`], and the detector is sure enough.

mod user;

use super::arguments::{ModelArgs, OutputFormat};
use super::command_client::CommandClient;
use super::context::Context;
use super::detect;
use super::exit::Exit;
use super::follow::{self, StartRequest};
use super::order::print_json;
use clap::Args;
use longhaul_api::operations::SecurityOperations as _;
use longhaul_api::runs::BeginRun;
use longhaul_api::security::TrustProject;
use longhaul_api::wire::projects::PromptDetection;
use longhaul_api::wire::prompts::DetectedView;
use longhaul_config::{make_whole, plain_name};
use longhaul_core::fault::{self, Context as _};
use longhaul_harness::detect::{Detected, detect};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most words of the prompt, and the most bytes, in the name of a directory.
const NAME_WORDS: usize = 5;
const NAME_BYTES_MAX: usize = 40;

#[derive(Args, Debug)]
pub struct DoArgs {
    /// The prompt; `-` reads it from standard input.
    prompt: String,
    /// The directory to make. Default: a name from the first words of the prompt, in this directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Make a project if the prompt is worth one, even if the user's file does not switch that on.
    #[arg(long)]
    auto: bool,
    #[command(flatten)]
    models: ModelArgs,
}

/// Runs the command.
pub async fn run(context: &Context, args: DoArgs) -> fault::Result<Exit> {
    let DoArgs { prompt, dir, auto, models } = args;
    let prompt = detect::read(prompt)?;
    let detected = detect(&prompt);
    let settings = user::UserSettings::read()?;
    if let Some(why) = why_not(&detected, auto || settings.auto.projects) {
        return told(context, &detected, &why);
    }
    let directory = context.project.join(dir.unwrap_or_else(|| name_of(&prompt).into()));
    let directory = make(&directory, &prompt, &settings)?;
    if context.json {
        let project = Some(directory.display().to_string());
        print_json(&PromptDetection {
            detected: DetectedView::from(&detected),
            project,
            reason: None,
            otherwise: None,
        })?;
    } else {
        outln!("{}: made {}", detect::found(&detected), directory.display());
    }
    let client = CommandClient::new(&context.home, &directory, &context.owner);
    let own = Context {
        home: context.home.clone(),
        project: directory.clone(),
        names_project: true,
        json: context.json,
        trust: context.trust,
        client,
        owner: Arc::clone(&context.owner),
    };
    let models = models.options(|path| context.whole(path));
    let request = BeginRun { directory, models, plan: None, plan_only: false, sessions: None, again: false };
    let exit = work(&own, request).await;
    own.client.release().await;
    exit
}

/// Starts and follows the first run of the project.
async fn work(own: &Context, request: BeginRun) -> fault::Result<Exit> {
    own.client.keep();
    // The user wrote all of this file: the template is theirs.
    own.trust_project(TrustProject { directory: own.project.clone(), digest: None }).await?;
    let form = if own.json { OutputFormat::Json } else { OutputFormat::Words };
    follow::start(own, StartRequest::Run(request), form).await
}

/// The reason why no project is made; none if one is.
fn why_not(detected: &Detected, is_on: bool) -> Option<String> {
    if !detected.use_harness {
        return Some("not worth a project".to_owned());
    }
    let file = user::path().map_or_else(|| "the user's file".to_owned(), |path| path.display().to_string());
    (!is_on)
        .then(|| format!("worth a project; make one with --auto, or always with `[auto] projects = true` in {file}"))
}

/// Prints the classification, the reason, and how to start a project by hand.
fn told(context: &Context, detected: &Detected, why: &str) -> fault::Result<Exit> {
    const BY_HAND: &str = "by hand: longhaul new DIR, and write the prompt into GOAL.md";
    if context.json {
        print_json(&PromptDetection {
            detected: DetectedView::from(detected),
            project: None,
            reason: Some(why.to_owned()),
            otherwise: Some(BY_HAND.to_owned()),
        })?;
    } else {
        outln!("{}: {why}; {BY_HAND}", detect::found(detected));
    }
    Ok(Exit::Done)
}

fn make(directory: &Path, prompt: &str, settings: &user::UserSettings) -> fault::Result<PathBuf> {
    let template = settings.auto.template()?;
    let name = plain_name(directory)?;
    make_whole(directory, &name, prompt, template.as_deref())?;
    directory.canonicalize().with_context(|| format!("`{}` was made and is gone", directory.display()))
}

/// The name of a directory from the first words of a prompt.
fn name_of(prompt: &str) -> String {
    let words = prompt.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.take(NAME_WORDS).collect::<Vec<_>>().join("-").to_ascii_lowercase();
    let name = name[..name.floor_char_boundary(NAME_BYTES_MAX)].trim_end_matches('-').to_owned();
    if name.is_empty() { "project".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_called_by_the_first_words() {
        let check = |prompt: &str, expected: &str| assert_eq!(name_of(prompt), expected);
        check("Write 5 papers, on bees & honey", "write-5-papers-on-bees");
        check("../../etc/passwd", "etc-passwd");
        check("日本語", "project");
        check(&"long".repeat(20), &"long".repeat(10));
    }
}
