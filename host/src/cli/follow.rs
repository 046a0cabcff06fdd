//! Following a run to its end: events as they come, Ctrl-C, and taking over when the owner dies.

use super::arguments::Form;
use super::context::{Context, OWNER_PAUSE, OWNERS_MAX};
use super::exit::Exit;
use super::progress::Progress;
use super::prompt::{Asked, Person};
use super::{owner, terminal, words};
use crate::door::{Door, OwnerGone, Seen};
use crate::service::{Answer, Request, Status, Summary, Which};
use indicatif::{ProgressBar, ProgressStyle};
use longhaul_core::RunId;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::stream::{Content, Line, Token};
use longhaul_core::text::{cleaned, printable};
use longhaul_harness::RunStatus;
use rustix::termios::tcgetwinsize;
use std::io::IsTerminal;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;

/// How long a run that has a question is given to come to rest, before the person is asked beside its work.
const QUESTION_PAUSE: Duration = Duration::from_millis(700);

/// Starts or resumes a run, and follows it.
pub async fn start(context: &Context, mut request: Request, form: Form) -> fault::Result<Exit> {
    let mut door = context.door().await?;
    // Also when what is asked for becomes the run that an owner took before it stopped.
    let asks = matches!(request, Request::Ask { .. });
    let asked_ms = jiff::Timestamp::now().as_millisecond();
    let plan_only = matches!(request, Request::Run { plan_only: true, .. });
    let sessions = match &request {
        Request::Run { sessions, .. } | Request::Resume { sessions, .. } => *sessions,
        _ => None,
    };
    let (after, progress) = match &request {
        Request::Resume { run, .. } => caught_up(&door, run, u64::MAX).await,
        _ => (0, Progress::default()),
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
                owner::hand_over(door).await;
                return Err(error);
            }
        }
    };
    // Whoever goes on with an ask gets its answer as whoever asked.
    let asks = asks || status(&door, Which::Named(run.to_string())).await.is_ok_and(|status| status.asked.is_some());
    let (view, person) = (View::new(form, asks, run.clone(), progress), Person::default());
    let follower =
        Follower { context, run: run.clone(), after, owns: true, asks, sessions, pauses: false, view, person };
    let exit = follower.follow(door).await?;
    if plan_only && exit == Exit::Paused && form != Form::Stream {
        super::features::run(context, Which::Named(run.to_string()), None).await?;
    }
    Ok(exit)
}

/// How to go on with the run that an owner took before it stopped, and did not tell, if it did. It goes as far as was
/// asked then.
async fn taken(door: &Door, request: &Request, asked_ms: i64) -> Option<Request> {
    let (directory, goal) = match request {
        Request::Run { directory, .. } => (directory, None),
        Request::Ask { question } => (&question.directory, Some(&question.goal)),
        _ => return None,
    };
    let Status { summary, asked, .. } = status(door, Which::NewestIn(directory.clone())).await.ok()?;
    let is_later = i64::try_from(summary.created_ms).is_ok_and(|created_ms| created_ms >= asked_ms);
    // Others may ask in the same project: their answer is not ours.
    let is_ours = asked.as_ref() == goal;
    // One that has paused since, as it was asked to, would be told to go on.
    let is_ours = is_ours && summary.status != RunStatus::Paused;
    let run = Which::Named(summary.run.to_string());
    (is_later && is_ours).then_some(Request::Resume { run, retry_failing: false, sessions: None })
}

/// Follows a run that somebody else started.
pub async fn attach(context: &Context, which: Which, after: u64, form: Form) -> fault::Result<Exit> {
    let door = context.door().await?;
    let status = status(&door, which).await?;
    let run = status.summary.run.clone();
    if door.is_owner() && broke_off(&status.summary) {
        owner::hand_over(door).await;
        bail!("nobody works on run {run}; go on with it with `longhaul resume {run}`");
    }
    let (_, progress) = caught_up(&door, &Which::Named(run.to_string()), after).await;
    let (view, person) = (View::new(form, false, run.clone(), progress), Person::default());
    Follower { context, run, after, owns: false, asks: false, sessions: None, pauses: false, view, person }
        .follow(door)
        .await
}

