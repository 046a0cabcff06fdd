//! Following a run to its end: events as they come, Ctrl-C, and taking over when the owner dies.

use super::prompt::{Asked, Person};
use super::{Context, Exit, OWNER_PAUSE, OWNERS_MAX, words};
use crate::door::{Door, OwnerGone, Seen};
use crate::service::{Answer, Request, Status, Summary, Which};
use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};
use longhaul_core::RunId;
use longhaul_core::event::{Event, RunEvent};
use longhaul_harness::RunStatus;
use std::io::IsTerminal;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;

/// How long a run that has a question is given to come to rest, before the person is asked beside its work.
const QUESTION_PAUSE: Duration = Duration::from_millis(700);

/// Starts or resumes a run, and follows it.
pub async fn start(context: &Context, mut request: Request) -> anyhow::Result<Exit> {
    let mut door = context.door().await?;
    let asked_ms = jiff::Timestamp::now().as_millisecond();
    let plan_only = matches!(request, Request::Run { plan_only: true, .. });
    let sessions = match &request {
        Request::Run { sessions, .. } | Request::Resume { sessions, .. } => *sessions,
        _ => None,
    };
    let after = match &request {
        Request::Resume { run, .. } => last_number(&door, run).await,
        _ => 0,
    };
    let mut tries = OWNERS_MAX;
    let run = loop {
        let answered = door.ask(request.clone()).await;
        tries -= 1;
        match answered {
            Ok(Answer::Run { run }) => break run,
            Ok(_) => bail!("the service answered something else"),
            Err(error) if error.is::<OwnerGone>() && tries > 0 => {
                tokio::time::sleep(OWNER_PAUSE).await;
                door = context.door().await?;
                request = taken(&door, &request, asked_ms).await.unwrap_or(request);
            }
            Err(error) => {
                door.close().await;
                return Err(error);
            }
        }
    };
    let view = View::new(context.json);
    let follower = Follower { context, run: run.clone(), after, owns: true, sessions, view, person: Person::default() };
    let exit = follower.follow(door).await?;
    if plan_only && exit == Exit::Paused {
        super::features::run(context, Which::Named(run.to_string()), None).await?;
    }
    Ok(exit)
}

/// How to go on with the run that an owner took before it stopped, and did not tell, if it did.
async fn taken(door: &Door, request: &Request, asked_ms: i64) -> Option<Request> {
    // To pause at the plan is not in what is stored, so such a run is left to its person.
    let Request::Run { directory, sessions, plan_only: false, .. } = request else { return None };
    let summary = status(door, Which::NewestIn(directory.clone())).await.ok()?.summary;
    let is_later = i64::try_from(summary.created_ms).is_ok_and(|created_ms| created_ms >= asked_ms);
    let run = Which::Named(summary.run.to_string());
    is_later.then_some(Request::Resume { run, retry_failing: false, sessions: *sessions })
}

/// Follows a run that somebody else started.
pub async fn attach(context: &Context, which: Which, after: u64) -> anyhow::Result<Exit> {
    let door = context.door().await?;
    let status = status(&door, which).await?;
    let run = status.summary.run.clone();
    if door.is_owner() && broke_off(&status.summary) {
        door.close().await;
        bail!("nobody works on run {run}; go on with it with `longhaul resume {run}`");
    }
    let view = View::new(context.json);
    Follower { context, run, after, owns: false, sessions: None, view, person: Person::default() }.follow(door).await
}

/// Events up to here were shown by whoever followed before.
async fn last_number(door: &Door, which: &Which) -> u64 {
    let mut after = 0;
    while let Ok(Answer::Events { events }) = door.ask(Request::Events { run: which.clone(), after }).await {
        match events.last() {
            Some(last) => after = last.number,
            None => break,
        }
    }
    after
}

async fn status(door: &Door, which: Which) -> anyhow::Result<Status> {
    match door.ask(Request::Status { run: which }).await? {
        Answer::Status(status) => Ok(*status),
        _ => bail!("the service answered something else"),
    }
}

