//! A run without a kill, and a run that is killed at one place and resumed to its end.

use super::lab::{Lab, LabProcess, Stage};
use super::observe;
use longhaul_core::fault::{self, bail};
use longhaul_core::journal::Resolution;
use longhaul_core::text::printable;
use longhaul_crashtest::{
    CrashTrial, KillEvidence, PlannedKill, PointOccurrence, ReceivedRequest, Reference, RunObservation, TrialFindings,
};
use longhaul_harness::RunStatus;
use longhaul_models::recorded::RECORD_AGAIN;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::time::Duration;

/// Copies in which a kill is tried. How often an idle store makes itself quick to open depends on the time, so an
/// occurrence may not come.
const TRIES_MAX: u32 = 2;

/// Processes that resume one run before it is taken to go on for ever.
const RESUMES_MAX: u32 = 20;

/// Longest excerpt of an answer in an error, in bytes.
const EXCERPT_BYTES_MAX: usize = 600;

/// Exit code of a process whose run waits for an answer.
const WAITS: i32 = 5;

/// A run without a kill.
pub struct Undisturbed {
    observed: RunObservation,
    received: Vec<ReceivedRequest>,
    models: BTreeMap<String, u32>,
    /// The points that it reached, in their order.
    pub points: Vec<PointOccurrence>,
}

impl Undisturbed {
    /// Its end, for people.
    pub fn ends_as(&self) -> String {
        let summary = &self.observed.status.summary;
        let (done, of) = summary.passing;
        format!("{:?} with {done} of {of} features passing", summary.status).to_lowercase()
    }

    /// The run with what the receivers saw of it.
    pub fn witnessed(&self) -> (&RunObservation, &[ReceivedRequest], &BTreeMap<String, u32>) {
        (&self.observed, &self.received, &self.models)
    }
}

/// Runs the project to its end.
///
/// # Errors
/// It does not end by itself, or asks a model for something that is not recorded.
pub async fn undisturbed(stage: &Stage<'_>) -> fault::Result<Undisturbed> {
    let lab = stage.lab().await?;
    let LabProcess { ended, points } = begin(stage, &lab, None).await?;
    if ended.status.is_none() {
        let ms = stage.timeout().as_millis();
        bail!("the run without a kill did not end within {ms} ms; give it longer with --timeout-ms");
    }
    let observed = observe::observe(stage, lab.home(), lab.project()).await?;
    let Some(observed) = observed else {
        bail!("the project does not run, so nothing can be killed: {}", ended.last_lines());
    };
    if let Some(unrecorded) = unrecorded(&observed) {
        bail!("the recording does not reach the end of the run: {unrecorded}");
    }
    let reason = printable(&observed.status.reason, EXCERPT_BYTES_MAX);
    if !observe::is_over(&observed.status) {
        bail!(
            "the run without a kill does not reach its end ({reason}; {}); a crash test needs a project that runs by \
             itself, without a person",
            ended.last_lines()
        );
    }
    if observed.status.summary.status == RunStatus::Failed {
        bail!("the run without a kill fails ({reason}); mend that first, see `longhaul check`");
    }
    Ok(Undisturbed { observed, received: lab.receiver().received(), models: lab.model_requests(), points })
}

/// Kills a run at one place, resumes it to its end, and compares it with those that were not killed.
///
/// # Errors
/// The trial itself could not be made. Faults of the killed run are in the findings.
pub async fn killed(stage: &Stage<'_>, reference: &Reference, kill: PlannedKill) -> fault::Result<CrashTrial> {
    let mut took = Duration::ZERO;
    for _ in 0..TRIES_MAX {
        let lab = stage.lab().await?;
        let process = begin(stage, &lab, Some(&kill.at)).await?;
        took += process.ended.took;
        if !process.ended.was_killed() {
            expect_end(stage, &process, &kill.at)?;
            continue;
        }
        if !process.points.contains(&kill.at) {
            bail!(
                "a process that was to die at {} died of SIGKILL before it was there; somebody else killed it, perhaps \
                 the system for want of memory",
                kill.at
            );
        }
        let mut resumed = Resumed { stage, lab: &lab, log: &process.points, resumes: 0, questions: 0, took };
        let findings = resumed.compare(reference).await?;
        let Resumed { resumes, questions, took, .. } = resumed;
        return Ok(CrashTrial { kill, killed: true, resumes, questions, findings, took_ms: ms(took) });
    }
    let findings = TrialFindings::default();
    Ok(CrashTrial { kill, killed: false, resumes: 0, questions: 0, findings, took_ms: ms(took) })
}

/// Starts the run.
async fn begin(stage: &Stage<'_>, lab: &Lab<'_>, at: Option<&PointOccurrence>) -> fault::Result<LabProcess> {
    let recording = stage.recording();
    lab.process(&["run".as_ref(), "--recorded".as_ref(), recording.as_os_str()], at).await
}

/// Refuses a process that was to be killed and neither was nor ended well.
fn expect_end(stage: &Stage<'_>, process: &LabProcess, at: &PointOccurrence) -> fault::Result<()> {
    match process.ended.code() {
        Some(0 | 3) => Ok(()),
        None if process.ended.status.is_none() => {
            let ms = stage.timeout().as_millis();
            bail!("the run that was to be killed at {at} did not end within {ms} ms; give it longer with --timeout-ms")
        }
        _ => bail!("the run that was to be killed at {at} ended otherwise: {}", process.ended.last_lines()),
    }
}

