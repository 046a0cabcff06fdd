//! A world of runs: a store that lasts, processes that die, people who answer truly, and a receiver of all effects.
//!
//! The way of a call is that of the host: decisions first, then the announcements of a list, then what they announce.

use super::dice::{Dice, mixed};
use super::dying::{Death, DyingStore};
use super::guest::{Checked, Guest, GuestCall, is_asked, text};
use super::past;
use super::receiver::Receiver;
use longhaul_core::approval::{CallDecision, ENTRY};
use longhaul_core::journal::{
    Began, CallVerdict, EffectClass, EffectQuestion, EntryHandle, Finished, Journal as _, JournalError, NewCall,
    Resolution,
};
use longhaul_core::store::{Batch, Store, StoreError, Table};
use longhaul_core::tool::{ToolCall, ToolError, ToolOutput};
use longhaul_core::{Clock as _, Digest, InvocationId, Limits, RunId};
use longhaul_journal::{Opened, Recorder};
use longhaul_records::record::RunRecord;
use longhaul_records::repeats;
use longhaul_testkit::{HandClock, MemoryStore};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;

/// The pieces of work of each run.
pub(super) const KEYS: [&str; 2] = ["f-a/1/generate", "f-b/1/generate"];

/// Forks that one world tries to make.
const FORKS: u32 = 8;

/// Lives in which a piece of work has to end.
const LIVES_MAX: u32 = 100;

/// Lives of it that may end early.
const DEATHS_MAX: u32 = 4;

/// The answer of a call that a person skipped.
const SKIPPED: &str = "\"skipped\"";

/// A fault of the world itself, which its checks have to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    /// A fork shares one entry too many.
    ShareTooFar,
    /// A fork begins without the past.
    ShareLeftOut,
    /// A run is deleted without handing its journals over.
    HandOverLeftOut,
    /// A verifiable effect is made again in place of asking whether it happened.
    VerifyLeftOut,
    /// Nobody is asked about an effect that the other run had after the point.
    QuestionLeftOut,
}

/// Numbers of all that was tried.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) forks: u64,
    pub(super) forks_of_forks: u64,
    pub(super) shared_entries: u64,
    pub(super) edited: u64,
    pub(super) refused: u64,
    pub(super) kills: u64,
    pub(super) kills_of_forking: u64,
    pub(super) questions: u64,
    pub(super) decisions: u64,
    pub(super) effects: u64,
    pub(super) deleted: u64,
}

impl Counts {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            forks: self.forks + other.forks,
            forks_of_forks: self.forks_of_forks + other.forks_of_forks,
            shared_entries: self.shared_entries + other.shared_entries,
            edited: self.edited + other.edited,
            refused: self.refused + other.refused,
            kills: self.kills + other.kills,
            kills_of_forking: self.kills_of_forking + other.kills_of_forking,
            questions: self.questions + other.questions,
            decisions: self.decisions + other.decisions,
            effects: self.effects + other.effects,
            deleted: self.deleted + other.deleted,
        }
    }
}

/// The world of one seed.
pub(super) struct World {
    seed: u64,
    pub(super) dice: Dice,
    pub(super) planted: Option<Planted>,
    pub(super) kept: Arc<MemoryStore>,
    clock: Arc<HandClock>,
    pub(super) receiver: Receiver,
    pub(super) counts: Counts,
    /// The runs that are there, and the number of all that were.
    pub(super) runs: Vec<RunId>,
    begun: u32,
    /// The last entry of an invocation that its fork shares, or that a person answered for it.
    pub(super) shared: BTreeMap<InvocationId, u32>,
    /// The inputs and the calls by their digests, of which journals hold nothing else.
    inputs: BTreeMap<Digest, String>,
    pub(super) calls: BTreeMap<Digest, ToolCall>,
    /// Calls that a person or a rule allowed, by the invocation that made them.
    allowed: BTreeSet<(InvocationId, Digest)>,
    answers: u32,
}

/// The reason why a life ended.
pub(super) enum Stopped {
    Killed,
    Parked(EffectQuestion),
    Wrong(String),
}

impl From<JournalError> for Stopped {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Store(StoreError::Failed { .. }) => Self::Killed,
            JournalError::Parked(question) => Self::Parked(question),
            other => Self::Wrong(other.to_string()),
        }
    }
}

impl From<String> for Stopped {
    fn from(why: String) -> Self {
        Self::Wrong(why)
    }
}

