//! Tests of the table of runs.

use super::*;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::project::ProjectStatus;
use longhaul_core::supervisor::InvocationUsage;
use longhaul_records::sums::SpentSum;

/// A run, as a test makes and changes it.
#[derive(Clone)]
pub(crate) struct TestRun {
    pub(crate) number: u64,
    pub(crate) project: String,
    pub(crate) spent: Vec<SpentSum>,
    pub(crate) status: RunStatus,
    pub(crate) wakes_at_ms: Option<u64>,
    pub(crate) is_ask: bool,
    pub(crate) is_archived: bool,
    pub(crate) has_approvals: bool,
    pub(crate) events: u64,
}

impl TestRun {
    pub(crate) fn new(number: u64, project: &str) -> Self {
        Self {
            number,
            project: project.to_owned(),
            spent: Vec::new(),
            status: RunStatus::Completed,
            wakes_at_ms: None,
            is_ask: false,
            is_archived: false,
            has_approvals: false,
            events: 1,
        }
    }

    pub(crate) fn name(&self) -> RunId {
        RunId::from_text(format!("r-{:04}", self.number))
    }

    pub(crate) fn cached(&self) -> CachedRun {
        let sum = self.spent.iter().fold(Usage::default(), |sum, one| sum.plus(one.usage));
        let summary = RunSummary {
            run: self.name(),
            project: self.project.clone(),
            directory: format!("/{}", self.project).into(),
            status: self.status,
            project_status: ProjectStatus::Completed,
            passing: (1, 1),
            // Several have one time.
            created_ms: self.number / 2,
            last_ms: self.number,
            is_ask: self.is_ask,
            active: false,
            wakes_at_ms: self.wakes_at_ms,
            queue_place: None,
            queued_ms: None,
            archived_ms: self.is_archived.then_some(7),
            title: format!("Goal {}", self.number % 10),
            agents: self.spent.iter().map(|one| one.agent.clone()).collect(),
            spent: InvocationUsage { usage: sum, ..InvocationUsage::default() },
            wall_ms: 7,
            budget_microdollars: None,
            forked_from: None,
        };
        let mut sums = RunSums { spent: self.spent.clone(), ..RunSums::default() };
        for number in 1..=self.events {
            let event = Event::RunStarted { project: self.project.clone(), branch: String::new() };
            sums.add(&RunEvent { run: self.name(), number, at_ms: 0, event });
        }
        CachedRun::new(summary, sums, self.has_approvals, true)
    }
}

pub(crate) fn usage(tokens: u32) -> Usage {
    Usage { input_tokens: tokens, cost_microdollars: f64::from(tokens), ..Usage::default() }
}

/// Random numbers from a seed.
struct Random(u64);

impl Random {
    /// A number below `end`: SplitMix64.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        let at = self.below(all.len() as u64);
        all[usize::try_from(at).unwrap()]
    }

    fn run(&mut self, number: u64) -> TestRun {
        let mut run = TestRun::new(number, self.of(&["a", "b", "c", "Long Name"]));
        run.is_ask = self.below(3) == 0;
        run.has_approvals = self.below(3) == 0;
        for _ in 0..self.below(4) {
            run.spent.push(self.spent());
        }
        run
    }

    fn spent(&mut self) -> SpentSum {
        let tokens = u32::try_from(self.below(1_000_000)).unwrap();
        let cost = f64::from(tokens) * self.of(&[0.15, 2.5, 1e9 / 3.0, 0.0]);
        let cost_unknown = self.below(10) == 0;
        SpentSum {
            day: self.below(5),
            model: self.of(&["large", "small", "other"]).to_owned(),
            agent: self.of(&["planner", "agents.code", "agents.ask"]).to_owned(),
            replies: self.below(9) + 1,
            usage: Usage { input_tokens: tokens, cost_microdollars: cost, cost_unknown, ..Usage::default() },
        }
    }

    /// A change of a run: its usage, its status, its project, the archive and back.
    fn change(&mut self, run: &mut TestRun) {
        match self.below(6) {
            0 | 1 => run.spent.push(self.spent()),
            2 => run.spent.clear(),
            3 => {
                use RunStatus::{Completed, Incomplete, New, Parked, Paused, Working};
                run.status = self.of(&[New, Working, Parked, Paused, Completed, Incomplete]);
                run.wakes_at_ms = (run.status == Parked && self.below(2) == 0).then_some(9);
            }
            4 => run.is_archived = !run.is_archived,
            _ => run.project = self.of(&["a", "b"]).to_owned(),
        }
        run.events += self.below(3);
    }
}

