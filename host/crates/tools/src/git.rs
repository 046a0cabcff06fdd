//! `builtin:git`: a run's commits, the changes of its tree, and checkpoints in between.
//!
//! The tree of a run is a plain directory, and the harness commits a feature once its judge has passed it. So `commit`
//! does not do that: it stores the tree as a checkpoint, on a ref of the run that no branch, no judge and no later
//! session reads. Refuses every commit that is not of the run's branch, every word that is no hash (there are no
//! revision expressions and no options here), and the user's files, index, configuration and other branches.

use crate::arguments::{at_most, blocking_within, invalid, of_tree, path};
use crate::environment::ToolRoot;
use longhaul_core::journal::EffectClass;
use longhaul_core::text::truncate;
use longhaul_core::tool::{FunctionInfo, HostTool, ToolCall, ToolError, ToolInfo, ToolOutput};
use longhaul_core::{Digest, InvocationId};
use longhaul_worktree::{Branch, CheckpointOrder, TreeError, UserRepository};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Default and largest number of commits in one answer.
const COMMITS_DEFAULT: usize = 20;
const COMMITS_MAX: usize = 200;

/// Bytes of one patch. A file that does not fit is left out as a whole, and counted.
const PATCH_BYTES_MAX: usize = 256 << 10;

/// The most changed files in a status.
const CHANGES_MAX: usize = 1_000;

/// The timeout of one call, in milliseconds. After it the work continues without a reader.
const CALL_MS_MAX: u32 = 60_000;

/// The most parallel calls, including those after their timeout.
const CALLS_AT_ONCE_MAX: usize = 4;

/// Bytes of a message.
const MESSAGE_BYTES_MAX: usize = 8 << 10;

/// The tool.
pub struct Git {
    place: ToolRoot,
    seats: Arc<Semaphore>,
}

impl Git {
    /// The tool, in a place.
    #[must_use]
    pub fn new(place: ToolRoot) -> Self {
        Self { place, seats: Arc::new(Semaphore::new(CALLS_AT_ONCE_MAX)) }
    }
}

#[async_trait::async_trait]
impl HostTool for Git {
    async fn info(&self, name: &str) -> Result<ToolInfo, ToolError> {
        Ok(ToolInfo {
            id: name.to_owned(),
            description:
                "The commits of this run and what differs from them. A feature is committed by the harness when \
                          it passed; `commit` keeps a checkpoint on the way and passes nothing."
                    .to_owned(),
            functions: functions(),
        })
    }

    async fn call(
        &self,
        call: &ToolCall,
        caller: &InvocationId,
        key: &str,
        _attempt: u32,
    ) -> Result<ToolOutput, ToolError> {
        let asked = Asked::read(call)?;
        let (place, run) = (self.place.clone(), caller.run().to_string());
        let effect = format!("checkpoint/{}", Digest::of(key.as_bytes()));
        let work = move || Repository::open(place)?.answer(asked, &run, &effect);
        let (told, truncated) = blocking_within(CALL_MS_MAX, &self.seats, work).await?;
        Ok(ToolOutput { output: told.to_string(), truncated })
    }
}

