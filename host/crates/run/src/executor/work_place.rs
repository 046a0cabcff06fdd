//! One piece of work in a workspace: a plugin call with its input, or a run of checks.

use super::ending::{EndedWork, ResultLine, WorkEnd, ended, reported, stuck};
use super::invocation_context::SubAgents;
use super::orientation::{self, OrientationFacts, orientation};
use super::{WorkExecutor, Workspace, premature_completion, survey};
use crate::checks::{PinnedChecks, trial};
use longhaul_capabilities::null::NullServices;
use longhaul_capabilities::{InvocationSetup, Models as _};
use longhaul_core::InvocationId;
use longhaul_core::event::Event;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::memory::Trust;
use longhaul_core::tool::{CheckError, Checks};
use longhaul_core::work::{
    CheckSpec, Criterion, Goal, Issue, Outcome, Plan, RoleError, Rubric, StepResult, Subject, Task,
};
use longhaul_engine::{Called, Cancel};
use longhaul_harness::{Feature, RunState, StepSummary, Trial, TrialOutcome, Work, WorkKind, WorkReport};
use longhaul_journal::Opened;
use longhaul_memory::{recollect, told_words, words_heard};
use longhaul_plugins::plugin_set::PreparedPlugin;
use longhaul_records::invocation::JournaledResult;
use longhaul_records::record::put_judged;
use longhaul_records::{approvals, proposals};
use longhaul_sandbox::Level;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// Bytes of evidence that an evaluator sees, all files together.
const EVIDENCE_BYTES_MAX: usize = 200_000;

/// The name of the evidence that lists the changed files of a test runner.
const NEAR_THE_JUDGE: &str = "changes near the judge";

/// One piece of work, and its workspace.
pub(super) struct WorkPlace<'a> {
    pub(super) executor: &'a WorkExecutor,
    pub(super) workspace: &'a Workspace,
    /// The commit that the tree is compared with.
    pub(super) base: &'a str,
    pub(super) work: &'a Work,
    pub(super) state: &'a RunState,
    pub(super) cancel: &'a Cancel,
}

