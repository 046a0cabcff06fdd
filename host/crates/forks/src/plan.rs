//! All of a fork, found by reading: what it shares and inherits, what the other run did after the point, and the record
//! and the state with which it begins.
//!
//! Everything that can be refused is refused here, before anything is made. This module writes nothing; it blocks.

use crate::cuts::{self, JournalCut};
use crate::effects::EffectsAfter;
use crate::points::{self, PointInRun};
use crate::trees::{self, ForkTree};
use longhaul_api::forks::{ForkPlan, ForkRun, SharedWork};
use longhaul_api::points::Point;
use longhaul_config::Config;
use longhaul_core::event::{Event, WorkUsage};
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::store::{Batch, Store};
use longhaul_core::work::FeatureStatus;
use longhaul_core::{Digest, RunId};
use longhaul_harness::state::{Phase, RunStatus};
use longhaul_harness::{Action, EndStatus, Input, Lane, Reaction, RunState, Work, WorkKind, step};
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_plugins::plugin_set;
use longhaul_records::pins::PinnedPlugins;
use longhaul_records::record::{self, RunRecord, StoredRun};
use longhaul_records::repeats::RepeatedEffects;
use longhaul_worktree::{Branch, UserRepository};

/// Names of branches that are tried for a fork without one.
const BRANCHES_MAX: u32 = 10_000;

/// A fork that can be made.
pub struct PlannedFork {
    /// The plan for people.
    pub plan: ForkPlan,
    /// The record of the new run.
    pub record: RunRecord,
    pub(crate) state: RunState,
    /// The events after those of its start.
    pub(crate) events: Vec<Event>,
    pub(crate) cuts: Vec<JournalCut>,
    pub(crate) trees: Vec<ForkTree>,
    /// The effects that need an approval.
    pub(crate) repeats: RepeatedEffects,
    /// Digests of trees that were judged, by feature.
    pub(crate) judged: Vec<(String, Digest)>,
    /// The bytes of plugins that the other run did not pin.
    pub(crate) pinned: Batch,
    pub(crate) edited: Option<String>,
}

/// Plans the fork of a run.
///
/// # Errors
/// When the point is not there, or a fork could not go on from it; when a change is none that a fork can have; when the
/// branch is there already.
pub fn plan(host: &PluginHost, parent: &StoredRun, request: &ForkRun) -> fault::Result<PlannedFork> {
    let (store, run) = (&*host.store, &parent.record.run);
    let mut at = points::resolve(store, run, &request.at)?;
    if matches!(request.at, Point::Time(_)) {
        // A run at work has no answers of a later time yet, and gets them while the fork is made.
        at.at_ms = at.at_ms.min(host.clock.now_ms());
    }
    refuse_point(run, request, &at)?;
    let config = parent.record.config_now()?;
    if parent.record.ask.is_some() && config.changes_trees() {
        bail!(Fault::conflict(format!(
            "run {run} is an ask whose tools may change files, and no commit has them; fork a run of `longhaul run`"
        )));
    }
    let cuts = cuts_of(store, run, &at, request)?;
    let mut pinned = Batch::new();
    let (pins, replaced_plugins) = pins_of(host, &parent.record, &config, request, &at, &mut pinned)?;
    let trees = trees::trees(store, run, &[&config, &parent.record.config()?], &at, &cuts)?;
    let under_way: Vec<String> = lanes(&at.state).map(|lane| lane.work.key()).collect();
    let effects = EffectsAfter::read(store, run, &at, &under_way, &cuts)?;
    let created_ms = host.clock.now_ms();
    let fork = RunId::derive(&parent.record.project, created_ms, &host.fresh_seed());
    let place = BranchPlace::find(store, &parent.record, request, &at.state, &cuts)?;
    let record = RunRecord {
        run: fork.clone(),
        branch: place.branch,
        pins: proved_in(pins, &fork),
        models: request.models.clone().unwrap_or_else(|| parent.record.models.clone()),
        model: request.model.clone().or_else(|| parent.record.model.clone()),
        created_ms,
        ..parent.record.clone()
    };
    // Refuses a model that is not there.
    record.config_now().map_err(|fault| fault.at("model"))?;
    let is_made = |work: &Work| cuts.iter().any(|cut| cut.key == work.key() && cut.made.is_some());
    let (state, events) = guided(at.state.forked(fork, is_made), request.message.as_deref(), created_ms)?;
    let judged = judged_of(store, run, &at.state)?;
    let inherited = inherited(store, run, &at.state)?;
    let (later, effects_left_out) = effects.list();
    let plan = ForkPlan {
        parent: run.clone(),
        at: request.at.to_string(),
        event: at.event,
        at_ms: at.at_ms,
        branch: record.branch.clone(),
        commit: place.commit,
        passing: (
            at.state.count(FeatureStatus::Passing),
            at.state.features.len() - at.state.count(FeatureStatus::Dropped),
        ),
        shared: cuts.iter().map(shared_work).collect(),
        inherited,
        effects: later,
        effects_left_out,
        model: record.model.clone(),
        replaced_plugins,
        notes: notes(&at, request, &cuts, parent.state.status()),
    };
    let repeats = if request.repeat_effects { RepeatedEffects::default() } else { effects.repeats };
    let edited = cuts.iter().find(|cut| cut.is_edited()).map(|cut| format!("{}:{}", cut.of.action(), cut.through));
    Ok(PlannedFork { plan, record, state, events, cuts, trees, repeats, judged, pinned, edited })
}

