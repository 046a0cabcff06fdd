//! Follows a run to its end: prints its events, pauses it on Ctrl-C, and takes over when the owner of the data
//! directory dies. A server elsewhere is not replaced: its runs go on there, and it is watched again. It takes no
//! decision about a run.

mod display;

use self::display::RunDisplay;
use super::arguments::OutputFormat;
use super::command_client::{OWNER_PAUSE, OWNERS_MAX, SERVER_PAUSE, pause_after};
use super::context::Context;
use super::exit::Exit;
use super::progress::Progress;
use super::prompt::{Person, PromptOutcome};
use super::{features, owner, terminal};
use longhaul_api::journal::ListEvents;
use longhaul_api::operations::{JournalOperations as _, RunOperations as _};
use longhaul_api::run_lists::ListInterrupted;
use longhaul_api::runs::{AffectedRun, AskRequest, BeginRun, PauseRun, ResumeRun, ShowRun, SteerRun};
use longhaul_api::runs::{RunRef, RunSummary, Status};
use longhaul_api::seen::RunNotification;
use longhaul_client::Client;
use longhaul_client::wire::OwnerGone;
use longhaul_core::RunId;
use longhaul_core::event::Event;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_harness::RunStatus;
use longhaul_report::messages;
use std::io::IsTerminal;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;

/// Time for a run with a question to come to rest before the person is asked while it goes on.
const QUESTION_PAUSE: Duration = Duration::from_millis(700);

/// The request that begins or resumes the run that is followed.
#[derive(Clone)]
pub(super) enum StartRequest {
    /// A run of a project.
    Run(BeginRun),
    /// An ask.
    Ask(AskRequest),
    /// A run that is there.
    Resume(ResumeRun),
}

impl StartRequest {
    async fn send(self, client: &Client) -> fault::Result<AffectedRun> {
        match self {
            Self::Run(request) => client.begin_run(request).await,
            Self::Ask(request) => client.begin_ask(request).await,
            Self::Resume(request) => client.resume_run(request).await,
        }
    }
}

/// Starts or resumes a run, and follows it.
pub(super) async fn start(context: &Context, mut request: StartRequest, form: OutputFormat) -> fault::Result<Exit> {
    let mut client = context.client().await?;
    // An ask stays one even when its request becomes the resume of a run that an earlier owner began.
    let asks = matches!(request, StartRequest::Ask(_));
    let asked_ms = jiff::Timestamp::now().as_millisecond();
    let plan_only = matches!(request, StartRequest::Run(BeginRun { plan_only: true, .. }));
    let sessions = match &request {
        StartRequest::Run(BeginRun { sessions, .. }) | StartRequest::Resume(ResumeRun { sessions, .. }) => *sessions,
        StartRequest::Ask(_) => None,
    };
    let (after, progress) = match &request {
        StartRequest::Resume(ResumeRun { run, .. }) => caught_up(&client, run, u64::MAX).await,
        StartRequest::Run(_) | StartRequest::Ask(_) => (0, Progress::default()),
    };
    let mut tries = OWNERS_MAX;
    let run = loop {
        let answered = request.clone().send(&client).await;
        tries -= 1;
        match answered {
            Ok(AffectedRun { run }) => break run,
            Err(error) if error.is::<OwnerGone>() && tries > 0 => {
                tokio::time::sleep(OWNER_PAUSE).await;
                client = context.client().await?;
                request = taken(&client, &request, asked_ms).await.unwrap_or(request);
            }
            Err(error) => {
                owner::hand_over(client).await;
                return Err(error);
            }
        }
    };
    // Whoever resumes an ask gets its answer in the same form as whoever asked.
    let asks = asks || status(&client, RunRef::Named(run.to_string())).await.is_ok_and(|status| status.asked.is_some());
    let (view, person) = (RunDisplay::new(form, asks, run.clone(), progress), Person::default());
    let shows_plan = plan_only && form != OutputFormat::Stream;
    Follower { context, run, after, owns: true, asks, sessions, pauses: false, shows_plan, view, person }
        .follow(client)
        .await
}

