//! `longhaul onboard`: from nothing to the commits of a demo project, with a kill and a resume on the way.
//!
//! It writes nothing but the new directory, and sends nothing that costs money unless the user chose its provider. The
//! run is a child process of this program, so that the kill is a real one.

mod account;
mod child;
mod demo;
mod page;
mod person;
mod provider;
mod words;

use super::context::Context;
use super::exit::Exit;
use super::machine;
use super::order::print_json;
use account::Account;
use child::Ending;
use clap::Args;
use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::{CommitLog, ListCommits, RunRef};
use longhaul_api::wire::onboarding::DemoReport;
use longhaul_core::fault::{self, bail};
use longhaul_core::text::shell_word;
use longhaul_report::messages;
use person::Person;
use std::path::PathBuf;
use words::say;

/// Plugins of the demo.
const PLUGINS: [&str; 5] = ["initializer", "react", "check-evaluator", "files", "python"];

/// The line of a run after which it is killed.
const KILL_AT: &str = "committed ";

/// Commits that are shown.
const COMMITS_MAX: usize = 20;

#[derive(Args, Debug)]
pub struct OnboardArgs {
    /// Ask nothing, for scripts. Takes the local model if it was fetched and works, otherwise the recording: neither
    /// costs money.
    #[arg(long, short)]
    yes: bool,
    /// The provider of the model: `local`, `recorded`, a server on this machine such as `ollama`, or one whose key is
    /// in the environment, such as `openai`. Default: it is asked.
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The provider's own name of the model, where it has several.
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// The directory to make.
    #[arg(long, value_name = "DIR", default_value = "longhaul-demo")]
    directory: PathBuf,
    /// Do not kill the run.
    #[arg(long)]
    no_kill: bool,
}

/// Runs the command.
pub async fn run(context: &Context, args: OnboardArgs) -> fault::Result<Exit> {
    let OnboardArgs { yes, provider, model, directory, no_kill } = args;
    let person = Person::of(context.json, yes)?;
    let directory = context.project.join(directory);
    demo::expect_free(&directory)?;
    let missing = machine::missing(&PLUGINS, None, &context.home);
    if !missing.is_empty() {
        bail!("the demo needs plugins, {}", machine::missing_words(&missing));
    }
    let chosen = provider::choose(context, &person, provider.as_deref(), model.as_deref()).await?;
    let kills = !no_kill && person.agrees("kill the run in the middle, and resume it?", true).await?;
    let directory = demo::make(&directory, &chosen.model)?;
    say(context, &format!("made the project {}: GOAL.md, longhaul.toml, and a first commit", directory.display()));
    Demo { context, directory, provider: chosen.name }.work(&person, kills).await
}

/// The demo once its project is made.
struct Demo<'a> {
    context: &'a Context,
    directory: PathBuf,
    provider: String,
}

impl Demo<'_> {
    async fn work(self, person: &Person, kills: bool) -> fault::Result<Exit> {
        self.say("\nlonghaul run");
        let kill_at = kills.then_some(KILL_AT);
        let before = match child::run(self.context, &self.directory, "run", kill_at).await? {
            Ending::Interrupted => return Ok(self.interrupted().await),
            Ending::Killed => Some(self.killed().await?),
            Ending::Ended(code) => {
                self.expect_result(code).await?;
                None
            }
        };
        if kills && before.is_none() {
            self.say("the run had ended before it could be killed");
        }
        if before.is_some() {
            match child::run(self.context, &self.directory, "resume", None).await? {
                Ending::Interrupted | Ending::Killed => return Ok(self.interrupted().await),
                Ending::Ended(code) => self.expect_result(code).await?,
            }
        }
        self.report(before).await?;
        self.offer_page(person).await
    }

    /// Tells what was done when the run was killed.
    async fn killed(&self) -> fault::Result<Account> {
        let account = Account::read(self.context, &self.directory).await?;
        self.say("\nkilled with SIGKILL: nothing of it could be said or saved at its end");
        self.say(&format!("the journal has {}", account.words()));
        self.say("\nlonghaul resume");
        Ok(account)
    }

    /// Shows that nothing was repeated, and the commits.
    async fn report(&self, before: Option<Account>) -> fault::Result<()> {
        let after = Account::read(self.context, &self.directory).await?;
        let repeated = before.as_ref().map(|before| before.repeated(&after)).unwrap_or_default();
        let commits = self.commits().await?;
        if self.context.json {
            return print_json(&DemoReport {
                directory: self.directory.display().to_string(),
                provider: self.provider.clone(),
                run: after.run().to_string(),
                killed: before.is_some(),
                before: before.as_ref().map(Account::progress),
                after: after.progress(),
                repeated,
                commits: commits.commits.into_iter().map(|commit| commit.subject).collect(),
            });
        }
        if let Some(before) = before {
            let finished = messages::counted(before.progress().invocations, "invocation");
            let words = match &repeated[..] {
                [] => format!("none of the {finished} that had finished before the kill was executed again"),
                repeated => format!("executed again: {}", repeated.join(", ")),
            };
            outln!("\nthe journal has {}; {words}", after.words());
        }
        outln!("\ncommits on {}:", commits.branch);
        for commit in commits.commits {
            outln!("  {}  {}", messages::short(&commit.commit), commit.subject);
        }
        Ok(())
    }

    async fn commits(&self) -> fault::Result<CommitLog> {
        let run = RunRef::NewestIn(self.directory.clone());
        self.context.commit_log(ListCommits { run, limit: COMMITS_MAX, reverted: false }).await
    }

    /// Says how to see more, and opens the page if the person wants to.
    async fn offer_page(&self, person: &Person) -> fault::Result<Exit> {
        self.say(&format!("\nlook at the work:  {} diff", self.command()));
        self.say("open the page:     longhaul serve   (it asks for a token: longhaul token add NAME --scope read)");
        self.say("go on from here:   longhaul help guides/project");
        if person.agrees("open the page now?", false).await.unwrap_or(false) {
            page::open(self.context).await?;
        }
        Ok(Exit::Done)
    }

    /// Ends after Ctrl-C.
    async fn interrupted(&self) -> Exit {
        let next = self.next_command().await;
        errln!("stopped; nothing is lost. Go on with: {next}");
        Exit::Paused
    }

    /// Accepts a run whose features pass, and one whose features do not: a small model may miss some.
    async fn expect_result(&self, code: Option<i32>) -> fault::Result<()> {
        if [Exit::Done, Exit::Incomplete].map(|exit| Some(i32::from(exit.code()))).contains(&code) {
            return Ok(());
        }
        let next = self.next_command().await;
        match code {
            Some(code) => bail!("the run ended with exit code {code}; go on with: {next}"),
            None => bail!("a signal ended the run; go on with: {next}"),
        }
    }

    /// The command that goes on: `resume`, or `run` where no run has begun yet, since `resume` would find none.
    async fn next_command(&self) -> String {
        let has_run = Account::read(self.context, &self.directory).await.is_ok();
        format!("{} {}", self.command(), if has_run { "resume" } else { "run" })
    }

    /// The program for this project, to be typed in a shell.
    fn command(&self) -> String {
        format!("longhaul --project {}", shell_word(&self.directory.to_string_lossy()))
    }

    fn say(&self, text: &str) {
        say(self.context, text);
    }
}