/// The number of the last event up to `until`, and where the run was then: those were shown by whoever followed before.
async fn caught_up(door: &Door, which: &Which, until: u64) -> (u64, Progress) {
    let (mut after, mut progress) = (0, Progress::default());
    while let Ok(Answer::Events { events }) = door.ask(Request::Events { run: which.clone(), after }).await {
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

async fn status(door: &Door, which: Which) -> fault::Result<Status> {
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
    /// Whether the answer is all that goes to standard output.
    asks: bool,
    /// After how many sessions it is to pause by itself.
    sessions: Option<u32>,
    /// Whether it was asked to pause from here.
    pauses: bool,
    view: View,
    person: Person,
}

/// What ended the watching of one owner.
enum Over {
    /// The run is gone, with an error if there was one.
    Gone(Option<String>),
    /// The owner is.
    OwnerLost,
    /// We were too slow, and watch again from the last event.
    LetGo,
    /// The person does not want to watch any more.
    Left,
    /// They do not want to wait for the pause either.
    AtOnce,
}

impl Follower<'_> {
    async fn follow(mut self, mut door: Door) -> fault::Result<Exit> {
        loop {
            let seen = door.watch(&self.run, self.after).await;
            let over = match seen {
                Ok(seen) => self.watch(&door, seen).await?,
                Err(_) => Over::OwnerLost,
            };
            match over {
                Over::LetGo => {}
                Over::Left => {
                    self.view.finish();
                    owner::hand_over(door).await;
                    return Ok(Exit::Done);
                }
                Over::AtOnce if door.is_owner() => {
                    self.view.finish();
                    owner::end_at_once(&door.active());
                }
                Over::AtOnce => {
                    self.view.say(&format!("run {} pauses where it is worked on", self.run));
                    self.view.finish();
                    return Ok(Exit::Paused);
                }
                Over::Gone(Some(why)) => {
                    self.view.gone(&self.run, self.after, Some(&why))?;
                    self.view.finish();
                    owner::stay(door).await;
                    bail!("run {} stopped: {why}; go on with `longhaul resume {}`", self.run, self.run);
                }
                Over::Gone(None) => {
                    let status = status(&door, Which::Named(self.run.to_string())).await;
                    match status {
                        Ok(status) if self.is_answered(&door, &status).await? => {}
                        // It is being let go of, or was taken up again: what became of it shows in a moment.
                        Ok(status) if works(&status.summary) && status.summary.active => {
                            tokio::time::sleep(OWNER_PAUSE).await;
                        }
                        Ok(status) if !broke_off(&status.summary) => return self.end(door, &status).await,
                        // The owner let go of it, or died: somebody has to go on with it.
                        _ => door = self.take_over(door).await?,
                    }
                }
                Over::OwnerLost => door = self.take_over(door).await?,
            }
        }
    }

    async fn watch(&mut self, door: &Door, mut seen: Receiver<Seen>) -> fault::Result<Over> {
        // When it is looked whether a run that goes on has a question; one that comes to rest is asked about then.
        let mut look_at: Option<Instant> = None;
        loop {
            let is_heard = self.person.is_asked() || self.may_steer();
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
                    Some(Seen::Token(token)) => self.view.token(&self.run, token)?,
                    Some(Seen::Lagged) => self.view.lagged(&self.run, self.after)?,
                    // We did not read, for example while our own output was held up: from there again.
                    Some(Seen::Dropped) => return Ok(Over::LetGo),
                    Some(Seen::Gone(why)) => return Ok(Over::Gone(why)),
                    None => return Ok(Over::OwnerLost),
                },
                () = at(look_at) => {
                    look_at = None;
                    self.look_for_questions(door).await?;
                }
                line = self.person.line(), if is_heard => {
                    if self.person.is_asked() {
                        self.person.take(door, line).await?;
                        self.look_for_questions(door).await?;
                    } else {
                        self.steer(door, line).await;
                    }
                }
                _ = tokio::signal::ctrl_c() => {
                    if !self.owns {
                        return Ok(Over::Left);
                    }
                    if self.pauses {
                        return Ok(Over::AtOnce);
                    }
                    self.pauses = true;
                    // Heard from before the line is read that tells of it.
                    let mut again = signal(SignalKind::interrupt())?;
                    let seconds = longhaul_engine::IN_FLIGHT_MS_MAX / 1_000;
                    self.view.say(&format!(
                        "pausing: effects that are on their way are finished first, for at most {seconds} s; Ctrl-C again ends at once"
                    ));
                    self.sessions = None;
                    tokio::select! {
                        // A run that is over by now, or an owner that is gone, shows in what is watched.
                        _ = door.ask(Request::Pause { run: Which::Named(self.run.to_string()) }) => {}
                        _ = again.recv() => return Ok(Over::AtOnce),
                    }
                }
            }
        }
    }

    /// What is typed while nothing is asked is a correction of what is worked on.
    async fn steer(&mut self, door: &Door, line: Option<String>) {
        let Some(line) = line else { return self.person.leave() };
        let text = line.trim().to_owned();
        if text.is_empty() {
            return;
        }
        let run = Which::Named(self.run.to_string());
        if let Err(error) = door.ask(Request::Steer { run, task: None, text }).await {
            self.view.say(&format!("{error:#}"));
        }
    }

    /// Questions are put on standard output, where a program reads the events, or somebody the answer of an ask.
    fn may_ask(&self) -> bool {
        !self.view.form.is_for_programs() && (!self.asks || std::io::stdout().is_terminal())
    }

    /// Whether what is typed is a correction.
    fn may_steer(&self) -> bool {
        !self.view.form.is_for_programs() && self.person.is_here(self.context)
    }

    /// Asks the person what is open while the rest goes on. The line that lives makes way for their answer.
    async fn look_for_questions(&mut self, door: &Door) -> fault::Result<()> {
        if self.person.is_asked() || !self.may_ask() {
            return Ok(());
        }
        self.view.finish();
        if !self.person.begin(self.context, door, &self.run).await? {
            self.view.begin();
        }
        Ok(())
    }

    /// Waits for the lock, or for a new owner; as the owner, goes on with the run.
    async fn take_over(&mut self, door: Door) -> fault::Result<Door> {
        door.leave().await;
        let mut tries = OWNERS_MAX;
        loop {
            let door = self.context.door().await.context("the owner of the data directory is gone")?;
            tries -= 1;
            match self.go_on(&door).await {
                Ok(()) => return Ok(door),
                // It took the place of the one before, and stopped as well; or was still that one.
                Err(error) if error.is::<OwnerGone>() && tries > 0 => {
                    door.leave().await;
                    tokio::time::sleep(OWNER_PAUSE).await;
                }
                Err(error) => {
                    owner::hand_over(door).await;
                    return Err(error);
                }
            }
        }
    }

    async fn go_on(&self, door: &Door) -> fault::Result<()> {
        let named = Which::Named(self.run.to_string());
        if broke_off(&status(door, named.clone()).await?.summary) {
            self.view.say(&format!("the owner is gone; going on with run {}", self.run));
            // As far as it was asked to: what is left of a number of sessions is stored with it.
            door.ask(Request::Resume { run: named, retry_failing: false, sessions: None }).await?;
        }
        Ok(())
    }

    /// Whether the person at this terminal answered what the run waits with; it goes on then.
    async fn is_answered(&mut self, door: &Door, status: &Status) -> fault::Result<bool> {
        if status.summary.status != RunStatus::Parked || !self.may_ask() {
            return Ok(false);
        }
        self.view.finish();
        if self.person.ask(self.context, door, &self.run).await? != Asked::Answered {
            return Ok(false);
        }
        let run = Which::Named(self.run.to_string());
        // Who answered elsewhere may have resumed it, too.
        door.ask(Request::Resume { run, retry_failing: false, sessions: None }).await?;
        self.view.begin();
        Ok(true)
    }

    /// A run that had ended, or waits for a person, and was taken up again, has no news: it says once more how it stands.
    fn repeat_what_was_not_said(&self, status: &Status) {
        let (view, why) = (&self.view, &status.why);
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

    async fn end(mut self, door: Door, status: &Status) -> fault::Result<Exit> {
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
                let asked = self
                    .sessions
                    .map(|count| format!("paused, as was asked, after {}; ", words::count(count as usize, "session")));
                (Exit::Paused, Some(format!("{}go on with: longhaul resume {run}", asked.unwrap_or_default())))
            }
        };
        match (hint, self.view.form.is_for_programs()) {
            (_, true) | (None, _) => {}
            (Some(hint), false) if self.asks => terminal::error_text(&hint),
            (Some(hint), false) => outtext!(hint),
        }
        if let (Some(answer), true, false) = (&status.synthesis, self.asks, self.view.form.is_for_programs()) {
            let answer = words::plain(&answer.answer);
            terminal::document(&answer);
        }
        // Only now: a run may still be remembered, and nobody should wait for that with what it came to.
        owner::stay(door).await;
        Ok(exit)
    }
}