/// Everything that a table tells at one moment, but for the counts that stay when a run is removed.
fn told(table: &RunTable, active: &HashSet<RunId>) -> String {
    let names = |runs: &[Arc<CachedRun>]| runs.iter().map(|run| run.summary.run.to_string()).collect::<Vec<_>>();
    let mut statuses: Vec<_> = table.statuses().into_iter().filter(|(_, count)| *count > 0).collect();
    statuses.sort_by_key(|(status, _)| format!("{status:?}"));
    let mut text = format!("{statuses:?} {:?} {:?}\n", table.asked(), table.asking());
    text += &format!("{:?} {:?}\n", names(&table.oldest_first()), names(&table.unfinished()));
    for DirectoryRuns { directory, oldest, newest, count } in table.directories() {
        text += &format!("{} {:?} {count}\n", directory.display(), names(&[oldest, newest]));
    }
    for project in [None, Some("a"), Some("b"), Some("c"), Some("none")] {
        let costs = table.group(project).map(RunGroup::costs);
        text += &format!("{project:?} {costs:?} {:?}\n", table.projects(project).collect::<Vec<_>>());
    }
    for request in requests() {
        let (page, total) = table.page(&request, active);
        text += &format!("{request:?} {total} {:?}\n", names(&page));
    }
    text
}

fn requests() -> Vec<ListRunPage> {
    let all = ListRunPage { limit: 1_000, ..ListRunPage::default() };
    let text = |text: &str| Some(text.to_owned());
    vec![
        all.clone(),
        ListRunPage { archived: true, ..all.clone() },
        ListRunPage { limit: 3, offset: 2, ..all.clone() },
        ListRunPage { limit: 3, offset: 90, archived: true, ..all.clone() },
        ListRunPage { project: text("a"), limit: 5, offset: 1, ..all.clone() },
        ListRunPage { statuses: Some(vec![RunStatus::Working, RunStatus::New]), ..all.clone() },
        ListRunPage { active: Some(true), limit: 2, ..all.clone() },
        ListRunPage { active: Some(true), project: text("b"), ..all.clone() },
        ListRunPage { active: Some(false), ..all.clone() },
        ListRunPage { agent: text("planner"), ..all.clone() },
        ListRunPage { search: text("LONG"), ..all.clone() },
        ListRunPage { search: text("goal 3"), archived: true, ..all.clone() },
        ListRunPage { after_ms: Some(5), before_ms: Some(12), ..all },
    ]
}

/// The page and the number of runs that match, found by looking at each run.
fn found(runs: &[RunSummary], request: &ListRunPage, active: &HashSet<RunId>) -> (Vec<RunId>, usize) {
    let of = request;
    let takes = |run: &RunSummary| {
        let texts = [run.run.as_str(), &run.title, &run.project].map(str::to_lowercase);
        of.project.as_ref().is_none_or(|project| *project == run.project)
            && of.statuses.as_ref().is_none_or(|statuses| statuses.contains(&run.status))
            && of.active.is_none_or(|is_wanted| is_wanted == active.contains(&run.run))
            && of.archived == run.archived_ms.is_some()
            && of.agent.as_ref().is_none_or(|agent| run.agents.contains(agent))
            && of.search.as_ref().is_none_or(|search| texts.iter().any(|text| text.contains(&search.to_lowercase())))
            && of.after_ms.is_none_or(|after_ms| run.created_ms >= after_ms)
            && of.before_ms.is_none_or(|before_ms| run.created_ms < before_ms)
    };
    let mut matching: Vec<&RunSummary> = runs.iter().filter(|run| takes(run)).collect();
    matching.sort_by_key(|run| (run.created_ms, run.run.clone()));
    let page = matching.iter().rev().skip(of.offset).take(of.limit).map(|run| run.run.clone());
    (page.collect(), matching.len())
}