/// The end of an invocation. The recorder is there unless it had ended before.
struct Performed {
    finished: Finished,
    recorder: Option<Recorder>,
}

type Performing<'a> = Pin<Box<dyn Future<Output = Result<Performed, Stopped>> + 'a>>;

impl World {
    pub(super) fn new(seed: u64, planted: Option<Planted>) -> Self {
        Self {
            seed,
            dice: Dice::of(seed, "world"),
            planted,
            kept: Arc::new(MemoryStore::new()),
            clock: Arc::new(HandClock::at(HandClock::START_MS)),
            receiver: Receiver::default(),
            counts: Counts::default(),
            runs: Vec::new(),
            begun: 0,
            shared: BTreeMap::new(),
            inputs: BTreeMap::new(),
            calls: BTreeMap::new(),
            allowed: BTreeSet::new(),
            answers: 0,
        }
    }

    /// Begins runs, forks them, lets them work and deletes them, in any order; then all of them end, and go.
    pub(super) async fn play(&mut self) -> Checked<()> {
        for _ in 0..FORKS {
            let parent = match self.dice.pick(&self.runs) {
                Some(run) => run,
                None => self.begin().await?,
            };
            self.some_lives(&parent).await?;
            self.fork(&parent).await?;
            if let Some(run) = self.dice.pick(&self.runs).filter(|_| self.dice.one_in(2)) {
                self.some_lives(&run).await?;
            }
            if let Some(run) = self.dice.pick(&self.runs).filter(|_| self.dice.one_in(4)) {
                self.delete(&run).await?;
            }
        }
        for at in self.dice.order(self.runs.len()) {
            let run = self.runs[at].clone();
            self.work_to_the_end(&run).await?;
        }
        self.check_effects()?;
        self.check_ends().await?;
        while let Some(run) = self.dice.pick(&self.runs) {
            self.delete(&run).await?;
        }
        self.check_nothing_is_left()
    }

    /// The name of a run that is to begin.
    pub(super) fn next_run(&mut self) -> RunId {
        self.begun += 1;
        RunId::from_text(format!("r-{}", self.begun))
    }

    async fn begin(&mut self) -> Checked<RunId> {
        let run = self.next_run();
        let row = Batch::new().insert(Table::Runs, RunRecord::key(&run), "{}");
        self.kept.commit(row).await.map_err(text)?;
        self.runs.push(run.clone());
        Ok(run)
    }

    async fn some_lives(&mut self, run: &RunId) -> Checked<()> {
        for _ in 0..=self.dice.below(3) {
            let key = self.dice.pick(&KEYS).unwrap_or(KEYS[0]);
            let dies = !self.dice.one_in(4);
            self.live(run, key, dies).await?;
        }
        Ok(())
    }

    async fn work_to_the_end(&mut self, run: &RunId) -> Checked<()> {
        for key in KEYS {
            let mut lives = 0;
            while !self.live(run, key, lives < DEATHS_MAX).await? {
                lives += 1;
                if lives > LIVES_MAX {
                    return Err(format!("{key} of {run} never ends"));
                }
            }
        }
        Ok(())
    }

    /// A store of one life, which may end at a commit.
    pub(super) fn life(&mut self, dies: bool, commits_max: u32) -> Arc<DyingStore> {
        let death = dies.then(|| match self.dice.one_in(2) {
            true => Death::Before(self.dice.below(commits_max)),
            false => Death::Within(1 + self.dice.below(commits_max)),
        });
        Arc::new(DyingStore::new(&self.kept, death))
    }

    /// One life of a process with one piece of work; true when that has ended.
    async fn live(&mut self, run: &RunId, key: &str, dies: bool) -> Checked<bool> {
        let life = self.life(dies, 20);
        let store = Arc::clone(&life) as Arc<dyn Store>;
        match self.lived(&store, InvocationId::of_action(run, key), format!("the input of {key}")).await {
            Ok(()) => Ok(true),
            Err(Stopped::Killed) if life.is_dead() => {
                self.counts.kills += 1;
                Ok(false)
            }
            Err(Stopped::Killed) => Err(format!("{key} of {run} was killed by nobody")),
            Err(Stopped::Parked(question)) => {
                self.answer_question(&question).await?;
                Ok(false)
            }
            Err(Stopped::Wrong(why)) => Err(why),
        }
    }

