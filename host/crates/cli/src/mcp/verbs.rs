//! The verbs of the harness as tools; each has the service carry out one operation.

use super::done::{PersonAnswer, VerbResult};
use crate::context::Context;
use longhaul_api::approvals::{AnswerApproval, ListApprovals};
use longhaul_api::operations::{ApprovalOperations as _, ProjectOperations as _, RunOperations as _};
use longhaul_api::projects::CreateProject;
use longhaul_api::runs::{AnswerRun, BeginRun, ListRuns, ResumeRun, ShowRun, TakeBackAnswer};
use longhaul_api::runs::{OpenQuestion, RunRef, Status};
use longhaul_api::wire::approvals::Approved;
use longhaul_api::wire::runs::{ProjectMade, RunDetails};
use longhaul_approval::{Approval, ApprovalStatus, banner};
use longhaul_client::which;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::journal::Resolution;
use longhaul_core::work::FeatureStatus;
use longhaul_harness::{Feature, RunStatus};
use longhaul_models::set::ModelOptions;
use longhaul_report::{self as report, ReportFormat};
use rmcp::model::Tool;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A verb.
#[derive(Clone, Copy)]
pub struct Verb {
    name: &'static str,
    description: &'static str,
    kind: VerbKind,
}

#[derive(Clone, Copy)]
enum VerbKind {
    Create,
    Run,
    Resume,
    Status,
    Answer,
    Approve,
    Report,
}

const VERBS: [Verb; 7] = [
    Verb {
        name: "longhaul_create",
        description: "Make a new project with its own git repository, where nothing is yet. Then write its GOAL.md.",
        kind: VerbKind::Create,
    },
    Verb {
        name: "longhaul_run",
        description: "Start a run: turn the goal into features and work on them. The run goes on after this call returns.",
        kind: VerbKind::Run,
    },
    Verb {
        name: "longhaul_resume",
        description: "Continue a run that was paused or killed, or that ended with features that do not pass.",
        kind: VerbKind::Resume,
    },
    Verb { name: "longhaul_status", description: "Show a run and its features.", kind: VerbKind::Status },
    Verb {
        name: "longhaul_answer",
        description: "Answer the question that a run or a feature waits for. Without `text` a person is asked.",
        kind: VerbKind::Answer,
    },
    Verb {
        name: "longhaul_approve",
        description: "Ask the person to approve a waiting tool call. Only their own words count.",
        kind: VerbKind::Approve,
    },
    Verb {
        name: "longhaul_report",
        description: "Report a run as Markdown: features, commits, usage, and events in order of time.",
        kind: VerbKind::Report,
    },
];

/// Lists the verbs as tools.
pub fn tools() -> Vec<Tool> {
    let tool = |verb: &Verb| Tool::new(verb.name, verb.description, rmcp::model::object(verb.kind.schema()));
    VERBS.iter().map(tool).collect()
}