#[test]
fn after_any_changes_a_table_is_as_if_it_had_been_made_anew() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let (mut table, mut runs) = (RunTable::default(), HashMap::<RunId, TestRun>::new());
        for step in 0..300 {
            let number = random.below(40);
            let name = TestRun::new(number, "a").name();
            let now = match (runs.remove(&name), random.below(5)) {
                (Some(_), 0) => None,
                (Some(mut run), _) => {
                    random.change(&mut run);
                    Some(run)
                }
                (None, _) => Some(random.run(number)),
            };
            table.set(&name, now.as_ref().map(TestRun::cached));
            runs.extend(now.map(|run| (name, run)));
            if step % 10 > 0 {
                continue;
            }
            let mut anew = RunTable::default();
            runs.iter().for_each(|(name, run)| anew.set(name, Some(run.cached())));
            let active: HashSet<RunId> = (0..9).map(|number| TestRun::new(number * 5, "a").name()).collect();
            assert_eq!(told(&table, &active), told(&anew, &active), "seed {seed}, step {step}");
            let summaries: Vec<RunSummary> = runs.values().map(|run| run.cached().summary).collect();
            for request in requests() {
                let (page, total) = table.page(&request, &active);
                let page: Vec<RunId> = page.iter().map(|run| run.summary.run.clone()).collect();
                assert_eq!(
                    (page, total),
                    found(&summaries, &request, &active),
                    "seed {seed}, step {step}: {request:?}"
                );
            }
            let tokens = |run: &TestRun| run.spent.iter().map(|one| u64::from(one.usage.input_tokens)).sum::<u64>();
            let tokens = runs.values().map(tokens).sum::<u64>();
            assert_eq!(u64::from(table.all.costs().sum().usage().input_tokens), tokens, "seed {seed}, step {step}");
        }
        runs.keys().for_each(|name| table.set(name, None));
        assert_eq!(told(&table, &HashSet::new()), told(&RunTable::default(), &HashSet::new()), "seed {seed}");
    }
}

#[test]
fn each_event_counts_once_and_stays_counted_when_its_run_is_gone() {
    let (one, two) = (TestRun::new(1, "a"), TestRun::new(2, "a"));
    let mut table = RunTable::default();
    let mut set = |run: &TestRun, events: Option<u64>| {
        let now = events.map(|events| TestRun { events, ..run.clone() }.cached());
        table.set(&run.name(), now);
        let text = table.totals_text();
        text.lines().find_map(|line| line.strip_prefix("longhaul_runs_started_total ")).map(str::to_owned)
    };
    for (run, events, counted) in
        [(&one, Some(2), "2"), (&one, Some(2), "2"), (&one, Some(5), "5"), (&two, Some(1), "6"), (&one, None, "6")]
    {
        assert_eq!(set(run, events).as_deref(), Some(counted), "{} {events:?}", run.number);
    }
    assert_eq!(table.oldest_first().len(), 1, "nothing else is kept of a run that is gone");
}

#[test]
fn a_run_that_has_ended_or_has_no_work_asks_nobody() {
    let mut table = RunTable::default();
    let asked = |number, status| TestRun { status, has_approvals: true, ..TestRun::new(number, "a") };
    let (parked, failed) = (asked(1, RunStatus::Parked), asked(2, RunStatus::Failed));
    for run in [&parked, &failed, &TestRun { status: RunStatus::Parked, ..TestRun::new(3, "a") }] {
        table.set(&run.name(), Some(run.cached()));
    }
    let paused = asked(4, RunStatus::Paused);
    table.set(&paused.name(), Some(CachedRun { has_work: false, ..paused.cached() }));
    assert_eq!(table.asked(), [parked.name(), failed.name(), paused.name()]);
    assert_eq!(table.asking(), [parked.name()]);
}