    async fn lived(&mut self, store: &Arc<dyn Store>, invocation: InvocationId, input: String) -> Result<(), Stopped> {
        let Performed { finished, recorder } = self.perform(store, invocation, input).await?;
        if let Some(recorder) = recorder {
            recorder.finish(finished, Batch::new()).await?;
        }
        Ok(())
    }

    /// A person looks at the receiver and tells what is true, or has the call skipped.
    async fn answer_question(&mut self, question: &EffectQuestion) -> Checked<()> {
        self.counts.questions += 1;
        let said = match self.receiver.of(&question.invocation, question.entry) {
            _ if self.dice.one_in(8) => Resolution::Skip,
            Some(received) => Resolution::Happened(received.answer.clone()),
            None => Resolution::DidNotHappen,
        };
        let op = longhaul_journal::resolution(&*self.kept, &question.invocation, question.entry, &said);
        self.kept.commit(Batch { ops: vec![op.map_err(text)?] }).await.map_err(text)
    }

    fn tick(&mut self) {
        self.clock.advance_ms(u64::from(self.dice.below(3)));
    }

    /// An answer that nobody gave before.
    fn fresh_answer(&mut self) -> String {
        self.answers += 1;
        // Some are too long for a row.
        let length = if self.dice.one_in(10) { 3_000 } else { 1 };
        format!("\"answer {}{}\"", self.answers, ".".repeat(length))
    }

    pub(super) fn guest(&self, invocation: &InvocationId, began: &Began) -> Checked<Guest> {
        let input = self.inputs.get(&began.input).ok_or_else(|| format!("`{invocation}` has a foreign input"))?;
        Ok(Guest::new(mixed(self.seed, invocation.action()), began, input, invocation.depth()))
    }

    fn perform<'a>(&'a mut self, store: &'a Arc<dyn Store>, invocation: InvocationId, input: String) -> Performing<'a> {
        Box::pin(async move {
            let began = self.began(input);
            let opened =
                Recorder::open(Arc::clone(store), self.clock.clone(), invocation.clone(), began, &Limits::default())?;
            let recorder = match opened {
                Opened::Running(recorder) => recorder,
                Opened::Finished { finished, .. } => return Ok(Performed { finished, recorder: None }),
            };
            let mut guest = self.guest(&invocation, recorder.began())?;
            while let Some(calls) = guest.calls() {
                let answers = self.answer_each(store, &recorder, &calls, guest.fuel()).await?;
                guest.hear(&answers, recorder.time_ms());
            }
            recorder.check_end()?;
            self.tick();
            let (result, fuel_used, at_ms) = (guest.result(), guest.fuel(), self.clock.now_ms());
            let finished = Finished { result, fuel_used, interrupted: false, at_ms };
            Ok(Performed { finished, recorder: Some(recorder) })
        })
    }

    /// The beginning that a host would write: another seed each time.
    fn began(&mut self, input: String) -> Began {
        self.answers += 1;
        let digest = Digest::of(input.as_bytes());
        self.inputs.insert(digest, input);
        Began {
            plugin: "coder".to_owned(),
            table: "agents.coder".to_owned(),
            component: Digest::of(b"component"),
            export: "agent.run".to_owned(),
            input: digest,
            seed: *Digest::of(&self.answers.to_le_bytes()).as_bytes(),
            fingerprint: "engine 1".to_owned(),
            context: None,
            told: None,
            at_ms: self.clock.now_ms(),
        }
    }

    async fn answer_each(
        &mut self,
        store: &Arc<dyn Store>,
        recorder: &Recorder,
        calls: &[GuestCall],
        fuel: u64,
    ) -> Result<Vec<String>, Stopped> {
        let mut refusals = Vec::with_capacity(calls.len());
        for call in calls {
            refusals.push(self.decide(recorder, call, fuel).await?);
        }
        let mut verdicts = Vec::with_capacity(calls.len());
        for (call, refusal) in calls.iter().zip(refusals) {
            self.tick();
            verdicts.push(Some(self.announce(recorder, call, refusal, fuel).await?));
        }
        let mut answers = vec![String::new(); calls.len()];
        for at in self.dice.order(calls.len()) {
            self.tick();
            if let Some(verdict) = verdicts[at].take() {
                answers[at] = self.answer(store, recorder, &calls[at], verdict).await?;
            }
        }
        Ok(answers)
    }