/// Finds a verb by its name.
pub fn find(name: &str) -> Option<Verb> {
    VERBS.into_iter().find(|verb| verb.name == name)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    directory: PathBuf,
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    directory: Option<PathBuf>,
    #[serde(default)]
    plan_only: bool,
    sessions: Option<u32>,
    #[serde(default)]
    again: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resume {
    run: Option<String>,
    #[serde(default)]
    retry_failing: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfRun {
    run: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Approving {
    id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answering {
    run: Option<String>,
    feature: Option<String>,
    question: Option<String>,
    text: Option<String>,
    happened: Option<Value>,
    #[serde(default)]
    did_not_happen: bool,
    #[serde(default)]
    skip: bool,
    #[serde(default, alias = "take_back")]
    retract: bool,
}

impl VerbKind {
    fn schema(self) -> Value {
        let run = || json!({ "type": "string", "description": "The run, or the beginning of its name. Default: the newest of the project" });
        let directory = || json!({ "type": "string", "description": "The project's directory. Default: the server's" });
        let flag = |text: &str| json!({ "type": "boolean", "default": false, "description": text });
        let (properties, required) = match self {
            Self::Create => (json!({ "directory": directory(), "name": { "type": "string" } }), json!(["directory"])),
            Self::Run => {
                let properties = json!({
                    "directory": directory(),
                    "plan_only": flag("Pause before any work on the features"),
                    "sessions": { "type": "integer", "minimum": 1, "description": "Pause after this number of sessions" },
                    "again": flag("Start anew although the project was abandoned"),
                });
                (properties, json!([]))
            }
            Self::Resume => {
                (json!({ "run": run(), "retry_failing": flag("Retry features whose rounds are used up") }), json!([]))
            }
            Self::Status | Self::Report => (json!({ "run": run() }), json!([])),
            Self::Approve => {
                let id = json!({ "type": "string", "description": "The approval, or the beginning of its id. Default: the oldest that is open in the project" });
                (json!({ "id": id }), json!([]))
            }
            Self::Answer => {
                let properties = json!({
                    "run": run(),
                    "feature": { "type": "string", "description": "The feature whose question is answered. Default: the only open question" },
                    "question": { "type": "string", "description": "The question about an effect, by its id in longhaul_status" },
                    "text": { "type": "string", "description": "The answer in words" },
                    "happened": { "description": "The effect happened, and this is its result" },
                    "did_not_happen": flag("The effect did not happen: execute it"),
                    "skip": flag("Do not execute the effect; the agent gets an error"),
                    "retract": flag("Retract the answer about an effect, possible until the run has used it"),
                });
                (properties, json!([]))
            }
        };
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }
}

impl Verb {
    /// True when a person's words may come in an argument, which the client's model writes.
    pub fn takes_text(self) -> bool {
        matches!(self.kind, VerbKind::Answer)
    }

    /// Carries out the verb. `said` is the answer of the person behind the client, once they were asked.
    pub async fn call(
        self,
        context: &Context,
        arguments: Value,
        said: Option<PersonAnswer>,
    ) -> fault::Result<VerbResult> {
        match self.kind {
            VerbKind::Create => create(context, self.read(arguments)?).await,
            VerbKind::Run => run(context, self.read(arguments)?).await,
            VerbKind::Resume => resume(context, self.read(arguments)?).await,
            VerbKind::Answer => {
                let asked: Answering = self.read(arguments)?;
                let (text, about) = said.map_or((None, None), |said| (Some(said.text), said.about));
                // The person saw one question, and answers no other.
                let question = about.or(asked.question);
                answer(context, Answering { text: text.or(asked.text), question, ..asked }).await
            }
            VerbKind::Approve => approve(context, self.read(arguments)?, said).await,
            VerbKind::Status => {
                let OfRun { run } = self.read(arguments)?;
                told(RunDetails::from(status(context, run).await?))
            }
            VerbKind::Report => {
                let OfRun { run } = self.read(arguments)?;
                let run = which(run, &context.project);
                Ok(VerbResult::Value(report::of(&context.client, run, ReportFormat::Md).await?.into()))
            }
        }
    }

    fn read<T: DeserializeOwned>(self, arguments: Value) -> fault::Result<T> {
        serde_json::from_value(arguments).with_context(|| format!("the arguments of `{}`", self.name))
    }
}

async fn create(context: &Context, args: Create) -> fault::Result<VerbResult> {
    let directory = context.project.join(args.directory);
    let request = CreateProject { directory, name: args.name, fresh: true };
    let created = context.create_project(request).await?;
    let goal = created.directory.join("GOAL.md");
    let mut made = serde_json::to_value(ProjectMade::from(created))?;
    made["goal"] = json!(goal);
    Ok(VerbResult::Value(made))
}

async fn run(context: &Context, args: Run) -> fault::Result<VerbResult> {
    let directory = args.directory.map_or_else(|| context.project.clone(), |named| context.project.join(named));
    let Run { plan_only, sessions, again, .. } = args;
    let models = ModelOptions::default();
    let request = BeginRun { directory, models, plan: None, plan_only, sessions, again };
    told(context.begin_run(request).await?)
}

async fn resume(context: &Context, args: Resume) -> fault::Result<VerbResult> {
    let run = which(args.run, &context.project);
    let request = ResumeRun { run, retry_failing: args.retry_failing, sessions: None };
    told(context.resume_run(request).await?)
}

/// The result of a verb: a wire type.
fn told(result: impl Serialize) -> fault::Result<VerbResult> {
    Ok(VerbResult::Value(serde_json::to_value(result)?))
}

async fn status(context: &Context, run: Option<String>) -> fault::Result<Status> {
    context.run_status(ShowRun { run: which(run, &context.project) }).await
}

async fn answer(context: &Context, args: Answering) -> fault::Result<VerbResult> {
    let said = match (args.happened, args.did_not_happen, args.skip) {
        (Some(output), false, false) => Some(Resolution::Happened(output.to_string())),
        (None, true, false) => Some(Resolution::DidNotHappen),
        (None, false, true) => Some(Resolution::Skip),
        (None, false, false) => None,
        _ => bail!("say one of `happened`, `did_not_happen` and `skip`"),
    };
    let waits = status(context, args.run.clone()).await?;
    let run = RunRef::Named(waits.summary.run.to_string());
    if args.retract {
        let (feature, question) = (args.feature, args.question);
        return told(context.take_back_answer(TakeBackAnswer { run, feature, question }).await?);
    }
    let about = effect(&waits, args.feature.as_deref(), args.question.as_deref())?;
    if args.text.is_none() && said.is_none() {
        return asks(&waits, about, args.feature.as_deref());
    }
    let text = args.text.unwrap_or_default();
    let resolution = said.or_else(|| about.and_then(|_| chosen(&text)));
    let question = about.filter(|_| resolution.is_some()).map(|one| one.id.clone());
    let feature = args.feature.filter(|_| question.is_none());
    let request = AnswerRun { run, feature, question, resolution, text };
    told(context.answer_run(request).await?)
}

/// The question about an effect that the arguments mean, if they mean one. Where they could mean several, none is
/// guessed.
fn effect<'a>(
    waits: &'a Status,
    feature: Option<&str>,
    question: Option<&str>,
) -> fault::Result<Option<&'a OpenQuestion>> {
    let is_meant = |one: &&OpenQuestion| {
        question.is_none_or(|named| one.id == named) && (feature.is_none() || one.feature.as_deref() == feature)
    };
    let mut meant = waits.questions.iter().filter(is_meant);
    match (meant.next(), meant.next()) {
        (None, _) if question.is_some() => bail!("that question is open no more, and nothing was decided; ask again"),
        (None, _) => Ok(None),
        (one, None) => Ok(one),
        (Some(_), Some(_)) => {
            let ids = waits.questions.iter().map(|one| one.id.as_str()).collect::<Vec<_>>().join(", ");
            bail!("several questions are open; say which one with `question`: {ids}; longhaul_status shows them")
        }
    }
}

/// Shows the banner to the person and waits for their own words. An argument of the model decides nothing.
async fn approve(
    context: &Context,
    Approving { id }: Approving,
    said: Option<PersonAnswer>,
) -> fault::Result<VerbResult> {
    let approvals = context.approvals(ListApprovals { run: None, open: true }).await?.approvals;
    let mut open = approvals.iter().filter(|approval| approval.standing == ApprovalStatus::Open);
    let Some(PersonAnswer { text, about }) = said else {
        let own = runs_here(context).await?;
        // Without an id, only approvals of this server's project are meant.
        let wanted = |approval: &&Approval| match &id {
            Some(id) => approval.id.starts_with(id.as_str()),
            None => own.contains(&approval.subject.invocation.run()),
        };
        let found = open.find(wanted);
        let found = found.context("no such approval is open; longhaul_status shows what a run waits for")?;
        return Ok(VerbResult::Asks { question: banner(found), choices: &[], about: Some(found.id.clone()) });
    };
    // The person saw this approval, and decides about no other.
    let Some(approval) = open.find(|approval| Some(&approval.id) == about.as_ref()) else {
        bail!("what the person saw is open no more, and nothing was decided; ask again");
    };
    let request = AnswerApproval { id: approval.id.clone(), text };
    let outcome = context.answer_approval(request).await?;
    let next = if outcome.active { "the run goes on" } else { "longhaul_resume goes on with the run" };
    let mut approved = serde_json::to_value(Approved::from(outcome))?;
    approved["next"] = json!(next);
    Ok(VerbResult::Value(approved))
}

/// The runs of the server's project.
async fn runs_here(context: &Context) -> fault::Result<Vec<RunId>> {
    let runs = context.runs(ListRuns {}).await?.runs;
    Ok(runs.into_iter().filter(|one| one.directory == context.project).map(|one| one.run).collect())
}

/// Possible answers about an effect whose outcome is unknown.
const CHOICES: &[&str] = &["happened", "did not happen", "skip"];

fn chosen(text: &str) -> Option<Resolution> {
    match text {
        "happened" => Some(Resolution::Happened("null".to_owned())),
        "did not happen" => Some(Resolution::DidNotHappen),
        "skip" => Some(Resolution::Skip),
        _ => None,
    }
}

/// The question that is open. It is an error if there is none.
fn asks(status: &Status, about: Option<&OpenQuestion>, feature: Option<&str>) -> fault::Result<VerbResult> {
    if let Some(OpenQuestion { id, text, .. }) = about {
        return Ok(VerbResult::Asks { question: text.clone(), choices: CHOICES, about: Some(id.clone()) });
    }
    let blocked = |feature: &Feature| feature.status == FeatureStatus::Blocked;
    let waits = match feature {
        Some(id) => {
            let found = status.features.iter().find(|feature| feature.spec.id == id);
            let found = found.with_context(|| format!("there is no feature `{id}`"))?;
            blocked(found).then(|| found.why.clone())
        }
        None => (status.summary.status == RunStatus::Parked).then(|| status.reason.clone()),
    };
    let question = waits
        .with_context(|| format!("run {} asks nothing here; longhaul_status shows what it does", status.summary.run))?;
    Ok(VerbResult::Asks { question, choices: &[], about: None })
}