fn refuse_point(run: &RunId, request: &ForkRun, at: &PointInRun) -> fault::Result<()> {
    let point = &request.at;
    match &at.state.phase {
        Phase::New => bail!(Fault::conflict(format!(
            "run {run} had not begun its work at {point}; start another one with `longhaul run`"
        ))),
        Phase::Ended { status: EndStatus::Abandoned, .. } => bail!(Fault::conflict(format!(
            "run {run} was given up before {point}, and a fork would be, too; name an earlier point"
        ))),
        Phase::Ended { status: EndStatus::Completed, .. } => bail!(Fault::conflict(format!(
            "run {run} was complete at {point}, so a fork would have nothing to do; name an earlier point"
        ))),
        Phase::Running | Phase::Ended { .. } => {}
    }
    let Some((invocation, entry)) = &at.invocation else {
        if request.answer.is_some() {
            bail!("an answer takes the place of one of an entry, and {point} is none; name it as `entry:KEY:N`");
        }
        return Ok(());
    };
    if lanes(&at.state).all(|lane| lane.work.key() != invocation.action()) {
        bail!(Fault::conflict(format!(
            "entry {entry} of `{invocation}` was answered when its work was over; name an earlier entry"
        )));
    }
    Ok(())
}

/// The work at the point, and that of tasks which a person had stopped and a resume continues.
fn lanes(state: &RunState) -> impl Iterator<Item = &Lane> {
    state.lanes.iter().chain(&state.set_aside)
}

/// The cuts of the work at the point, and of the outputs that later work reads: an agent's output is in its journal
/// alone.
fn cuts_of(store: &dyn Store, run: &RunId, at: &PointInRun, request: &ForkRun) -> fault::Result<Vec<JournalCut>> {
    let mut found = Vec::new();
    for lane in lanes(&at.state) {
        let answer = request.answer.as_deref();
        found.extend(cuts::cut(store, run, &lane.work, at, answer, request.repeat_effects)?);
    }
    for key in at.state.features.iter().filter_map(|feature| feature.generated.as_deref()) {
        if found.iter().all(|cut: &JournalCut| cut.key != key) {
            found.extend(cuts::whole(store, run, key, at.at_ms)?);
        }
    }
    Ok(found)
}

fn shared_work(cut: &JournalCut) -> SharedWork {
    SharedWork { key: cut.key.clone(), entries: cut.through, edited: cut.is_edited() }
}

