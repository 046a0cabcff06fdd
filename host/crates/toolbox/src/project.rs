//! `builtin:project`: lets an agent read the state of its project, and propose changes of it.
//!
//! Reads answer from the state after the last step. A change of the list of features, or the start of a project, is a
//! proposal: it is stored, reported, and accepted or rejected by a person. No function here marks a feature: the
//! verdict of the evaluator does. Every call that stores something finds by its key what an earlier attempt stored, and
//! gives the same answer.

mod functions;

use longhaul_core::counted::{CountReservation, CountedKind};
use longhaul_core::store::{Batch, Key, Store, StoreError, Table};
use longhaul_core::text::truncate;
use longhaul_core::tool::{HostTool, ToolCall, ToolError, ToolInfo, ToolOutput};
use longhaul_core::work::{Criterion, FeatureSpec, FeatureStatus};
use longhaul_core::{Clock, InvocationId, LimitHit, Limits};
use longhaul_harness::{Feature, plan, select};
use longhaul_records::proposals::{self, PROPOSALS_MAX, Proposal, ProposalStatus, ProposedChange};
use longhaul_records::record::{self, RunRecord, StoredRun};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Entries of the progress log: in a status, by default in an answer, and at most.
const PROGRESS_IN_STATUS: usize = 5;
const PROGRESS_DEFAULT: usize = 20;
const PROGRESS_MAX: usize = 200;

/// Features in one answer, by default and at most.
const FEATURES_DEFAULT: usize = 200;
const FEATURES_MAX: usize = 1_000;

/// Projects that one answer lists, the newest.
const PROJECTS_MAX: usize = 100;

/// Bytes of a stored text: a longer reason or log entry is cut, a longer goal of a project is refused.
const TEXT_BYTES_MAX: usize = 4_096;
const GOAL_BYTES_MAX: usize = 64 << 10;

/// Files that a log entry names; further ones are left out, as by the capability `progress`.
const FILES_MAX: usize = 100;

/// The tool `builtin:project`.
pub struct ProjectTool {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The machine's clock.
    pub clock: Arc<dyn Clock>,
}

#[async_trait::async_trait]
impl HostTool for ProjectTool {
    async fn info(&self, name: &str) -> Result<ToolInfo, ToolError> {
        Ok(functions::info(name))
    }

    async fn call(
        &self,
        call: &ToolCall,
        caller: &InvocationId,
        key: &str,
        _attempt: u32,
    ) -> Result<ToolOutput, ToolError> {
        Calling { store: &*self.store, clock: &*self.clock, caller }.answer(call, key).await
    }
}

/// The tool, for one caller.
struct Calling<'a> {
    store: &'a dyn Store,
    clock: &'a dyn Clock,
    caller: &'a InvocationId,
}

/// The answer of a call: JSON.
type ToolResult = Result<Value, ToolError>;