/// Where the commits of a run are, and how they get into the user's branch; none where there are none.
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

fn print(line: &Line) -> fault::Result<()> {
    outln!("{}", serde_json::to_string(line)?);
    Ok(())
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
    (works(summary) || summary.wakes_at_ms.is_some()) && !summary.active
}

fn works(summary: &Summary) -> bool {
    matches!(summary.status, RunStatus::New | RunStatus::Planning | RunStatus::Working)
}

/// What a person sees: lines, and on a terminal a few more that live. A program sees one JSON object a line.
struct View {
    form: Form,
    /// Lines go to standard error.
    beside: bool,
    run: RunId,
    progress: Progress,
    /// Whether the end of the run was shown, and a question to a person.
    has_said_end: bool,
    has_said_question: bool,
    live: Option<Live>,
}

impl View {
    fn new(form: Form, beside: bool, run: RunId, progress: Progress) -> Self {
        let (has_said_end, has_said_question) = (false, false);
        let mut view = Self { form, beside, run, progress, has_said_end, has_said_question, live: None };
        view.begin();
        view
    }

    /// Draws what lives, where that is seen.
    fn begin(&mut self) {
        let is_read = self.beside || std::io::stdout().is_terminal();
        self.live = (self.form == Form::Words && is_read && is_drawn_on()).then(Live::new);
        self.draw();
    }