/// The plugins of the fork, and the tables whose plugins differ from those of the other run.
fn pins_of(
    host: &PluginHost,
    parent: &RunRecord,
    config: &Config,
    request: &ForkRun,
    at: &PointInRun,
    pinned: &mut Batch,
) -> fault::Result<(PinnedPlugins, Vec<String>)> {
    let mut pins = parent.pins.clone();
    let mut replaced = Vec::new();
    if request.plugins.is_empty() {
        return Ok((pins, replaced));
    }
    let now = plugin_set::pin(host, config, &parent.directory, pinned)?;
    for name in &request.plugins {
        let tables: Vec<_> = now.iter().filter(|(_, pin)| pin.plugin == *name).collect();
        if tables.is_empty() {
            let known: Vec<&str> = now.values().map(|pin| pin.plugin.as_str()).collect();
            let text = format!("no part of longhaul.toml has the plugin `{name}`; there is: {}", known.join(", "));
            bail!(Fault::invalid(text).at("plugins"));
        }
        for (table, pin) in tables {
            if pins.get(table).is_some_and(|before| before.digest == pin.digest) {
                continue;
            }
            refuse_replaced(host, &parent.run, at, table)?;
            pins.insert(table.clone(), pin.clone());
            replaced.push(table.clone());
        }
    }
    if replaced.is_empty() {
        bail!(
            "the run has these plugins as they are installed now; install the other versions first, or leave them out"
        );
    }
    Ok((pins, replaced))
}

/// The pins with what was proved about invocations of the other run, under the names that these have in the fork: they
/// go on there with the bytes that answered the later part of the shared journal.
fn proved_in(mut pins: PinnedPlugins, fork: &RunId) -> PinnedPlugins {
    for pin in pins.values_mut() {
        let proved = std::mem::take(&mut pin.proved);
        pin.proved = proved.into_iter().map(|(of, past)| (cuts::in_fork(&of, fork), past)).collect();
    }
    pins
}

/// Another component would not make the calls that the journal of its predecessor has.
fn refuse_replaced(host: &PluginHost, run: &RunId, at: &PointInRun, table: &str) -> fault::Result<()> {
    for lane in lanes(&at.state) {
        let of = longhaul_core::InvocationId::of_action(run, &lane.work.key());
        let began = longhaul_journal::began(&*host.store, &of)?.filter(|began| began.at_ms <= at.at_ms);
        if began.is_some_and(|began| began.table == table) {
            bail!(Fault::conflict(format!(
                "`{of}` of [{table}] was under way at this point, and another plugin cannot go on with its journal; name \
                 a point before it began, such as `feature:ID`"
            )));
        }
    }
    Ok(())
}

/// The branch of a fork, and where it begins.
struct BranchPlace {
    branch: String,
    commit: String,
}

impl BranchPlace {
    fn find(
        store: &dyn Store,
        parent: &RunRecord,
        request: &ForkRun,
        state: &RunState,
        cuts: &[JournalCut],
    ) -> fault::Result<Self> {
        if parent.ask.is_some() {
            if request.branch.is_some() {
                parent.expect_branch()?;
            }
            return Ok(Self { branch: String::new(), commit: String::new() });
        }
        let project = UserRepository::open(&parent.directory)?;
        let commits = commits_at(state, cuts);
        let commit = project.newest_of(&parent.base, commits.iter().map(String::as_str))?;
        let heads = record::heads(store)?;
        let is_of_run = |branch: &Branch| heads.iter().any(|head| head.branch == branch.as_str());
        if let Some(name) = &request.branch {
            let branch = named_branch(&project, name, is_of_run).map_err(|fault| fault.at("branch"))?;
            return Ok(Self { branch: branch.as_str().to_owned(), commit });
        }
        for number in 1..=BRANCHES_MAX {
            let branch = Branch::new(&format!("{}-fork-{number}", parent.project))?;
            if !is_of_run(&branch) && project.check_fork_branch(&branch).is_ok() {
                return Ok(Self { branch: branch.as_str().to_owned(), commit });
            }
        }
        bail!(Fault::conflict(format!("there are {BRANCHES_MAX} branches of forks; name one with --branch")))
    }
}

/// The branch that a person named, if no run has it and git has none of that name.
fn named_branch(project: &UserRepository, name: &str, is_of_run: impl Fn(&Branch) -> bool) -> fault::Result<Branch> {
    let branch = Branch::new(name)?;
    if is_of_run(&branch) {
        bail!(Fault::conflict(format!("another run has the branch `{}`; name another one", branch.as_str())));
    }
    project.check_fork_branch(&branch)?;
    Ok(branch)
}