/// The request that resumes the run which an owner began before it stopped without an answer; none if it began none.
/// The run goes on to the limit that was asked for then.
async fn taken(client: &Client, request: &StartRequest, asked_ms: i64) -> Option<StartRequest> {
    let (directory, goal) = match request {
        StartRequest::Run(BeginRun { directory, .. }) => (directory, None),
        StartRequest::Ask(AskRequest { directory, goal, .. }) => (directory, Some(goal)),
        StartRequest::Resume(_) => return None,
    };
    let Status { summary, asked, .. } = status(client, RunRef::NewestIn(directory.clone())).await.ok()?;
    let is_later = i64::try_from(summary.created_ms).is_ok_and(|created_ms| created_ms >= asked_ms);
    // Another process may ask in the same project, and its answer is not ours.
    let is_ours = asked.as_ref() == goal;
    // A run that has since paused as requested must not be resumed.
    let is_ours = is_ours && summary.status != RunStatus::Paused;
    let run = RunRef::Named(summary.run.to_string());
    let resume = ResumeRun { run, retry_failing: false, sessions: None };
    (is_later && is_ours).then_some(StartRequest::Resume(resume))
}

/// Follows a run that somebody else started.
pub async fn attach(context: &Context, which: RunRef, after: u64, form: OutputFormat) -> fault::Result<Exit> {
    let client = context.client().await?;
    let status = status(&client, which).await?;
    let run = status.summary.run.clone();
    if (client.is_owner() || client.is_of_server()) && broke_off(&status.summary) {
        owner::hand_over(client).await;
        bail!(nobody_works(&run));
    }
    let (_, progress) = caught_up(&client, &RunRef::Named(run.to_string()), after).await;
    let (view, person) = (RunDisplay::new(form, false, run.clone(), progress), Person::default());
    let (owns, asks, shows_plan) = (false, false, false);
    Follower { context, run, after, owns, asks, sessions: None, pauses: false, shows_plan, view, person }
        .follow(client)
        .await
}

/// The number of the last event up to `until`, and the progress at that point. An earlier follower has shown these
/// events.
async fn caught_up(client: &Client, which: &RunRef, until: u64) -> (u64, Progress) {
    let (mut after, mut progress) = (0, Progress::default());
    while let Ok(events) = client.events(ListEvents { run: which.clone(), after }).await {
        for event in events.iter().filter(|event| event.number <= until) {
            after = event.number;
            progress.see(event);
        }
        if events.last().is_none_or(|last| last.number > after) {
            break;
        }
    }
    (after, progress)
}

async fn status(client: &Client, which: RunRef) -> fault::Result<Status> {
    client.run_status(ShowRun { run: which }).await
}

struct Follower<'a> {
    context: &'a Context,
    run: RunId,
    after: u64,
    /// True when this terminal started or resumed the run. Then Ctrl-C pauses the run; otherwise it only stops
    /// watching.
    owns: bool,
    /// True when standard output is for the answer alone.
    asks: bool,
    /// Number of sessions after which the run pauses by itself.
    sessions: Option<u32>,
    /// True when this terminal asked the run to pause.
    pauses: bool,
    /// True when the features are shown once the run pauses.
    shows_plan: bool,
    view: RunDisplay,
    person: Person,
}

/// The reason why watching at one owner ended.
enum WatchEnd {
    /// No process works on the run any more; with an error if there was one.
    Gone(Option<String>),
    /// The owner has stopped.
    OwnerLost,
    /// We read too slowly, and watch again from the last event.
    LetGo,
    /// The person stops watching.
    Left,
    /// The person does not wait for the pause to complete.
    AtOnce,
}

