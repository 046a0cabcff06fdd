//! What runs cost, by run, project, model, agent and day. It adds up sums that are kept with each run, and reads no event
//! of a run whose sums are there.

use super::{CachedRun, Service};
use longhaul_api::runs::{CostList, CostSum, ListCosts};
use longhaul_core::fault;
use longhaul_core::model::Usage;
use longhaul_records::sums::{self, SpentSum};
use std::collections::BTreeMap;
use std::sync::PoisonError;

/// Names of one kind; what would be one more counts under [`OTHER`].
const NAMES_MAX: usize = 1_000;

/// The name of everything beyond them.
const OTHER: &str = "other";

/// The most entries of a page, whatever a request says.
const PAGE_MAX: usize = 1_000;

/// Sums by name.
#[derive(Default)]
struct NamedSums(BTreeMap<String, (u64, Usage)>);

impl NamedSums {
    fn add(&mut self, name: &str, count: u64, usage: Usage) {
        let name = if self.0.len() >= NAMES_MAX && !self.0.contains_key(name) { OTHER } else { name };
        let sum = match self.0.get_mut(name) {
            Some(sum) => sum,
            None => self.0.entry(name.to_owned()).or_default(),
        };
        sum.0 = sum.0.saturating_add(count);
        sum.1 = sum.1.plus(usage);
    }

    fn list(self) -> Vec<CostSum> {
        self.0.into_iter().map(|(name, (count, usage))| CostSum { name, count, usage }).collect()
    }
}

impl Service {
    /// A page of costs, and the sums over all runs that match.
    pub(super) fn costs(&self, request: ListCosts) -> fault::Result<CostList> {
        let ListCosts { project, limit, offset } = request;
        let mut runs = self.in_short()?;
        runs.retain(|one| project.as_ref().is_none_or(|project| *project == one.summary.project));
        runs.reverse();
        Ok(list(runs, limit.min(PAGE_MAX), offset))
    }

    /// Stores the sums of runs that were missing or behind.
    pub(super) async fn keep_repaired_sums(&self) {
        let repairs = std::mem::take(&mut *self.repairs.lock().unwrap_or_else(PoisonError::into_inner));
        if !repairs.is_empty() {
            sums::repair(&*self.host.store, repairs).await;
        }
    }
}

fn list(runs: Vec<CachedRun>, limit: usize, offset: usize) -> CostList {
    let (mut sum, total_count) = (Usage::default(), runs.len());
    let [mut by_project, mut by_model, mut by_agent] = std::array::from_fn(|_| NamedSums::default());
    let mut by_day: BTreeMap<u64, (u64, Usage)> = BTreeMap::new();
    for run in &runs {
        sum = sum.plus(run.summary.spent.usage);
        by_project.add(&run.summary.project, 1, run.summary.spent.usage);
        for SpentSum { day, model, agent, replies, usage } in &run.sums.spent {
            by_model.add(model, *replies, *usage);
            by_agent.add(agent, *replies, *usage);
            let of_day = by_day.entry(*day).or_default();
            *of_day = (of_day.0.saturating_add(*replies), of_day.1.plus(*usage));
        }
    }
    let page = runs.into_iter().skip(offset).take(limit);
    CostList {
        runs: page.map(|one| one.summary).collect(),
        total_count,
        sum,
        by_project: by_project.list(),
        by_model: by_model.list(),
        by_agent: by_agent.list(),
        by_day: by_day.into_iter().map(|(day, (count, usage))| CostSum { name: date(day), count, usage }).collect(),
    }
}

/// The date of a day that is counted from 1970-01-01.
fn date(day: u64) -> String {
    let second = i64::try_from(day).ok().and_then(|day| day.checked_mul(86_400));
    let moment = second.and_then(|second| jiff::Timestamp::from_second(second).ok());
    moment.map_or_else(|| format!("day {day}"), |moment| moment.strftime("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_api::runs::RunSummary;
    use longhaul_core::RunId;
    use longhaul_core::project::ProjectStatus;
    use longhaul_core::supervisor::InvocationUsage;
    use longhaul_harness::RunStatus;
    use longhaul_records::sums::RunSums;
    use std::sync::Arc;

    fn usage(tokens: u32) -> Usage {
        Usage { input_tokens: tokens, cost_microdollars: f64::from(tokens), ..Usage::default() }
    }

    fn run(number: u32, project: &str, spent: &[(u64, &str, &str, u32)]) -> CachedRun {
        let all: u32 = spent.iter().map(|(.., tokens)| tokens).sum();
        let spent = spent.iter().map(|(day, model, agent, tokens)| SpentSum {
            day: *day,
            model: (*model).to_owned(),
            agent: (*agent).to_owned(),
            replies: 1,
            usage: usage(*tokens),
        });
        let sums = RunSums { spent: spent.collect(), ..RunSums::default() };
        let summary = RunSummary {
            run: RunId::from_text(format!("r-{number}")),
            project: project.to_owned(),
            directory: "/p".into(),
            status: RunStatus::Completed,
            project_status: ProjectStatus::Completed,
            passing: (1, 1),
            created_ms: number.into(),
            last_ms: number.into(),
            is_ask: false,
            active: false,
            wakes_at_ms: None,
            queue_place: None,
            queued_ms: None,
            title: "a goal".to_owned(),
            agents: Vec::new(),
            spent: InvocationUsage { usage: usage(all), ..InvocationUsage::default() },
            wall_ms: 7,
            budget_microdollars: None,
        };
        CachedRun { summary, sums: Arc::new(sums), has_approvals: false }
    }

    fn named(sums: &[CostSum]) -> Vec<(&str, u64, u32)> {
        sums.iter().map(|one| (one.name.as_str(), one.count, one.usage.input_tokens)).collect()
    }

    #[test]
    fn sums_are_over_all_runs_and_entries_are_those_of_the_page() {
        let runs = vec![
            run(3, "b", &[(20_454, "large", "agents.code", 5)]),
            run(2, "a", &[(20_453, "small", "planner", 1), (20_454, "large", "agents.code", 3)]),
            run(1, "a", &[]),
        ];
        let found = list(runs, 1, 1);
        assert_eq!((found.total_count, found.sum.input_tokens), (3, 9));
        let page: Vec<_> = found.runs.iter().map(|one| (one.run.as_str(), one.spent.usage.input_tokens)).collect();
        assert_eq!(page, [("r-2", 4)]);
        assert_eq!(named(&found.by_project), [("a", 2, 4), ("b", 1, 5)]);
        assert_eq!(named(&found.by_model), [("large", 2, 8), ("small", 1, 1)]);
        assert_eq!(named(&found.by_agent), [("agents.code", 2, 8), ("planner", 1, 1)]);
        assert_eq!(named(&found.by_day), [("2025-12-31", 1, 1), ("2026-01-01", 2, 8)]);
    }

    #[test]
    fn names_without_end_are_summed_up_together() {
        let mut sums = NamedSums::default();
        for number in 0..NAMES_MAX + 50 {
            sums.add(&format!("m{number}"), 1, usage(1));
        }
        let list = sums.list();
        assert_eq!(list.len(), NAMES_MAX + 1);
        let other = list.iter().find(|one| one.name == OTHER).map(|one| one.count);
        assert_eq!(other, Some(50));
    }
}