fn functions() -> Vec<FunctionInfo> {
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": COMMITS_MAX, "default": COMMITS_DEFAULT });
    let commit = json!({ "type": "string", "pattern": "^[0-9a-fA-F]{4,40}$", "description": "4 digits of it or more" });
    let below = json!({ "type": "string", "description": "Only below this directory, or this file" });
    let read = EffectClass::ReadOnly;
    vec![
        FunctionInfo::of("status", "The branch, where it is, and the files that differ", read, json!({}), &[]),
        FunctionInfo::of(
            "diff",
            "How the files differ from the commit that work began at, as a patch",
            read,
            json!({ "path": below }),
            &[],
        ),
        FunctionInfo::of("log", "The commits that led here, and checkpoints", read, json!({ "limit": limit }), &[]),
        FunctionInfo::of(
            "show",
            "One commit of this run with its patch",
            read,
            json!({ "commit": commit }),
            &["commit"],
        ),
        FunctionInfo::of(
            "commit",
            "Keeps the files as they are now as a checkpoint. The feature's own commit is made when it passed",
            EffectClass::Idempotent,
            json!({ "message": { "type": "string", "minLength": 1, "maxLength": MESSAGE_BYTES_MAX } }),
            &["message"],
        ),
    ]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Diff {
    #[serde(default)]
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Log {
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Show {
    commit: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Commit {
    message: String,
}

/// A valid call.
enum Asked {
    Status,
    Diff(String),
    Log(usize),
    Show(String),
    Commit(String),
}

impl Asked {
    fn read(call: &ToolCall) -> Result<Self, ToolError> {
        Ok(match call.function.as_str() {
            "status" => call.read::<Nothing>().map(|_| Self::Status)?,
            "diff" => Self::Diff(path(&call.read::<Diff>()?.path)?),
            "log" => Self::Log(call.read::<Log>()?.limit.unwrap_or(COMMITS_DEFAULT).clamp(1, COMMITS_MAX)),
            "show" => Self::Show(call.read::<Show>()?.commit),
            "commit" => {
                let message = call.read::<Commit>()?.message;
                at_most("message_bytes_max", message.len(), MESSAGE_BYTES_MAX)?;
                if message.trim().is_empty() {
                    return Err(invalid("the message is empty"));
                }
                Self::Commit(message)
            }
            other => return Err(ToolError::UnknownFunction(truncate(other, 120))),
        })
    }
}

/// The run's branch and tree, opened for one call.
struct Repository {
    place: ToolRoot,
    project: UserRepository,
    branch: Branch,
    /// The base of the comparison.
    base: String,
}

/// JSON, and whether it is incomplete.
type GitAnswer = Result<(Value, bool), TreeError>;

impl Repository {
    fn open(place: ToolRoot) -> Result<Self, ToolError> {
        let found = || -> Result<_, TreeError> {
            let project = place.project()?;
            let branch = Branch::new(&place.branch)?;
            let base = match place.tree().at() {
                Some(base) => base,
                None => project.head()?,
            };
            Ok((project, branch, base))
        };
        let (project, branch, base) = found().map_err(of_tree)?;
        Ok(Self { place, project, branch, base })
    }

    fn answer(&self, asked: Asked, run: &str, effect: &str) -> Result<(Value, bool), ToolError> {
        match asked {
            Asked::Status => self.status(),
            Asked::Diff(under) => self.diff(&under),
            Asked::Log(limit) => self.log(run, limit),
            Asked::Show(commit) => self.show(&commit),
            Asked::Commit(message) => self.commit(&message, run, effect),
        }
        .map_err(of_tree)
    }

    fn status(&self) -> GitAnswer {
        let scan = self.place.tree().scan(&self.project, &self.base)?;
        let truncated = scan.changes.len() > CHANGES_MAX;
        let told = json!({
            "branch": self.branch.as_str(),
            "branch_is_at": self.project.tip(&self.branch)?,
            "work_began_at": self.base,
            "changes": scan.changes.iter().take(CHANGES_MAX).collect::<Vec<_>>(),
            "changes_total": scan.changes.len(),
            "left_out": scan.left_out.iter().take(CHANGES_MAX).collect::<Vec<_>>(),
        });
        Ok((told, truncated))
    }

    fn diff(&self, under: &str) -> GitAnswer {
        let patch = self.place.tree().patch(&self.project, &self.base, under, PATCH_BYTES_MAX)?;
        let truncated = patch.files_left_out > 0;
        Ok((json!({ "from": self.base, "patch": patch.text, "files_left_out": patch.files_left_out }), truncated))
    }

    fn log(&self, run: &str, limit: usize) -> GitAnswer {
        let commits = self.project.log_from(&self.branch, &self.base, limit)?;
        let checkpoints = self.project.checkpoints(run)?;
        let newest: Vec<_> = checkpoints.iter().rev().take(limit).collect();
        Ok((json!({ "commits": commits, "checkpoints": newest }), false))
    }

    fn show(&self, word: &str) -> GitAnswer {
        let shown = self.project.show(&self.branch, &self.base, word, PATCH_BYTES_MAX)?;
        let truncated = shown.patch.files_left_out > 0;
        Ok((json!(shown), truncated))
    }

    fn commit(&self, message: &str, run: &str, effect: &str) -> GitAnswer {
        let order =
            CheckpointOrder { run, parent: &self.base, message, effect_id: effect, time_ms: self.place.clock.now_ms() };
        let made = self.place.tree().checkpoint(&self.project, &order)?;
        let note = "a checkpoint; the branch moves when the feature passed";
        Ok(match made {
            Some(made) => (json!({ "checkpoint": made.name, "commit": made.commit, "note": note }), false),
            None => (json!({ "checkpoint": null, "note": "nothing differs, so there is nothing to keep" }), false),
        })
    }
}