    fn event(&mut self, event: &RunEvent) -> fault::Result<()> {
        match self.form {
            Form::Words => {}
            Form::Json => {
                outln!("{}", serde_json::to_string(event)?);
                return Ok(());
            }
            Form::Stream => return print(&Line::of(event.clone())),
        }
        if let Event::ContextAnxiety { invocation, sign } = &event.event {
            tracing::debug!(%invocation, ?sign, "a model seems to hurry because its context fills");
        }
        self.has_said_end |= matches!(event.event, Event::RunEnded { .. });
        self.has_said_question |= matches!(event.event, Event::Parked { .. });
        if let Some(line) = self.progress.see(event) {
            self.say(&line);
        }
        self.draw();
        Ok(())
    }

    /// A part of what a model is saying.
    fn token(&mut self, run: &RunId, token: Token) -> fault::Result<()> {
        if self.form == Form::Stream {
            return print(&Line { run: run.clone(), content: Content::Token(token) });
        }
        if self.live.is_some() {
            self.progress.hear(&token);
            self.draw();
        }
        Ok(())
    }

    /// Parts of what models say were lost.
    fn lagged(&mut self, run: &RunId, after: u64) -> fault::Result<()> {
        if self.form == Form::Stream {
            print(&Line { run: run.clone(), content: Content::Lagged { after } })?;
        }
        Ok(())
    }

    /// Nobody works on the run any more.
    fn gone(&mut self, run: &RunId, after: u64, error: Option<&str>) -> fault::Result<()> {
        if self.form == Form::Stream {
            let error = error.map(str::to_owned);
            print(&Line { run: run.clone(), content: Content::End { after, error } })?;
        }
        Ok(())
    }

    fn say(&self, line: &str) {
        match &self.live {
            Some(live) => live.bar.println(cleaned(line)),
            None if self.form.is_for_programs() => {}
            None if self.beside => terminal::error_text(line),
            None => outtext!(line),
        }
    }

    fn draw(&self) {
        if let Some(live) = &self.live {
            live.draw(&self.progress, &self.run);
        }
    }

    fn finish(&mut self) {
        if let Some(live) = self.live.take() {
            live.bar.finish_and_clear();
        }
    }
}

/// Lines of what a model is saying that live.
const SAYING_LINES_MAX: usize = 4;

/// Columns beside the label: the spinner, the time, and spaces.
const BESIDE_LABEL: usize = 12;

/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;

/// The lines at the end of a terminal that are drawn again and again: what goes on, and what a model is saying.
struct Live {
    bar: ProgressBar,
}

impl Live {
    fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(
            ProgressStyle::with_template("{spinner} {prefix} {elapsed}{msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar }
    }

    fn draw(&self, progress: &Progress, run: &RunId) {
        let columns = tcgetwinsize(std::io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        let columns = if columns == 0 { COLUMNS } else { columns };
        let room = columns.saturating_sub(BESIDE_LABEL).max(BESIDE_LABEL);
        self.bar.set_prefix(printable(&progress.label(run, room), usize::MAX));
        let saying = progress.saying(SAYING_LINES_MAX, room);
        self.bar.set_message(
            saying.iter().map(|line| format!("\n  | {}", printable(line, usize::MAX))).collect::<String>(),
        );
    }
}

/// What lives is drawn on standard error, on terminals that can move a cursor.
fn is_drawn_on() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