fn ms(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// A killed run on its way to its end.
struct Resumed<'a> {
    stage: &'a Stage<'a>,
    lab: &'a Lab<'a>,
    /// The points that the killed process reached.
    log: &'a [PointOccurrence],
    resumes: u32,
    questions: u32,
    took: Duration,
}

impl Resumed<'_> {
    async fn compare(&mut self, reference: &Reference) -> fault::Result<TrialFindings> {
        let Self { stage, lab, .. } = *self;
        let copy = lab.copy_of_home()?;
        let kill = KillEvidence {
            observed: observe::observe(stage, &copy, lab.project()).await?,
            received: lab.receiver().received(),
            models: lab.model_requests(),
        };
        let (observed, why) = self.resume_until_over(reference, kill.observed.as_ref()).await?;
        let Some(observed) = observed else {
            return Ok(TrialFindings { lost: vec!["the run itself".to_owned()], ..TrialFindings::default() });
        };
        let mut findings = reference.judge(&kill, (&observed, &lab.receiver().received(), &lab.model_requests()));
        // The reason stands before its consequences.
        findings.lost = why.into_iter().chain(findings.lost).collect();
        Ok(findings)
    }

    /// Resumes the run until it has ended. Returns it, and the reason why it did not end.
    async fn resume_until_over(
        &mut self,
        reference: &Reference,
        at_kill: Option<&RunObservation>,
    ) -> fault::Result<(Option<RunObservation>, Option<String>)> {
        let Self { stage, lab, .. } = *self;
        let mut has_begun = at_kill.is_some();
        if at_kill.is_some_and(|observed| observe::is_over(&observed.status)) {
            // The next process does the rest of an ended run, such as its memory.
            self.next(&["status".as_ref()]).await?;
        }
        loop {
            let observed = match has_begun {
                true => observe::observe(stage, lab.home(), lab.project()).await?,
                false => None,
            };
            if observed.as_ref().is_some_and(|observed| observe::is_over(&observed.status)) {
                return Ok((observed, None));
            }
            if self.resumes == RESUMES_MAX {
                return Ok((observed, Some(format!("the end of the run: {RESUMES_MAX} processes resumed it in vain"))));
            }
            let unanswered = match &observed {
                Some(parked) => self.answer(reference, parked).await?,
                None => None,
            };
            if unanswered.is_some() {
                return Ok((observed, unanswered));
            }
            self.resumes += 1;
            let process = match observed {
                Some(_) => self.next(&["resume".as_ref()]).await?,
                None => self.begin_again().await?,
            };
            has_begun = true;
            if !matches!(process.ended.code(), Some(0 | 3 | WAITS)) {
                let observed = observe::observe(stage, lab.home(), lab.project()).await?;
                return Ok((observed, Some(self.why_not_ended(&process))));
            }
        }
    }

    /// Answers the questions of a run about effects. Returns the reason, where one cannot be answered.
    async fn answer(&mut self, reference: &Reference, parked: &RunObservation) -> fault::Result<Option<String>> {
        let received = self.lab.receiver().received();
        let mut answers: Vec<(String, Resolution)> = Vec::new();
        for question in &parked.status.questions {
            let Some(resolution) = reference.resolution(&question.id, parked, &received, self.log) else {
                let text = printable(&question.text, EXCERPT_BYTES_MAX);
                return Ok(Some(format!("the end of the run: nobody can answer its question: {text}")));
            };
            answers.push((question.id.clone(), resolution));
        }
        if !answers.is_empty() {
            self.questions = self.questions.saturating_add(u32::try_from(answers.len()).unwrap_or(u32::MAX));
            observe::answer(self.stage, self.lab.home(), self.lab.project(), answers).await?;
        }
        Ok(None)
    }

    async fn begin_again(&mut self) -> fault::Result<LabProcess> {
        let process = begin(self.stage, self.lab, None).await?;
        self.took += process.ended.took;
        Ok(process)
    }

    async fn next(&mut self, arguments: &[&OsStr]) -> fault::Result<LabProcess> {
        let process = self.lab.process(arguments, None).await?;
        self.took += process.ended.took;
        Ok(process)
    }

    fn why_not_ended(&self, process: &LabProcess) -> String {
        match process.ended.status {
            None => format!("the end of the run: a resume did not end within {} ms", self.stage.timeout().as_millis()),
            Some(status) => format!("the end of the run: a resume ended with {status}: {}", process.ended.last_lines()),
        }
    }
}

/// The first answer in the journals about a request that the recording does not hold.
fn unrecorded(observed: &RunObservation) -> Option<String> {
    let entries = observed.journals.iter().flat_map(|journal| &journal.entries);
    let answers = entries.filter_map(|(_, entry)| entry.answered.as_ref()).map(|answered| &answered.answer);
    let ends = observed.journals.iter().filter_map(|journal| journal.finished.as_ref()).map(|end| &end.result);
    answers.chain(ends).find(|text| text.contains(RECORD_AGAIN)).map(|text| printable(text, EXCERPT_BYTES_MAX))
}