impl WorkPlace<'_> {
    pub(super) async fn plan(&self, mut goal: Goal) -> fault::Result<EndedWork> {
        let part = self.part("planner").await?;
        goal.settings = part.settings.clone();
        self.show_repository(part, &goal.text, &mut goal.context).await?;
        let input = goal.clone();
        self.invoke(part, "planner.plan", &input, Arc::new(NullServices), WorkReport::Planned, async |setup| {
            part.plugin.plan(setup, self.cancel, goal).await
        })
        .await
    }

    pub(super) async fn replan(&self, mut goal: Goal, plan: Plan, results: &[StepSummary]) -> fault::Result<EndedWork> {
        let part = self.part("planner").await?;
        goal.settings = part.settings.clone();
        self.show_repository(part, &goal.text, &mut goal.context).await?;
        let results: Vec<_> = results.iter().map(|result| self.result_of(result)).collect();
        let input = (goal.clone(), plan.clone(), results.clone());
        self.invoke(part, "planner.replan", &input, Arc::new(NullServices), WorkReport::Planned, async |setup| {
            part.plugin.replan(setup, self.cancel, goal, plan, results).await
        })
        .await
    }

    pub(super) async fn synthesize(&self, mut goal: Goal, results: &[StepSummary]) -> fault::Result<EndedWork> {
        let part = self.part("planner").await?;
        goal.settings = part.settings.clone();
        let results: Vec<_> = results.iter().map(|result| self.result_of(result)).collect();
        let input = (goal.clone(), results.clone());
        self.invoke(
            part,
            "planner.synthesize",
            &input,
            Arc::new(NullServices),
            WorkReport::Synthesized,
            async |setup| part.plugin.synthesize(setup, self.cancel, goal, results).await,
        )
        .await
    }

    /// The result with the output, which the harness does not keep. A step that never produced any has none.
    fn result_of(&self, report: &StepSummary) -> StepResult {
        let outcome = report.generated.as_ref().and_then(|key| self.executor.outcome_of(key).ok());
        StepResult { step: report.step.clone(), passed: report.passed, outcome, issues: report.issues.clone() }
    }

    pub(super) async fn propose(&self, agent: &str, task: Task) -> fault::Result<EndedWork> {
        let report = |outcome: Outcome| WorkReport::Proposed { output: outcome.output };
        self.ask_agent(agent, task, Vec::new(), Vec::new(), report).await
    }

    pub(super) async fn generate(&self, agent: &str, mut task: Task) -> fault::Result<EndedWork> {
        let words = format!("{} {}", task.context["title"].as_str().unwrap_or_default(), task.instruction);
        self.show_repository(self.part(&format!("agents.{agent}")).await?, &words, &mut task.context).await?;
        let (specs, vacuous) = self.pinned();
        let mut ended = self.ask_agent(agent, task, specs, vacuous, WorkReport::Generated).await?;
        if let (Some(repository), WorkEnd::Report(WorkReport::Generated(outcome))) =
            (&self.workspace.repository, &ended.end)
            && !repository.is_changed(self.base).await?
        {
            ended.end = WorkEnd::Report(WorkReport::Unchanged(outcome.clone()));
        }
        Ok(ended)
    }

    async fn ask_agent(
        &self,
        agent: &str,
        mut task: Task,
        specs: Vec<CheckSpec>,
        vacuous: Vec<String>,
        report: impl FnOnce(Outcome) -> WorkReport,
    ) -> fault::Result<EndedWork> {
        let part = self.part(&format!("agents.{agent}")).await?;
        if part.quarantine.is_some() {
            bail!(
                "[agents.{agent}] is in quarantine: it works for other agents only, by agents = [\"{agent}\"] of theirs"
            );
        }
        task.settings = part.settings.clone();
        let input = task.clone();
        let checks: Arc<dyn Checks> = match self.workspace.repository {
            Some(_) => Arc::new(self.checks(specs, vacuous)?),
            None => Arc::new(NullServices),
        };
        self.invoke(part, "agent.run", &input, checks, report, async |setup| {
            part.plugin.run(setup, self.cancel, task).await
        })
        .await
    }

    pub(super) async fn judge(
        &self,
        feature: &str,
        generated: &str,
        instruction: &str,
        criteria: &[Criterion],
    ) -> fault::Result<EndedWork> {
        let repository = self.workspace.repository()?;
        let judged = match repository.subject(self.base).await? {
            Ok(judged) => judged,
            // Reported before an evaluator judges changes that cannot become a commit.
            Err(files) => return Ok(EndedWork::of(WorkEnd::Report(WorkReport::Unfit { files }))),
        };
        let outcome = self.executor.outcome_of(generated)?;
        let mut ended = self.ask_evaluator(instruction, &outcome.output, criteria).await?;
        let near = repository.runner_files(self.base).await?;
        if let Some(said) = near_the_judge(&near) {
            ended.heard.push(Event::Warning { text: format!("`{feature}` changed {said}") });
        }
        let held_by_less = repository.held_by_less().into_iter();
        ended.heard.extend(held_by_less.map(|(check, level)| Event::Warning { text: held(feature, &check, level) }));
        if let WorkEnd::Report(WorkReport::Judged(verdict)) = &mut ended.end {
            // An evaluator sees neither these files nor why they are missing.
            let unkept = repository.unkept().still().await?;
            verdict.issues.extend(unkept.iter().map(|file| Issue::general(format!("in no commit: {file}"))));
        }
        let agent = InvocationId::of_action(&self.executor.record.run, generated);
        ended.heard.extend(premature_completion::sign(agent, &outcome, &ended.end, criteria));
        // A later commit must hold exactly what was judged now.
        ended.batch = put_judged(ended.batch, &self.executor.record.run, feature, judged);
        Ok(ended)
    }

    /// Asks the evaluator for a verdict on the tree as it stands.
    pub(super) async fn ask_evaluator(
        &self,
        instruction: &str,
        output: &str,
        criteria: &[Criterion],
    ) -> fault::Result<EndedWork> {
        let part = self.part("evaluator").await?;
        let repository = self.workspace.repository()?;
        let mut evidence = repository.evidence(self.base, EVIDENCE_BYTES_MAX).await?;
        if let Some(said) = near_the_judge(&repository.runner_files(self.base).await?) {
            evidence.push((NEAR_THE_JUDGE.to_owned(), format!("The work changed {said}. Look at it closely.")));
        }
        let subject = Subject { instruction: instruction.to_owned(), output: output.to_owned(), evidence };
        let rubric = Rubric { criteria: criteria.to_vec(), settings: part.settings.clone() };
        let input = (subject.clone(), rubric.clone());
        let (specs, vacuous) = self.pinned();
        let checks = Arc::new(self.checks(specs, vacuous)?);
        let judged = self.invoke(part, "evaluator.judge", &input, checks.clone(), WorkReport::Judged, async |setup| {
            part.plugin.judge(setup, self.cancel, subject, rubric).await
        });
        let mut ended = judged.await?;
        ended.heard.extend(self.work.feature().map(|feature| checks.told(feature)).unwrap_or_default());
        Ok(ended)
    }

    /// Runs each proposed check once on the branch's tip, before the plan is accepted.
    pub(super) async fn try_checks(&self, plan: &Plan, proposed: &[(String, String)]) -> fault::Result<EndedWork> {
        self.workspace.repository()?.prepare().await?;
        let mut trials = Vec::with_capacity(proposed.len());
        for (feature, check) in proposed {
            let Some(step) = plan.steps.iter().find(|step| step.spec.id == *feature) else { continue };
            let outcome = match self.checks(step.spec.checks.clone(), Vec::new())?.run(check).await {
                Ok(report) => trial(&report, &step.spec),
                Err(_) if self.cancel.is_cancelled() => return Ok(EndedWork::of(WorkEnd::Cancelled)),
                Err(CheckError::Unavailable(outage)) => return Ok(EndedWork::of(WorkEnd::Outage(outage))),
                Err(error) => TrialOutcome::CannotLoad(error.to_string()),
            };
            trials.push(Trial { feature: feature.clone(), check: check.clone(), outcome });
        }
        Ok(EndedWork::of(WorkEnd::Report(WorkReport::Tried(trials))))
    }

    /// Brings the tree to the branch's tip and runs each check once there: a check that passes already proves nothing
    /// later.
    pub(super) async fn prepare(&self, specs: &[CheckSpec]) -> fault::Result<EndedWork> {
        let (base, overwritten) = self.workspace.repository()?.prepare().await?;
        self.workspace.repository()?.unkept().forget().await?;
        let checks = self.checks(specs.to_vec(), Vec::new())?;
        let mut vacuous = Vec::new();
        for spec in specs {
            match checks.run(&spec.name).await {
                Ok(report) if report.passed => vacuous.push(spec.name.clone()),
                Ok(_) => {}
                Err(_) if self.cancel.is_cancelled() => return Ok(EndedWork::of(WorkEnd::Cancelled)),
                // The feature is not at fault: once resources are free, the work continues.
                Err(CheckError::Unavailable(outage)) => return Ok(EndedWork::of(WorkEnd::Outage(outage))),
                Err(error) => return Ok(EndedWork::failed(format!("check `{}` cannot run: {error}", spec.name))),
            }
        }
        let commits = self.workspace.repository()?.log(orientation::COMMITS_MAX).await?;
        let found = OrientationFacts { commits: &commits, overwritten: &overwritten };
        let mut orientation = orientation(&*self.executor.host.store, &self.executor.record, &found)?;
        if let Some(remembered) = self.remembered().await {
            orientation["memory"] = remembered;
        }
        let batch = self.workspace.repository()?.carried(&base).await?;
        let report = WorkReport::Prepared { base, vacuous, orientation };
        Ok(EndedWork { batch, ..EndedWork::of(WorkEnd::Report(report)) })
    }

    /// Memory of earlier runs that is relevant to the current feature.
    async fn remembered(&self) -> Option<serde_json::Value> {
        let feature = self.work.feature().and_then(|feature| self.state.feature(feature))?;
        let question = format!("{} {}", feature.spec.title, feature.spec.instruction);
        let WorkExecutor { memory, config, record, .. } = self.executor;
        recollect(&**memory, &config.memory, record.scope(), &question).await
    }

    /// The checks that judge the current feature.
    fn pinned(&self) -> (Vec<CheckSpec>, Vec<String>) {
        let found = self.work.feature().and_then(|feature| self.state.feature(feature));
        found.map(|feature| (feature.spec.checks.clone(), feature.vacuous.clone())).unwrap_or_default()
    }

    fn checks(&self, specs: Vec<CheckSpec>, vacuous: Vec<String>) -> fault::Result<PinnedChecks> {
        // Before a session is prepared, and when there is none, the tree is at the tip.
        let base =
            (!matches!(self.work.job, WorkKind::Prepare { .. } | WorkKind::TryChecks { .. })).then_some(self.base);
        Ok(PinnedChecks {
            plugin_set: Arc::clone(&self.workspace.plugin_set),
            config: Arc::clone(&self.executor.config),
            native: self.workspace.repository()?.native(base),
            caller: self.executor.invocation(self.work),
            cancel: self.cancel.clone(),
            specs,
            vacuous,
            beside: Mutex::default(),
        })
    }

    /// The trust level of the least trusted text behind the answers in a plugin's input: for a feature, those of the
    /// features before it and its own; otherwise those of all. None: there are no answers.
    fn told_answers(&self) -> fault::Result<Option<Trust>> {
        let feature = self.work.feature().and_then(|feature| self.state.feature(feature));
        let answered: Vec<&Feature> = match feature {
            Some(feature) => {
                let before = feature.spec.depends_on.iter().filter_map(|id| self.state.feature(id));
                before.chain([feature]).collect()
            }
            None => self.state.features.iter().collect(),
        };
        let WorkExecutor { host, config, record, .. } = self.executor;
        let of = |key: &String| words_heard(&*host.store, &InvocationId::of_action(&record.run, key), config);
        let heard: Result<Vec<Trust>, _> = answered.iter().filter_map(|one| one.generated.as_ref()).map(of).collect();
        Ok(heard?.into_iter().max())
    }

    /// Puts the survey of the tree into the context of a goal or a task. An invocation that has begun gets its recorded
    /// survey: the tree, and the window of its model, may have changed.
    async fn show_repository(&self, part: &PreparedPlugin, words: &str, context: &mut Value) -> fault::Result<()> {
        let (Some(repository), Some(fields)) = (&self.workspace.repository, context.as_object_mut()) else {
            return Ok(());
        };
        let store = &*self.executor.host.store;
        let shown = match longhaul_journal::began(store, &self.executor.invocation(self.work))? {
            Some(began) => store.blob(&began.input)?.and_then(|input| survey::shown_in(&input)),
            None => {
                let windows = part.grants.models.iter().filter_map(|name| self.executor.models.model(name));
                let window = windows.map(|model| model.info().context_tokens_max).filter(|tokens| *tokens > 0).min();
                repository.survey(words.to_owned(), window).await.map_or_else(
                    |error| {
                        // The plugin can look at the files itself; other steps report what is wrong with the tree.
                        tracing::warn!("no map of the repository: {error:#}");
                        None
                    },
                    Some,
                )
            }
        };
        if let Some(shown) = shown {
            fields.insert(survey::FIELD.to_owned(), shown);
        }
        Ok(())
    }

    /// The part that carries out the work, with the bytes that its invocation began with if it was held back by a move.
    async fn part(&self, table: &str) -> fault::Result<&PreparedPlugin> {
        let invocation = self.executor.invocation(self.work);
        self.workspace
            .context
            .part_of(table, &invocation)
            .await?
            .ok_or_else(|| Fault::msg(format!("there is no [{table}] in longhaul.toml")))
    }

    /// One invocation of a pure plugin: begun, or continued from its journal.
    async fn invoke<T: Serialize + DeserializeOwned + ResultLine>(
        &self,
        part: &PreparedPlugin,
        export: &str,
        input: &impl Serialize,
        checks: Arc<dyn Checks>,
        report: impl FnOnce(T) -> WorkReport,
        call: impl AsyncFnOnce(InvocationSetup) -> Called<Result<T, RoleError>>,
    ) -> fault::Result<EndedWork> {
        let (context, host) = (&self.workspace.context, &self.executor.host);
        let invocation = self.executor.invocation(self.work);
        let told = told_by(input).max(self.told_answers()?);
        let recorder = match context.open(&invocation, part, export, input, told).await {
            Ok(Opened::Running(recorder)) => recorder,
            Ok(Opened::Finished { finished, .. }) => {
                let kept: JournaledResult<T> = serde_json::from_str(&finished.result)?;
                return Ok(EndedWork::of(WorkEnd::Report(reported(kept, report))));
            }
            Err(error) => return Ok(EndedWork::of(stuck(error))),
        };
        host.crash.reach("invocation.start");
        let sub_agents = Arc::new(SubAgents::new(context, Arc::clone(&checks), self.cancel));
        let setup = context.setup(part, &recorder, checks, sub_agents.clone(), self.cancel);
        let called = call(setup).await;
        host.crash.reach("invocation.end");
        let row = context.ledger.close(&invocation, called.done, called.more);
        let heard = called.events.clone();
        let ended = ended(recorder, called, report, heard, host.clock.now_ms());
        let (proposed, batch) = proposals::tell(&*host.store, &invocation, ended.batch)?;
        let (asked, mut batch) = approvals::tell(&*host.store, &invocation, batch)?;
        batch.ops.extend(row.ops);
        // Cancelled work reports nothing.
        let levels = match ended.end {
            WorkEnd::Cancelled => Vec::new(),
            _ => {
                self.executor.levels.untold(self.workspace.plugin_set.tools(), &*host.store, &self.executor.record.run)
            }
        };
        Ok(EndedWork { heard: [ended.heard, proposed, asked, levels].concat(), batch, ..ended })
    }
}

fn held(feature: &str, check: &str, level: Level) -> String {
    format!(
        "`{feature}`: the check `{check}` ran in the sandbox level `{level}` and not in `full`, which `sandbox_min` of \
         [run] accepts"
    )
}

/// The changed files of a test runner, with the possible effect of each.
fn near_the_judge(files: &[(String, &'static str)]) -> Option<String> {
    let said: Vec<String> = files.iter().map(|(path, why)| format!("`{path}` ({why})")).collect();
    (!said.is_empty()).then(|| format!("files of a test runner: {}", said.join(", ")))
}

/// The trust level of earlier runs' text in a plugin's input: one value, or several of which the first holds it.
fn told_by(input: &impl Serialize) -> Option<Trust> {
    let input = serde_json::to_value(input).ok()?;
    told_words(input.get(0).unwrap_or(&input))
}