/// The commits that the run had made, or worked from, at the point.
fn commits_at(state: &RunState, cuts: &[JournalCut]) -> Vec<String> {
    let made = cuts.iter().filter_map(|cut| cut.made.as_ref()?.commit.clone());
    let of_features = state.features.iter().filter_map(|feature| feature.commit.clone());
    let of_sessions = state.lanes.iter().filter_map(|lane| lane.session.as_ref()?.base.clone());
    made.chain(of_features).chain(of_sessions).collect()
}

/// The state after a person's guidance, and the events of it.
fn guided(mut state: RunState, message: Option<&str>, at_ms: u64) -> fault::Result<(RunState, Vec<Event>)> {
    let Some(text) = message else { return Ok((state, Vec::new())) };
    let reaction = step(&mut state, at_ms, Input::Steered { feature: None, text: text.to_owned() })?;
    let actions = match reaction {
        Reaction::Acted(actions) => actions,
        Reaction::Ignored(_) => Vec::new(),
    };
    let events =
        actions.into_iter().filter_map(|action| if let Action::Emit(event) = action { Some(event) } else { None });
    Ok((state, events.collect()))
}

/// A commit has to hold exactly what was judged, in the fork as well.
fn judged_of(store: &dyn Store, run: &RunId, state: &RunState) -> fault::Result<Vec<(String, Digest)>> {
    let mut found = Vec::new();
    for lane in &state.lanes {
        if let WorkKind::Commit { feature, .. } = &lane.work.job
            && let Some(digest) = record::judged(store, run, feature)?
        {
            found.push((feature.clone(), digest));
        }
    }
    Ok(found)
}

/// The usage of the other run up to the point, with what that one inherited.
fn inherited(store: &dyn Store, run: &RunId, state: &RunState) -> fault::Result<WorkUsage> {
    let before = record::forked(store, run)?.map(|origin| origin.inherited).unwrap_or_default();
    Ok(before.plus(state.used))
}