impl Calling<'_> {
    async fn answer(&self, call: &ToolCall, key: &str) -> Result<ToolOutput, ToolError> {
        let told = match call.function.as_str() {
            "get_project_status" => self.status(call.read()?),
            "list_project_features" => self.features(call.read()?),
            "get_project_progress_log" => self.log(call.read()?),
            "list_long_running_projects" => self.projects(call.read()?),
            "get_next_feature_to_work_on" => self.next(call.read()?),
            "log_project_progress" => self.note(call.read()?, key).await,
            "add_project_feature" => self.add(call.read()?, key).await,
            "update_feature_status" => self.update(call.read()?, key).await,
            "create_long_running_project" => self.create(call.read()?, key).await,
            other => Err(ToolError::UnknownFunction(truncate(other, 120))),
        };
        Ok(ToolOutput { output: told?.to_string(), truncated: false })
    }

    // Reads.

    fn status(&self, Nothing {}: Nothing) -> ToolResult {
        let StoredRun { record, state } = self.run()?;
        let words = FeatureStatus::ALL.map(|status| (word(status), state.count(status)));
        let features: Map<String, Value> = words.into_iter().map(|(word, count)| (word, count.into())).collect();
        let kept = state.features.len() - state.count(FeatureStatus::Dropped);
        let percent = (100 * state.count(FeatureStatus::Passing)).checked_div(kept).unwrap_or(0);
        Ok(json!({
            "project": record.project,
            "run": record.run,
            "branch": record.branch,
            "status": state.status(),
            "features_total": kept,
            "features": features,
            "percent_passing": percent,
            "progress": self.progress(record.scope(), PROGRESS_IN_STATUS)?,
        }))
    }

    fn features(&self, ListFeatures { status, limit }: ListFeatures) -> ToolResult {
        let state = self.run()?.state;
        let wanted = |feature: &&Feature| status.is_none_or(|status| feature.status == status);
        let limit = limit.unwrap_or(FEATURES_DEFAULT).min(FEATURES_MAX);
        Ok(state.features.iter().filter(wanted).take(limit).map(in_short).collect())
    }

    fn log(&self, ReadLog { limit }: ReadLog) -> ToolResult {
        let record = self.record()?;
        self.progress(record.scope(), limit.unwrap_or(PROGRESS_DEFAULT).min(PROGRESS_MAX))
    }

    fn projects(&self, Nothing {}: Nothing) -> ToolResult {
        let mut newest: Vec<RunRecord> = Vec::new();
        for record in record::records(self.store).map_err(broken)?.into_iter().rev() {
            if newest.len() < PROJECTS_MAX && !newest.iter().any(|known| known.scope() == record.scope()) {
                newest.push(record);
            }
        }
        let told = newest.iter().map(|record| {
            let stored = record::load(self.store, &record.run).map_err(broken)?;
            let state = stored.ok_or_else(|| broken(format!("run {} is gone", record.run)))?.state;
            let kept = state.features.len() - state.count(FeatureStatus::Dropped);
            let passing = state.count(FeatureStatus::Passing);
            Ok(json!({
                "project": record.project, "run": record.run, "status": state.status(),
                "features_passing": passing, "features_total": kept, "created_ms": record.created_ms,
            }))
        });
        told.collect()
    }

    fn next(&self, Nothing {}: Nothing) -> ToolResult {
        let state = self.run()?.state;
        // A feature under work is the answer, and not the one after it.
        let next = select::next(&state.features, |_| false, |_| state.limits.feature_attempts_max);
        let told = next.map(|at| &state.features[at]).map(|feature| {
            let mut told = in_short(feature);
            told["instruction"] = feature.spec.instruction.clone().into();
            told["criteria"] = feature.spec.criteria.iter().map(|criterion| criterion.text.clone()).collect();
            told
        });
        Ok(json!({ "feature": told }))
    }

    fn progress(&self, project: &str, limit: usize) -> ToolResult {
        let rows = self.store.last(Table::Progress, &Key::of(project), limit).map_err(broken)?;
        rows.iter().map(|(_, entry)| serde_json::from_slice::<Value>(entry).map_err(broken)).collect()
    }

    // Writes.

    /// Adds a log entry. A row beside it holds the call's key, so that another attempt adds none.
    async fn note(&self, Note { action, outcome, files }: Note, key: &str) -> ToolResult {
        let record = self.record()?;
        let done = Key::of(record.run.as_str()).and("called").and(key);
        let told = json!({ "logged": true });
        if self.store.get(Table::States, &done).map_err(broken)?.is_some() {
            return Ok(told);
        }
        let at_ms = self.clock.now_ms();
        let cut = |text: &String| truncate(text, TEXT_BYTES_MAX);
        let entry = json!({
            "at_ms": at_ms,
            "plugin": self.caller,
            "action": cut(&action),
            "outcome": cut(&outcome),
            "files": files.iter().take(FILES_MAX).map(cut).collect::<Vec<_>>(),
        });
        let (place, entry) = (Key::of(record.scope()).number(at_ms).and(key), entry.to_string());
        let (limits, bytes) = (Limits::default(), entry.len() as u64);
        let room = CountReservation::find(self.store, &record.run, &limits, CountedKind::Progress, bytes, None)
            .await
            .map_err(broken)?;
        let room = room.map_err(ToolError::Limit)?;
        let batch = Batch::new().insert(Table::States, done, at_ms.to_string()).put(Table::Progress, place, entry);
        self.store.commit(room.counted(batch)).await.map_err(broken)?;
        Ok(told)
    }

    async fn add(&self, asked: AddFeature, key: &str) -> ToolResult {
        let reason = asked.reason.clone();
        let state = self.run()?.state;
        let others: Vec<&FeatureSpec> = state.features.iter().map(|feature| &feature.spec).collect();
        // A proposal that a person could not accept is refused. Warnings appear again when it is accepted.
        let (spec, _) = plan::accept_edit(asked.spec(), &others, &state.setup, &state.limits).map_err(invalid)?;
        self.propose(ProposedChange::AddFeature { spec }, reason, key).await
    }

    async fn update(&self, UpdateStatus { feature, status, reason }: UpdateStatus, key: &str) -> ToolResult {
        let state = self.run()?.state;
        let Some(found) = state.feature(&feature) else {
            return Err(invalid(format!("there is no feature `{}`", truncate(&feature, 80))));
        };
        let change = match (status, found.status) {
            (FeatureStatus::Passing, _) => {
                return Err(invalid(
                    "`passing` is decided by the evaluator's verdict on each criterion, and by nobody else",
                ));
            }
            (FeatureStatus::Dropped, FeatureStatus::Passing) => {
                return Err(invalid(format!("feature `{feature}` passes and is committed; it cannot be dropped")));
            }
            (FeatureStatus::Dropped, _) => ProposedChange::DropFeature { feature },
            (FeatureStatus::NotStarted, FeatureStatus::Dropped) => ProposedChange::RestoreFeature { feature },
            (asked, _) => {
                let asked = word(asked);
                return Err(invalid(format!(
                    "`{asked}` follows from the work itself; propose `dropped`, or `not_started` for what was dropped"
                )));
            }
        };
        self.propose(change, reason, key).await
    }

    async fn create(&self, NewProject { name, goal, reason }: NewProject, key: &str) -> ToolResult {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !(1..=64).contains(&name.len()) || !name.bytes().all(plain) {
            return Err(invalid("a project's name is 1 to 64 letters, digits, `-` and `_`"));
        }
        if goal.trim().is_empty() || goal.len() > GOAL_BYTES_MAX {
            return Err(invalid(format!("a goal has 1 to {GOAL_BYTES_MAX} bytes, this one {}", goal.len())));
        }
        self.propose(ProposedChange::NewProject { name, goal }, reason, key).await
    }

    async fn propose(&self, change: ProposedChange, reason: String, key: &str) -> ToolResult {
        let run = self.caller.run();
        let id = proposals::id_of(key);
        let told = json!({
            "proposal": id,
            "standing": "open",
            "decided_by": "a person, with `longhaul features accept` or `longhaul features reject`",
        });
        if proposals::get(self.store, &run, &id).map_err(broken)?.is_some() {
            return Ok(told);
        }
        let all = proposals::list(self.store, &run).map_err(broken)?;
        let open = all.iter().filter(|one| one.standing == ProposalStatus::Open).count();
        if open >= PROPOSALS_MAX {
            return Err(ToolError::Limit(LimitHit::new("proposals_max", open as u64 + 1, PROPOSALS_MAX as u64)));
        }
        let proposal = Proposal {
            id,
            at_ms: self.clock.now_ms(),
            by: self.caller.clone(),
            change,
            reason: truncate(&reason, TEXT_BYTES_MAX),
            standing: ProposalStatus::Open,
            told: false,
        };
        let batch = proposal.insert(Batch::new()).map_err(broken)?;
        match self.store.commit(batch).await {
            // Another attempt of this call was faster.
            Ok(()) | Err(StoreError::Conflict { .. }) => Ok(told),
            Err(error) => Err(broken(error)),
        }
    }

    fn run(&self) -> Result<StoredRun, ToolError> {
        let run = self.caller.run();
        record::load(self.store, &run).map_err(broken)?.ok_or_else(|| broken(format!("run {run} is gone")))
    }

    fn record(&self) -> Result<RunRecord, ToolError> {
        let run = self.caller.run();
        record::record(self.store, &run).map_err(broken)?.ok_or_else(|| broken(format!("run {run} is gone")))
    }
}

