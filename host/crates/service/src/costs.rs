//! The costs of runs, by run, project, model, agent and day. The sums are kept with the table of runs; no runs are
//! added up here.

use super::Service;
use super::cost_sums::listed;
use super::run_table::{CachedRun, RunGroup, RunTable};
use longhaul_api::runs::{CostList, ListCosts};
use longhaul_core::fault;
use std::sync::Arc;

/// The most entries of a page, whatever a request says.
const PAGE_MAX: usize = 1_000;

impl Service {
    /// A page of costs, and the sums over all runs that match.
    pub(super) fn costs(&self, request: &ListCosts) -> fault::Result<CostList> {
        let ((list, page), activity) = self.of_runs(|table| (list(table, request), self.activity()))?;
        Ok(CostList { runs: activity.summaries(&page), ..list })
    }
}

/// The sums over all runs that match, and the runs of the page, of which the sums have none.
fn list(table: &RunTable, request: &ListCosts) -> (CostList, Vec<Arc<CachedRun>>) {
    let ListCosts { project, limit, offset } = request;
    let (project, none) = (project.as_deref(), RunGroup::default());
    let group = table.group(project).unwrap_or(&none);
    let costs = group.costs();
    let list = CostList {
        runs: Vec::new(),
        total_count: group.len(),
        sum: costs.sum().usage(),
        by_project: listed(table.projects(project)),
        by_model: costs.by_model(),
        by_agent: costs.by_agent(),
        by_day: costs.by_day(),
    };
    let page = group.newest_first().skip(*offset).take((*limit).min(PAGE_MAX)).cloned();
    (list, page.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_table::tests::{TestRun, usage};
    use longhaul_api::runs::CostSum;
    use longhaul_records::index::IndexedRuns as _;
    use longhaul_records::sums::SpentSum;

    /// Day, model, agent and tokens.
    type Reply<'a> = (u64, &'a str, &'a str, u32);

    fn table(runs: &[(u64, &str, &[Reply<'_>])]) -> RunTable {
        let mut table = RunTable::default();
        for (number, project, spent) in runs {
            let spent = spent.iter().map(|(day, model, agent, tokens)| SpentSum {
                day: *day,
                model: (*model).to_owned(),
                agent: (*agent).to_owned(),
                replies: 1,
                usage: usage(*tokens),
            });
            let run = TestRun { spent: spent.collect(), ..TestRun::new(*number, project) };
            table.set(&run.name(), Some(run.cached()));
        }
        table
    }

    fn named(sums: &[CostSum]) -> Vec<(&str, u64, u32)> {
        sums.iter().map(|one| (one.name.as_str(), one.count, one.usage.input_tokens)).collect()
    }

    #[test]
    fn sums_are_over_all_runs_and_entries_are_those_of_the_page() {
        let runs = table(&[
            (3, "b", &[(20_454, "large", "agents.code", 5)]),
            (2, "a", &[(20_453, "small", "planner", 1), (20_454, "large", "agents.code", 3)]),
            (1, "a", &[]),
        ]);
        let (found, page) = list(&runs, &ListCosts { project: None, limit: 1, offset: 1 });
        assert_eq!((found.total_count, found.sum.input_tokens), (3, 9));
        let page: Vec<_> = page.iter().map(|one| (one.summary.run.as_str(), one.summary.spent.usage)).collect();
        assert_eq!(page, [("r-0002", usage(4))]);
        assert_eq!(named(&found.by_project), [("a", 2, 4), ("b", 1, 5)]);
        assert_eq!(named(&found.by_model), [("large", 2, 8), ("small", 1, 1)]);
        assert_eq!(named(&found.by_agent), [("agents.code", 2, 8), ("planner", 1, 1)]);
        assert_eq!(named(&found.by_day), [("2025-12-31", 1, 1), ("2026-01-01", 2, 8)]);
    }

    #[test]
    fn sums_of_a_project_have_its_runs_alone() {
        let runs = table(&[(2, "b", &[(1, "large", "planner", 5)]), (1, "a", &[(1, "small", "planner", 1)])]);
        let of = |project: &str| list(&runs, &ListCosts { project: Some(project.into()), limit: 10, offset: 0 });
        let (found, page) = of("a");
        assert_eq!((found.total_count, found.sum, page.len()), (1, usage(1), 1));
        assert_eq!((named(&found.by_project), named(&found.by_model)), (vec![("a", 1, 1)], vec![("small", 1, 1)]));
        let (found, page) = of("c");
        assert_eq!((found.total_count, found.sum.tokens(), page.len(), found.by_project.len()), (0, 0, 0, 0));
    }
}
