//! The choice of a server for a run. It reads nothing, and the same servers make the same choice.

use std::collections::BTreeSet;

/// A server that may take a run: the leader itself, or a worker that is alive.
#[derive(Clone, Debug, Default)]
pub struct ServerCandidate {
    /// The id of its data directory.
    pub name: String,
    /// Its labels.
    pub labels: BTreeSet<String>,
    /// The number of runs that it works on at once.
    pub runs_max: u32,
    /// The runs that it has.
    pub runs: u32,
    /// Those of them that are of the same project as the run.
    pub of_project: u32,
    /// True when the trees of the run are in its data directory.
    pub has_trees: bool,
    /// True when it could not take the run a moment ago.
    pub has_refused: bool,
}

impl ServerCandidate {
    fn is_fit(&self, needs: &BTreeSet<String>) -> bool {
        needs.is_subset(&self.labels)
    }

    fn free(&self) -> u32 {
        self.runs_max.saturating_sub(self.runs)
    }
}

/// The result of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerChoice {
    /// The candidate with this place takes the run.
    Takes(usize),
    /// Some have what the run needs, and none has room.
    AllBusy,
    /// None has the labels that the run needs, or those that have them refused it.
    NoneFits,
}

/// Chooses the server of a run: one that has what it needs and has room. The one with its trees goes first, since
/// nothing has to be carried there; then the one with the fewest runs of its project, so that a project with many runs
/// leaves the others room; then the one with most room, and the first by name.
#[must_use]
pub fn choose<'a>(
    needs: &BTreeSet<String>,
    candidates: impl Iterator<Item = &'a ServerCandidate> + Clone,
) -> ServerChoice {
    let fit = || candidates.clone().enumerate().filter(|(_, one)| one.is_fit(needs) && !one.has_refused);
    let best = fit()
        .filter(|(_, one)| one.free() > 0)
        .min_by_key(|(_, one)| (!one.has_trees, one.of_project, std::cmp::Reverse(one.free()), one.name.as_str()));
    match best {
        Some((at, _)) => ServerChoice::Takes(at),
        None if fit().next().is_some() => ServerChoice::AllBusy,
        None => ServerChoice::NoneFits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(of: &[&str]) -> BTreeSet<String> {
        of.iter().map(|label| (*label).to_owned()).collect()
    }

    fn candidate(name: &str, runs: u32, of: &[&str]) -> ServerCandidate {
        ServerCandidate { name: name.to_owned(), labels: labels(of), runs_max: 2, runs, ..ServerCandidate::default() }
    }

    #[test]
    fn a_run_goes_where_its_needs_are_met_and_most_room_is() {
        let all = [candidate("a", 1, &[]), candidate("b", 0, &[]), candidate("c", 0, &["gpu"])];
        assert_eq!(choose(&labels(&[]), all.iter()), ServerChoice::Takes(1));
        assert_eq!(choose(&labels(&["gpu"]), all.iter()), ServerChoice::Takes(2));
        assert_eq!(choose(&labels(&["gpu", "eu"]), all.iter()), ServerChoice::NoneFits);
        assert_eq!(choose(&labels(&["gpu"]), [candidate("c", 2, &["gpu"])].iter()), ServerChoice::AllBusy);
        assert_eq!(choose(&labels(&[]), [].iter()), ServerChoice::NoneFits);
    }

    #[test]
    fn trees_count_before_the_project_and_the_project_before_room() {
        let mut all = [candidate("a", 0, &[]), candidate("b", 1, &[]), candidate("c", 1, &[])];
        all[0].of_project = 1;
        assert_eq!(choose(&labels(&[]), all.iter()), ServerChoice::Takes(1), "the others have none of its project");
        all[2].has_trees = true;
        assert_eq!(choose(&labels(&[]), all.iter()), ServerChoice::Takes(2));
        all[2].runs = 2;
        assert_eq!(choose(&labels(&[]), all.iter()), ServerChoice::Takes(1), "a full one is not waited for");
        for one in &mut all {
            one.has_refused = true;
        }
        assert_eq!(choose(&labels(&[]), all.iter()), ServerChoice::NoneFits);
    }
}