struct Follower<'a> {
    context: &'a Context,
    run: RunId,
    after: u64,
    /// Whether this terminal started or resumed it: then Ctrl-C pauses it, and otherwise only stops watching.
    owns: bool,
    /// After how many sessions it is to pause by itself.
    sessions: Option<u32>,
    view: View,
    person: Person,
}

/// What ended the watching of one owner.
enum Over {
    /// The run is gone, with an error if there was one.
    Gone(Option<String>),
    /// The owner is.
    OwnerLost,
    /// The person does not want to watch any more.
    Left,
}

impl Follower<'_> {
    async fn follow(mut self, mut door: Door) -> anyhow::Result<Exit> {
        loop {
            let seen = door.watch(&self.run, self.after).await;
            let over = match seen {
                Ok(seen) => self.watch(&door, seen).await?,
                Err(_) => Over::OwnerLost,
            };
            match over {
                Over::Left => {
                    self.view.finish();
                    door.close().await;
                    return Ok(Exit::Done);
                }
                Over::Gone(Some(why)) => {
                    self.view.finish();
                    door.close().await;
                    bail!("run {} stopped: {why}; go on with `longhaul resume {}`", self.run, self.run);
                }
                Over::Gone(None) => {
                    let status = status(&door, Which::Named(self.run.to_string())).await;
                    match status {
                        Ok(status) if self.is_answered(&door, &status).await? => {}
                        Ok(status) if !broke_off(&status.summary) => return self.end(door, &status).await,
                        // The owner let go of it, or died: somebody has to go on with it.
                        _ => door = self.take_over(door).await?,
                    }
                }
                Over::OwnerLost => door = self.take_over(door).await?,
            }
        }
    }

    async fn watch(&mut self, door: &Door, mut seen: Receiver<Seen>) -> anyhow::Result<Over> {
        // When it is looked whether a run that goes on has a question; one that comes to rest is asked about then.
        let mut look_at: Option<Instant> = None;
        loop {
            tokio::select! {
                next = seen.recv() => match next {
                    Some(Seen::Event(event)) => {
                        self.after = event.number;
                        self.view.event(&event)?;
                        self.person.prompt();
                        if matches!(event.event, Event::Parked { .. }) {
                            look_at = Some(Instant::now() + QUESTION_PAUSE);
                        }
                    }
                    Some(Seen::Token(text)) => self.view.token(&text),
                    Some(Seen::Gone(why)) => return Ok(Over::Gone(why)),
                    None => return Ok(Over::OwnerLost),
                },
                () = at(look_at) => {
                    look_at = None;
                    self.look_for_questions(door).await?;
                }
                line = self.person.line(), if self.person.is_asked() => {
                    self.person.take(door, line).await?;
                    self.look_for_questions(door).await?;
                }
                _ = tokio::signal::ctrl_c() => {
                    if !self.owns {
                        return Ok(Over::Left);
                    }
                    self.view.say("pausing");
                    self.sessions = None;
                    // A run that is over by now, or an owner that is gone, shows in what is watched.
                    let _ = door.ask(Request::Pause { run: Which::Named(self.run.to_string()) }).await;
                }
            }
        }
    }

    /// Asks the person what is open while the rest goes on. The line that lives makes way for their answer.
    async fn look_for_questions(&mut self, door: &Door) -> anyhow::Result<()> {
        if self.person.is_asked() {
            return Ok(());
        }
        self.view.finish();
        if !self.person.begin(self.context, door, &self.run).await? {
            self.view = View::new(self.context.json);
        }
        Ok(())
    }

    /// Waits for the lock, or for a new owner; as the owner, goes on with the run.
    async fn take_over(&mut self, door: Door) -> anyhow::Result<Door> {
        door.close().await;
        let mut tries = OWNERS_MAX;
        loop {
            let door = self.context.door().await.context("the owner of the data directory is gone")?;
            tries -= 1;
            match self.go_on(&door).await {
                Ok(()) => return Ok(door),
                // It took the place of the one before, and stopped as well; or was still that one.
                Err(error) if error.is::<OwnerGone>() && tries > 0 => {
                    door.close().await;
                    tokio::time::sleep(OWNER_PAUSE).await;
                }
                Err(error) => {
                    door.close().await;
                    return Err(error);
                }
            }
        }
    }

    async fn go_on(&self, door: &Door) -> anyhow::Result<()> {
        let named = Which::Named(self.run.to_string());
        if broke_off(&status(door, named.clone()).await?.summary) {
            self.view.say(&format!("the owner is gone; going on with run {}", self.run));
            door.ask(Request::Resume { run: named, retry_failing: false, sessions: self.sessions }).await?;
        }
        Ok(())
    }

    /// Whether the person at this terminal answered what the run waits with; it goes on then.
    async fn is_answered(&mut self, door: &Door, status: &Status) -> anyhow::Result<bool> {
        if status.summary.status != RunStatus::Parked {
            return Ok(false);
        }
        self.view.finish();
        if self.person.ask(self.context, door, &self.run).await? != Asked::Answered {
            return Ok(false);
        }
        let run = Which::Named(self.run.to_string());
        // Who answered elsewhere may have resumed it, too.
        door.ask(Request::Resume { run, retry_failing: false, sessions: self.sessions }).await?;
        self.view = View::new(self.context.json);
        Ok(true)
    }

    async fn end(mut self, door: Door, status: &Status) -> anyhow::Result<Exit> {
        self.view.finish();
        door.close().await;
        let run = &self.run;
        let (exit, hint) = match status.summary.status {
            RunStatus::Completed => (Exit::Done, None),
            RunStatus::Incomplete | RunStatus::Failed | RunStatus::Abandoned => (Exit::Incomplete, None),
            RunStatus::Parked => {
                (Exit::Waiting, Some(format!("go on, when that is done, with: longhaul resume {run}")))
            }
            _ => {
                let asked = self
                    .sessions
                    .map(|count| format!("paused, as was asked, after {}; ", words::count(count as usize, "session")));
                (Exit::Paused, Some(format!("{}go on with: longhaul resume {run}", asked.unwrap_or_default())))
            }
        };
        if let (Some(hint), false) = (hint, self.context.json) {
            outln!("{hint}");
        }
        Ok(exit)
    }
}