/// No arguments.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListFeatures {
    status: Option<FeatureStatus>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadLog {
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    action: String,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    files: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddFeature {
    id: String,
    title: Option<String>,
    instruction: String,
    #[serde(default = "functional")]
    category: String,
    #[serde(default = "middle")]
    priority: u8,
    criteria: Vec<String>,
    #[serde(default)]
    depends_on: Vec<String>,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateStatus {
    feature: String,
    status: FeatureStatus,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewProject {
    name: String,
    goal: String,
    #[serde(default)]
    reason: String,
}

fn functional() -> String {
    "functional".to_owned()
}

fn middle() -> u8 {
    5
}

impl AddFeature {
    /// The feature without checks: only the operator gives those.
    fn spec(self) -> FeatureSpec {
        let numbered = (1..).zip(self.criteria);
        FeatureSpec {
            title: self.title.unwrap_or_else(|| self.id.clone()),
            id: self.id,
            instruction: self.instruction,
            category: self.category,
            priority: self.priority,
            agent: None,
            criteria: numbered.map(|(at, text)| Criterion { id: format!("c{at}"), text, check: None }).collect(),
            checks: Vec::new(),
            depends_on: self.depends_on,
        }
    }
}

fn in_short(feature: &Feature) -> Value {
    let Feature { spec, status, why, attempts, .. } = feature;
    json!({
        "id": spec.id, "title": spec.title, "category": spec.category, "priority": spec.priority,
        "status": status, "why": why, "attempts": attempts, "depends_on": spec.depends_on,
    })
}

/// A status as arguments and answers spell it.
fn word(status: FeatureStatus) -> String {
    serde_json::to_value(status).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

fn invalid(why: impl std::fmt::Display) -> ToolError {
    ToolError::InvalidArguments(why.to_string())
}

fn broken(why: impl std::fmt::Display) -> ToolError {
    ToolError::Failed(format!("{why:#}"))
}