    /// The answer of a call that a person refuses; none when it is made.
    async fn decide(&mut self, recorder: &Recorder, call: &GuestCall, fuel: u64) -> Result<Option<String>, Stopped> {
        let GuestCall::Tool(tool) = call else { return Ok(None) };
        self.calls.insert(call.arguments(), tool.clone());
        if !self.is_gated(recorder, call, tool)? {
            return Ok(None);
        }
        self.tick();
        let asked = call.asked(EffectClass::ReadOnly, fuel);
        let said = match recorder.ask(NewCall { name: ENTRY, ..asked }).await? {
            CallVerdict::Answered(said) => said,
            CallVerdict::Go(handle) => {
                let said = self.person_decides(recorder.invocation(), call);
                recorder.answer(handle, said.clone()).await?;
                said
            }
            other => return Err(Stopped::Wrong(format!("a decision of `{}`: {other:?}", recorder.invocation()))),
        };
        let decision: CallDecision = serde_json::from_str(&said).map_err(text)?;
        let refused = decision.refusal().map(|error| serde_json::to_string(&Err::<ToolOutput, ToolError>(error)));
        Ok(refused.transpose().map_err(text)?)
    }

    /// True for a call that a decision comes before: where the journal holds the next entry, that tells.
    fn is_gated(&self, recorder: &Recorder, call: &GuestCall, tool: &ToolCall) -> Checked<bool> {
        if let Some((name, arguments)) = recorder.upcoming() {
            return Ok(name == ENTRY && arguments == call.arguments());
        }
        let is_repeated = call.class() == EffectClass::Acts && self.repeats(recorder.invocation(), tool)?;
        Ok(is_asked(tool) || (is_repeated && self.planted != Some(Planted::QuestionLeftOut)))
    }

    /// True when the run that an invocation's run was forked from made this call after the point.
    fn repeats(&self, invocation: &InvocationId, tool: &ToolCall) -> Checked<bool> {
        Ok(repeats::of_run(&*self.kept, &invocation.run()).map_err(text)?.has(tool))
    }

    fn person_decides(&mut self, invocation: &InvocationId, call: &GuestCall) -> String {
        self.counts.decisions += 1;
        let decision = match self.dice.one_in(8) {
            true => CallDecision::Rejected(None),
            false => CallDecision::Allowed("a person".to_owned()),
        };
        if decision.refusal().is_none() {
            self.allowed.insert((invocation.clone(), call.arguments()));
        }
        serde_json::to_string(&decision).expect("text")
    }

    /// Announces a call. One that was refused is answered at once, and is no effect.
    async fn announce(
        &mut self,
        recorder: &Recorder,
        call: &GuestCall,
        refusal: Option<String>,
        fuel: u64,
    ) -> Result<CallVerdict, Stopped> {
        let refusal = match refusal {
            None => self.undecided_repeat(recorder, call, fuel).await?,
            refusal => refusal,
        };
        let Some(refusal) = refusal else { return Ok(recorder.ask(call.asked(call.class(), fuel)).await?) };
        let verdict = recorder.ask(call.asked(EffectClass::ReadOnly, fuel)).await?;
        if let CallVerdict::Go(handle) = verdict {
            recorder.answer(handle, refusal.clone()).await?;
            return Ok(CallVerdict::Answered(refusal));
        }
        Ok(verdict)
    }

    /// The answer of a call that the other run made, where the journal left no place for a question in front of it.
    async fn undecided_repeat(
        &self,
        recorder: &Recorder,
        call: &GuestCall,
        fuel: u64,
    ) -> Result<Option<String>, Stopped> {
        let GuestCall::Tool(tool) = call else { return Ok(None) };
        let of = recorder.invocation();
        let is_refused = match recorder.upcoming() {
            Some((name, arguments)) => name == ENTRY && arguments == call.arguments(),
            None => {
                let is_decided = self.allowed.contains(&(of.clone(), call.arguments()));
                call.class() == EffectClass::Acts && !is_decided && self.repeats(of, tool)?
            }
        };
        if !is_refused || self.planted == Some(Planted::QuestionLeftOut) {
            return Ok(None);
        }
        let asked = call.asked(EffectClass::ReadOnly, fuel);
        if let CallVerdict::Go(handle) = recorder.ask(NewCall { name: ENTRY, ..asked }).await? {
            let said = serde_json::to_string(&CallDecision::Rejected(None)).map_err(text)?;
            recorder.answer(handle, said).await?;
        }
        let error = ToolError::Failed("make it again".to_owned());
        Ok(Some(serde_json::to_string(&Err::<ToolOutput, ToolError>(error)).map_err(text)?))
    }