/// Returns at that time; never, if there is none.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Whether the run should be worked on and nobody does.
fn broke_off(summary: &Summary) -> bool {
    let works = matches!(summary.status, RunStatus::New | RunStatus::Planning | RunStatus::Working);
    (works || summary.wakes_at_ms.is_some()) && !summary.active
}

/// What a person sees: lines, and on a terminal one more that lives.
struct View {
    json: bool,
    live: Option<ProgressBar>,
    said: String,
}

impl View {
    fn new(json: bool) -> Self {
        let live = (!json && std::io::stdout().is_terminal()).then(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_style(
                ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { json, live, said: String::new() }
    }

    fn event(&mut self, event: &RunEvent) -> anyhow::Result<()> {
        self.said.clear();
        if self.json {
            outln!("{}", serde_json::to_string(event)?);
            return Ok(());
        }
        if let Some(line) = words::line(event) {
            self.say(&line);
        }
        if let (Some(live), Event::InvocationStarted { plugin, feature, .. }) = (&self.live, &event.event) {
            live.set_message(format!("{plugin} {}", feature.as_deref().unwrap_or_default()));
        }
        Ok(())
    }

    /// The end of what a model is saying, on the line that lives.
    fn token(&mut self, text: &str) {
        if let Some(live) = &self.live {
            self.said.push_str(&text.replace(char::is_control, " "));
            let start = self.said.floor_char_boundary(self.said.len().saturating_sub(80));
            self.said.drain(..start);
            live.set_message(self.said.clone());
        }
    }

    fn say(&self, line: &str) {
        match &self.live {
            Some(live) => live.println(line),
            None if self.json => {}
            None => outln!("{line}"),
        }
    }

    fn finish(&mut self) {
        if let Some(live) = self.live.take() {
            live.finish_and_clear();
        }
    }
}