impl Follower<'_> {
    async fn follow(mut self, mut client: Client) -> fault::Result<Exit> {
        loop {
            let seen = client.watch(&self.run, self.after).await;
            let over = match seen {
                Ok(seen) => self.watch(&client, seen).await?,
                Err(_) => WatchEnd::OwnerLost,
            };
            match over {
                WatchEnd::LetGo => {}
                WatchEnd::Left => {
                    self.view.finish();
                    owner::hand_over(client).await;
                    return Ok(Exit::Done);
                }
                WatchEnd::AtOnce if client.is_owner() => {
                    self.view.finish();
                    owner::end_at_once(&client.active());
                }
                WatchEnd::AtOnce => {
                    self.view.say(&format!("run {} pauses where it is worked on", self.run));
                    self.view.finish();
                    let client = self.planned(client).await?;
                    owner::hand_over(client).await;
                    return Ok(Exit::Paused);
                }
                WatchEnd::Gone(Some(why)) => {
                    self.view.gone(&self.run, self.after, Some(&why))?;
                    self.view.finish();
                    owner::stay(client).await;
                    bail!("run {} stopped: {why}; go on with `longhaul resume {}`", self.run, self.run);
                }
                WatchEnd::Gone(None) => {
                    let status = status(&client, RunRef::Named(self.run.to_string())).await;
                    match status {
                        Ok(status) if self.is_answered(&client, &status).await? => {}
                        // The run is being released, or was taken up again. The outcome shows in a moment.
                        Ok(status) if works(&status.summary) && status.summary.active => {
                            tokio::time::sleep(OWNER_PAUSE).await;
                        }
                        Ok(status) if !broke_off(&status.summary) => return self.end(client, &status).await,
                        // The owner released the run, or died: this process resumes it.
                        _ => client = self.take_over(client).await?,
                    }
                }
                WatchEnd::OwnerLost => client = self.take_over(client).await?,
            }
        }
    }

    async fn watch(&mut self, client: &Client, mut seen: Receiver<RunNotification>) -> fault::Result<WatchEnd> {
        // The time to look for questions of a run that goes on. A run that comes to rest is asked about then.
        let mut look_at: Option<Instant> = None;
        // One for all rounds: a Ctrl-C while an event is shown is heard in the next round.
        let mut interrupts = signal(SignalKind::interrupt())?;
        loop {
            let is_heard = self.person.is_asked() || self.may_steer();
            tokio::select! {
                next = seen.recv() => match next {
                    Some(RunNotification::Event(event)) => {
                        self.after = event.number;
                        self.view.event(&event)?;
                        self.person.prompt();
                        if matches!(event.event, Event::Parked { .. }) {
                            look_at = Some(Instant::now() + QUESTION_PAUSE);
                        }
                    }
                    Some(RunNotification::Token(token)) => self.view.token(&self.run, token)?,
                    Some(RunNotification::Lagged) => self.view.lagged(&self.run, self.after)?,
                    // We did not read in time, for example because our own output was blocked: watch again from the
                    // last event.
                    Some(RunNotification::Dropped) => return Ok(WatchEnd::LetGo),
                    Some(RunNotification::Gone(why)) => return Ok(WatchEnd::Gone(why)),
                    None => return Ok(WatchEnd::OwnerLost),
                },
                () = at(look_at) => {
                    look_at = None;
                    self.look_for_questions(client).await?;
                }
                line = self.person.line(), if is_heard => {
                    if self.person.is_asked() {
                        self.person.take(client, line).await?;
                        self.look_for_questions(client).await?;
                    } else {
                        self.steer(client, line).await;
                    }
                }
                _ = interrupts.recv() => {
                    if !self.owns {
                        return Ok(WatchEnd::Left);
                    }
                    if self.pauses {
                        return Ok(WatchEnd::AtOnce);
                    }
                    self.pauses = true;
                    let seconds = longhaul_engine::IN_FLIGHT_MS_MAX / 1_000;
                    self.view.say(&format!(
                        "pausing: effects that are on their way are finished first, for at most {seconds} s; Ctrl-C again ends at once"
                    ));
                    self.sessions = None;
                    tokio::select! {
                        // A run that has ended, or an owner that has stopped, shows in the watched events.
                        _ = client.pause_run(PauseRun { run: RunRef::Named(self.run.to_string()) }) => {}
                        _ = interrupts.recv() => return Ok(WatchEnd::AtOnce),
                    }
                }
            }
        }
    }

    /// Sends a typed line as a correction to the agents at work, when no question is open.
    async fn steer(&mut self, client: &Client, line: Option<String>) {
        let Some(line) = line else { return self.person.leave() };
        let text = line.trim().to_owned();
        if text.is_empty() {
            return;
        }
        let run = RunRef::Named(self.run.to_string());
        if let Err(error) = client.steer_run(SteerRun { run, task: None, text }).await {
            self.view.say(&format!("{error:#}"));
        }
    }

    /// True when questions may go to standard output. They may not if a program reads events there, or the answer of an
    /// ask.
    fn may_ask(&self) -> bool {
        !self.view.form.is_for_programs() && (!self.asks || std::io::stdout().is_terminal())
    }

    /// True when typed lines are corrections.
    fn may_steer(&self) -> bool {
        !self.view.form.is_for_programs() && self.person.is_here(self.context)
    }

    /// Asks the person the open questions while the run goes on. The progress line gives way to their answer.
    async fn look_for_questions(&mut self, client: &Client) -> fault::Result<()> {
        if self.person.is_asked() || !self.may_ask() {
            return Ok(());
        }
        self.view.finish();
        if !self.person.begin(self.context, client, &self.run).await? {
            self.view.begin();
        }
        Ok(())
    }

    /// Waits for the lock, or for a new owner. As the owner it resumes the run.
    async fn take_over(&mut self, client: Client) -> fault::Result<Client> {
        if client.is_of_server() {
            // It may have no room for the stream, or start again.
            tokio::time::sleep(SERVER_PAUSE).await;
        }
        client.leave().await;
        let mut tries = OWNERS_MAX;
        loop {
            let client = self.context.client().await.context("the owner of the data directory is gone")?;
            tries -= 1;
            let Err(error) = self.go_on(&client).await else { return Ok(client) };
            // This owner took the place of the one before and stopped as well, or still was that one.
            let Some(pause) = pause_after(&error).filter(|_| tries > 0) else {
                owner::hand_over(client).await;
                return Err(error);
            };
            client.leave().await;
            tokio::time::sleep(pause).await;
        }
    }

    async fn go_on(&self, client: &Client) -> fault::Result<()> {
        let named = RunRef::Named(self.run.to_string());
        if client.is_of_server() {
            return self.wait_for_server(client, &named).await;
        }
        if broke_off(&status(client, named.clone()).await?.summary) {
            self.expect_unattended(client).await?;
            self.view.say(&format!("the owner is gone; going on with run {}", self.run));
            // Resumes with the limits that are stored with the run, such as its remaining sessions.
            client.resume_run(ResumeRun { run: named, retry_failing: false, sessions: None }).await?;
        }
        Ok(())
    }

    /// Waits until a server that has started again works on the run, as it does by itself.
    async fn wait_for_server(&self, client: &Client, run: &RunRef) -> fault::Result<()> {
        for _ in 0..OWNERS_MAX {
            if !broke_off(&status(client, run.clone()).await?.summary) {
                return Ok(());
            }
            tokio::time::sleep(SERVER_PAUSE).await;
        }
        Err(nobody_works(&self.run))
    }

    /// Refuses to go on by itself with a run that only a person may go on with.
    async fn expect_unattended(&self, client: &Client) -> fault::Result<()> {
        let by_themselves = client.interrupted_runs(ListInterrupted {}).await?.runs;
        if by_themselves.iter().any(|summary| summary.run == self.run) {
            return Ok(());
        }
        // Where it is none of them because somebody works on it by now, all is well.
        let Status { summary, reason, .. } = status(client, RunRef::Named(self.run.to_string())).await?;
        if broke_off(&summary) {
            bail!(Fault::conflict(reason));
        }
        Ok(())
    }

    /// True when the person at this terminal answered all questions that the run waits for. The run then goes on.
    async fn is_answered(&mut self, client: &Client, status: &Status) -> fault::Result<bool> {
        if status.summary.status != RunStatus::Parked || !self.may_ask() {
            return Ok(false);
        }
        self.view.finish();
        if self.person.ask(self.context, client, &self.run).await? != PromptOutcome::Answered {
            return Ok(false);
        }
        let run = RunRef::Named(self.run.to_string());
        // Whoever answered elsewhere may have resumed the run, too.
        client.resume_run(ResumeRun { run, retry_failing: false, sessions: None }).await?;
        self.view.begin();
        Ok(true)
    }

    /// Repeats the status of a run that had already ended or that waits: such a run sends no new events.
    fn repeat_what_was_not_said(&self, status: &Status) {
        let (view, why) = (&self.view, &status.reason);
        match status.summary.status {
            RunStatus::Completed if !view.has_said_end => view.say(&format!("completed: {why}")),
            RunStatus::Parked if !view.has_said_question => {
                let open = view.progress.open_questions(why);
                open.iter().for_each(|text| view.say(text));
                if open.is_empty() {
                    view.say(&format!("waits: {why}"));
                }
            }
            _ => {}
        }
    }

    /// Shows the features of a run that was asked for its plan alone. The same client asks for them.
    async fn planned(&self, client: Client) -> fault::Result<Client> {
        if !self.shows_plan {
            return Ok(client);
        }
        self.context.client.put(client).await;
        features::run(self.context, RunRef::Named(self.run.to_string()), None).await?;
        self.context.client().await
    }

    async fn end(mut self, client: Client, status: &Status) -> fault::Result<Exit> {
        self.view.gone(&self.run, self.after, None)?;
        self.view.finish();
        self.repeat_what_was_not_said(status);
        let run = &self.run;
        let (exit, hint) = match status.summary.status {
            RunStatus::Completed => (Exit::Done, how_to_get_the_work(status)),
            RunStatus::Incomplete | RunStatus::Failed | RunStatus::Abandoned => {
                (Exit::Incomplete, how_to_get_the_work(status))
            }
            RunStatus::Parked => {
                (Exit::Waiting, Some(format!("go on, when that is done, with: longhaul resume {run}")))
            }
            _ => {
                let asked = self.sessions.map(|count| {
                    format!("paused, as was asked, after {}; ", messages::count(count as usize, "session"))
                });
                (Exit::Paused, Some(format!("{}go on with: longhaul resume {run}", asked.unwrap_or_default())))
            }
        };
        match (hint, self.view.form.is_for_programs()) {
            (_, true) | (None, _) => {}
            (Some(hint), false) if self.asks => terminal::error_text(&hint),
            (Some(hint), false) => outtext!(hint),
        }
        if let (Some(answer), true, false) = (&status.synthesis, self.asks, self.view.form.is_for_programs()) {
            let answer = messages::plain(&answer.answer);
            terminal::document(&answer);
        }
        let client = if exit == Exit::Paused { self.planned(client).await? } else { client };
        // Comes last, since the run may still be written to memory, and the outcome should not wait for that.
        owner::stay(client).await;
        Ok(exit)
    }
}

/// The refusal to follow a run that broke off.
fn nobody_works(run: &RunId) -> Fault {
    Fault::invalid(format!("no process works on run {run}; go on with it with `longhaul resume {run}`"))
}

/// Names the branch of the run's commits and how to merge it; none if there are no commits.
fn how_to_get_the_work(status: &Status) -> Option<String> {
    let (run, branch) = (&status.summary.run, &status.branch);
    let has_commits = !branch.is_empty() && status.features.iter().any(|feature| feature.commit.is_some());
    has_commits.then(|| {
        format!(
            "the work is on branch {branch}\n  look at it:  longhaul diff {run}\n  \
             merge it:    longhaul merge {run}   (or: git merge {branch})"
        )
    })
}

/// Returns at that time, or never if there is none.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// True when a run that should go on has no process that works on it.
fn broke_off(summary: &RunSummary) -> bool {
    (works(summary) || summary.wakes_at_ms.is_some()) && !summary.active
}

fn works(summary: &RunSummary) -> bool {
    matches!(summary.status, RunStatus::New | RunStatus::Planning | RunStatus::Working)
}