fn notes(at: &PointInRun, request: &ForkRun, cuts: &[JournalCut], now: RunStatus) -> Vec<String> {
    let mut notes = Vec::new();
    if matches!(now, RunStatus::Planning | RunStatus::Working) {
        notes.push(
            "the other run is at work; the fork knows nothing of what it does from now on, and may do the same"
                .to_owned(),
        );
    }
    if let Some((named, entry)) = &at.invocation
        && let Some(cut) = cuts.iter().find(|cut| cut.of == *named && cut.through < *entry)
    {
        notes.push(format!(
            "entry {} of `{}` belongs to calls that were not all made by then; the fork begins before it, and a person is \
             asked again",
            cut.through.saturating_add(1),
            named.action()
        ));
    }
    if request.repeat_effects {
        notes.push("calls that the other run made after the point are repeated without a question".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_api::runs::RunRef;
    use longhaul_config::asks::RequestedGrants;
    use longhaul_core::InvocationId;
    use longhaul_core::work::FeatureSpec;
    use longhaul_harness::Feature;
    use longhaul_records::pins::{PinnedPlugin, ProvedPast};
    use std::collections::BTreeMap;

    fn request(at: &str) -> ForkRun {
        ForkRun {
            run: RunRef::Named("r-1".to_owned()),
            at: at.parse::<Point>().expect("a point"),
            answer: None,
            message: None,
            model: None,
            plugins: Vec::new(),
            models: None,
            branch: None,
            repeat_effects: false,
            dry_run: false,
        }
    }

    fn working() -> RunState {
        let spec = FeatureSpec {
            id: "sum".to_owned(),
            title: "Sums".to_owned(),
            instruction: "add".to_owned(),
            category: "functional".to_owned(),
            priority: 5,
            agent: None,
            criteria: Vec::new(),
            checks: Vec::new(),
            depends_on: Vec::new(),
        };
        let job = WorkKind::Discard { feature: "sum".to_owned() };
        let work = Work { name: "f-sum/discard".to_owned(), attempt: 1, job };
        RunState {
            phase: Phase::Running,
            features: vec![Feature::new(spec)],
            lanes: vec![Lane { session: None, work, wait: None }],
            ..RunState::new()
        }
    }

    fn at(state: RunState, invocation: Option<(&str, u32)>) -> PointInRun {
        let invocation = invocation.map(|(name, entry)| (InvocationId::from_text(name), entry));
        PointInRun { event: 7, at_ms: 70, invocation, state }
    }

    #[track_caller]
    fn refused(request: &ForkRun, at: &PointInRun, words: &str) {
        let why = refuse_point(&RunId::from_text("r-1"), request, at).expect_err("refused").to_string();
        assert!(why.contains(words), "{why}");
    }

    #[test]
    fn what_was_proved_when_the_other_run_was_moved_holds_in_the_fork() {
        let pin = |bytes: &[u8]| PinnedPlugin {
            plugin: "coder".to_owned(),
            digest: Digest::of(bytes),
            asks: RequestedGrants::default(),
            world: None,
            packages: String::new(),
            earlier: Vec::new(),
            proved: BTreeMap::new(),
        };
        let (old, new) = (Digest::of(b"old"), Digest::of(b"new"));
        let name = |run: &str| InvocationId::from_text(format!("{run}/f-sum/1/generate"));
        let past = ProvedPast { began: old, goes_on: new, entries: 3 };
        let moved = pin(b"old").moved_to(pin(b"new"), BTreeMap::from([(name("r-1"), past)]));
        let pins = proved_in([("agents.code".to_owned(), moved)].into(), &RunId::from_text("r-2"));
        let moved = &pins["agents.code"];
        assert_eq!(moved.of_invocation(&name("r-2"), Some(old)).digest, new);
        // One that was not proved ends on the bytes that it began with.
        let other = InvocationId::from_text("r-2/f-other/1/generate");
        assert_eq!(moved.of_invocation(&other, Some(old)).digest, old);
    }

    #[test]
    fn a_point_from_which_nothing_could_go_on_is_refused() {
        refused(&request("event:1"), &at(RunState::new(), None), "had not begun its work at event:1");
        for (status, words) in [(EndStatus::Abandoned, "given up before"), (EndStatus::Completed, "nothing to do")] {
            let ended = RunState { phase: Phase::Ended { status, summary: String::new() }, ..working() };
            refused(&request("event:9"), &at(ended, None), words);
        }
        let incomplete = Phase::Ended { status: EndStatus::Incomplete, summary: String::new() };
        let ended = at(RunState { phase: incomplete, ..working() }, None);
        assert!(refuse_point(&RunId::from_text("r-1"), &request("event:9"), &ended).is_ok());
    }

    #[test]
    fn an_answer_needs_an_entry_of_work_that_was_under_way() {
        let answered = |point: &str| ForkRun { answer: Some("1".to_owned()), ..request(point) };
        refused(&answered("feature:sum"), &at(working(), None), "feature:sum is none");
        let named = at(working(), Some(("r-1/f-sum/discard#2", 3)));
        assert!(refuse_point(&RunId::from_text("r-1"), &answered("entry:3"), &named).is_ok());
        refused(&request("entry:plan:3"), &at(working(), Some(("r-1/plan", 3))), "its work was over");
    }

    #[test]
    fn guidance_is_given_to_the_work_at_the_point() {
        let (state, events) = guided(working(), Some("be brief"), 1).expect("guided");
        let told = Event::Steered { feature: Some("sum".to_owned()), text: "be brief".to_owned() };
        assert_eq!(events, [told]);
        assert_eq!(state.counts.edits, 1);
        assert!(guided(working(), None, 1).expect("nothing").1.is_empty());
        let idle = RunState { lanes: Vec::new(), ..working() };
        assert!(guided(idle, Some("be brief"), 1).is_err(), "nobody would read it");
    }

    #[test]
    fn a_branch_begins_behind_all_commits_of_the_point() {
        let mut state = working();
        state.features[0].commit = Some("c1".to_owned());
        state.lanes[0].session = Some(longhaul_harness::state::Session {
            base: Some("c0".to_owned()),
            ..longhaul_harness::state::Session::of("sum")
        });
        assert_eq!(commits_at(&state, &[]), ["c1", "c0"]);
    }
}