    async fn answer(
        &mut self,
        store: &Arc<dyn Store>,
        recorder: &Recorder,
        call: &GuestCall,
        verdict: CallVerdict,
    ) -> Result<String, Stopped> {
        let of = recorder.invocation();
        let (handle, known) = match verdict {
            CallVerdict::Answered(answer) => return Ok(answer),
            CallVerdict::Go(handle) => (handle, None),
            CallVerdict::Happened(handle, answer) => (handle, Some(answer)),
            CallVerdict::Skipped(handle) => (handle, Some(SKIPPED.to_owned())),
            CallVerdict::Verify(handle, _) => {
                let happened = self.receiver.of(of, handle.entry).map(|received| received.answer.clone());
                (handle, happened.filter(|_| self.planted != Some(Planted::VerifyLeftOut)))
            }
        };
        let answer = match (known, call) {
            (Some(known), _) => known,
            (None, GuestCall::Model(_)) => self.fresh_answer(),
            (None, GuestCall::Tool(tool)) => self.act(recorder, &handle, call, tool).await?,
            (None, GuestCall::Delegate(input)) => return self.delegate(store, recorder, handle, input.clone()).await,
        };
        let key = handle.key.clone();
        recorder.answer(handle, answer.clone()).await?;
        self.receiver.finish(&key);
        Ok(answer)
    }

    async fn act(
        &mut self,
        recorder: &Recorder,
        handle: &EntryHandle,
        call: &GuestCall,
        tool: &ToolCall,
    ) -> Result<String, Stopped> {
        let (of, class) = (recorder.invocation(), call.class());
        if class == EffectClass::Verifiable {
            recorder.prepared(handle, "a note".to_owned()).await?;
        }
        let answer = self.fresh_answer();
        if class == EffectClass::ReadOnly {
            return Ok(answer);
        }
        let is_allowed = self.allowed.contains(&(of.clone(), call.arguments()));
        if class == EffectClass::Acts && !is_allowed && (is_asked(tool) || self.repeats(of, tool)?) {
            let what = tool.summary();
            return Err(Stopped::Wrong(format!("`{of}` does {what} in entry {}, and nobody was asked", handle.entry)));
        }
        self.counts.effects += 1;
        Ok(self.receiver.take(of, handle, class, answer)?)
    }

    async fn delegate(
        &mut self,
        store: &Arc<dyn Store>,
        recorder: &Recorder,
        handle: EntryHandle,
        input: String,
    ) -> Result<String, Stopped> {
        let child = recorder.invocation().child(handle.entry);
        let Performed { finished, recorder: child } = self.perform(store, child, input).await?;
        let answer = finished.result.clone();
        let also = match child {
            Some(child) => child.finish_batch(finished).await?,
            None => Batch::new(),
        };
        recorder.answer_with(handle, answer.clone(), also).await?;
        Ok(answer)
    }

    /// Each effect that a journal has an answer of happened once, and none that a fork shares happened for it.
    fn check_effects(&self) -> Checked<()> {
        if let Some((invocation, entry)) = self.receiver.doubled() {
            return Err(format!("I1: entry {entry} of `{invocation}` happened twice"));
        }
        for run in &self.runs {
            for (invocation, told) in past::journals(&*self.kept, run)? {
                let shared = self.shared.get(&invocation).copied().unwrap_or(0);
                for (number, entry) in told.entries {
                    let is_effect = entry.asked.name == "tools.call" && entry.asked.class != EffectClass::ReadOnly;
                    let Some(answered) = entry.answered.filter(|_| is_effect) else { continue };
                    let times = self.receiver.of(&invocation, number).map_or(0, |received| received.times);
                    let expected = if number <= shared { 0..=0 } else { u32::from(answered.answer != SKIPPED)..=1 };
                    if !expected.contains(&times) {
                        return Err(format!("entry {number} of `{invocation}` happened {times} times"));
                    }
                }
            }
        }
        Ok(())
    }

    fn check_nothing_is_left(&self) -> Checked<()> {
        for table in Table::ALL {
            if let Some((key, _)) = self.kept.rows(table).first() {
                return Err(format!("all runs are deleted, and {table:?} has {}", String::from_utf8_lossy(key)));
            }
        }
        Ok(())
    }
}
