//! A graph whose steps run in real interpreters, with its values in memory.

use super::{repository, test_cache};
use longhaul::exec::{CompileLimits, Executor, ExecutorPaths, JobLimits};
use longhaul_core::Digest;
use longhaul_graph::{Graph, NextStep, Python, Replay, ReplaySettings, ReportOutcome, Skip, StepId, StepReport};
use longhaul_graph_runner::steps::{Blobs, Steps};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::sync::{Arc, LazyLock};

/// Those of a test program share one: the interpreter is compiled and loaded once.
pub static EXECUTOR: LazyLock<Executor> = LazyLock::new(|| {
    let cache = test_cache().join("compiled");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&cache).expect("ours");
    Executor::new(ExecutorPaths {
        cache,
        runtimes: vec![repository().join("target/plugins")],
        compiler: env!("CARGO_BIN_EXE_longhaul").into(),
        compile_limits: CompileLimits::default(),
        data_directory: None,
    })
    .expect("an executor")
});

/// Values by digest.
#[derive(Clone, Default)]
pub struct Content(pub HashMap<Digest, Arc<[u8]>>);

impl Blobs for Content {
    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, String> {
        Ok(self.0.get(digest).map(|bytes| bytes.to_vec()))
    }
}

/// A graph and what its steps need to run.
pub struct Bench {
    /// The graph with its runs.
    pub replay: Replay,
    /// Its values.
    pub content: Content,
    /// The runner of its steps.
    pub steps: Steps,
}

/// The effects of one walk.
#[derive(Debug, Default)]
pub struct Walked {
    /// Steps that ran, with what they looked at beyond what was given counted once.
    pub ran: Vec<String>,
    /// Steps that were run once more, since they looked at something that was not given.
    pub again: Vec<String>,
    /// Steps that a kept run answered.
    pub answered: Vec<String>,
    /// Steps that could not run.
    pub skipped: Vec<(String, Skip)>,
    /// Dependencies that analysis had missed: from, to, name.
    pub missed: Vec<(String, String, String)>,
}

impl Bench {
    /// An empty graph of steps that see nothing but their values.
    pub fn new() -> Self {
        Self::of(Steps::new(EXECUTOR.clone(), JobLimits::default()))
    }

    /// An empty graph of steps that run so.
    pub fn of(steps: Steps) -> Self {
        let seed = Digest::of(b"a graph of a test");
        let settings = ReplaySettings { seed, grants: steps.grants(), acts: steps.acts(), keeps_going: false };
        let graph = Graph::new(Arc::new(Python::default()));
        Self { replay: Replay::new(graph, settings), content: Content::default(), steps }
    }

    /// Has steps run that depend on failed ones.
    pub fn keeping_going(mut self) -> Self {
        let settings = ReplaySettings { keeps_going: true, ..self.replay.settings().clone() };
        self.replay.set_settings(settings);
        self
    }

    /// With these steps, `a`, `b`, and so on by their names.
    pub fn with(mut self, steps: &[(&str, &str)]) -> Self {
        for (id, source) in steps {
            self.add(id, source);
        }
        self
    }

    /// Adds a step.
    pub fn add(&mut self, id: &str, source: &str) {
        self.replay.add_step(StepId::from(id), source.to_owned()).expect("a new step");
    }

    /// Gives a step another source.
    pub fn change(&mut self, id: &str, source: &str) {
        self.replay.change_step(&StepId::from(id), source.to_owned()).expect("a step");
    }

    /// Runs what is stale.
    pub async fn walk(&mut self) -> Walked {
        let mut walked = Walked::default();
        self.replay.start().expect("a walk");
        loop {
            match self.replay.next().expect("the next step") {
                NextStep::Done => return walked,
                NextStep::Answered { step, .. } => walked.answered.push(step.to_string()),
                NextStep::Skipped { step, why } => walked.skipped.push((step.to_string(), why)),
                NextStep::Run(request) => {
                    let mut report = self.steps.run(&request, &self.content).await.expect("it runs");
                    self.content.0.extend(std::mem::take(&mut report.blobs));
                    let step = request.step.to_string();
                    match self.replay.ran(report).expect("a report") {
                        ReportOutcome::Again { .. } => walked.again.push(step),
                        ReportOutcome::Kept { missed, .. } => {
                            walked.ran.push(step);
                            let named = missed.into_iter();
                            walked.missed.extend(
                                named.map(|edge| {
                                    (edge.from.to_string(), edge.to.to_string(), edge.variable.to_string())
                                }),
                            );
                        }
                    }
                }
            }
        }
    }

    /// The last result of a step.
    #[track_caller]
    pub fn report(&self, id: &str) -> &StepReport {
        let history = self.replay.history(&StepId::from(id)).expect("a step").expect("a history");
        &history.current.as_ref().expect("a run").report
    }

    /// The value of a step's last expression.
    #[track_caller]
    pub fn result(&self, id: &str) -> &str {
        let report = self.report(id);
        report.result.as_deref().unwrap_or_else(|| panic!("{report:#?}"))
    }

    /// Stale steps.
    pub fn stale(&self) -> BTreeSet<String> {
        self.replay.graph().stale().iter().map(ToString::to_string).collect()
    }
}
