//! The proofs of one source that it leaves values as they are, and the paths on which values go from name to name.
//!
//! A use that leaves `by_name` alone may still give a part of it away: `row = by_name.get(name)`, and `row.append(1)`
//! changes what `by_name` holds. So each binding is noted with the names whose values may be part of the new one,
//! whatever scope they are in, and a proof about a name needs those about every name that its value may have come to.
//! Names are compared and not variables, which errs towards more dependencies.

use super::proof::{Doubt, Obligation};
use rustc_hash::FxHashSet;

/// A name, numbered within one source.
type Symbol = u32;

/// Most noted paths of one source, and most steps of all searches over them. With more, nothing is proved.
const FLOWS_MAX: usize = 10_000;
const STEPS_MAX: usize = 100_000;

/// Most obligations for one name; with more, nothing is proved of it.
const OBLIGATIONS_MAX: usize = 16;

/// The evidence about one name.
#[derive(Clone, Default)]
pub(super) struct Evidence {
    case: Case,
    /// A use that no obligation excuses may change the value itself.
    changed: bool,
    /// Such a use may change a part of the value.
    changed_within: bool,
}

/// The state of the proof that the uses of a name leave its value as it is.
#[derive(Clone, Default)]
enum Case {
    /// No use may change it.
    #[default]
    Untouched,
    /// No use changes it if all of these hold.
    Open(Vec<Obligation>),
    /// Only the kind of the value can show that.
    ByKind,
    /// A use changes it.
    Lost,
}

/// A path of values from one name to another.
struct Flow {
    from: Symbol,
    to: Symbol,
    /// The target holds the value as a part, and is not the value or a part of it itself.
    holds: bool,
    /// There is no path if this holds.
    unless: Option<Obligation>,
}

/// All paths of one source.
#[derive(Default)]
pub(super) struct Flows {
    flows: Vec<Flow>,
    gave_up: bool,
}

/// A search for the names that one value may have come to.
struct Search<'a> {
    flows: &'a Flows,
    known: &'a [Evidence],
    needs: Vec<Obligation>,
    /// The value may be changed whatever holds.
    is_lost: bool,
}

impl Evidence {
    /// Takes in a use that may change the value, or a part of it.
    pub(super) fn add(&mut self, doubt: &Doubt, within: bool) {
        match doubt {
            Doubt::None => self.case = Case::Lost,
            Doubt::Kind if matches!(self.case, Case::Lost) => {}
            Doubt::Kind => self.case = Case::ByKind,
            Doubt::Unless(more) => match self.case {
                Case::Untouched => self.case = Case::Open(vec![more.clone()]),
                Case::Open(_) => self.oblige(more.clone()),
                Case::ByKind | Case::Lost => {}
            },
        }
        if !matches!(doubt, Doubt::Unless(_)) {
            self.changed |= !within;
            self.changed_within |= within;
        }
    }

    /// The obligations of the proof, none of them if only the kind of the value can prove it; or no proof.
    pub(super) fn proof(self) -> Option<Box<[Obligation]>> {
        match self.case {
            Case::Untouched | Case::Lost => None,
            Case::ByKind => Some(Box::default()),
            Case::Open(needs) => Some(needs.into()),
        }
    }

    fn oblige(&mut self, more: Obligation) {
        let Case::Open(needs) = &mut self.case else { return };
        if !needs.contains(&more) {
            needs.push(more);
        }
        if needs.len() > OBLIGATIONS_MAX {
            self.case = Case::ByKind;
            (self.changed, self.changed_within) = (true, true);
        }
    }

    fn is_changed(&self, flow: &Flow) -> bool {
        self.changed_within || (self.changed && !flow.holds)
    }
}

impl Flows {
    pub(super) fn add(&mut self, from: Symbol, to: Symbol, holds: bool, unless: Option<Obligation>) {
        if self.flows.len() >= FLOWS_MAX {
            self.gave_up = true;
        } else if from != to {
            self.flows.push(Flow { from, to, holds, unless });
        }
    }

    /// The source is too much to follow.
    pub(super) fn give_up(&mut self) {
        self.gave_up = true;
    }

    /// Adds to each proof what it needs of the names that the value may have come to.
    pub(super) fn settle(mut self, known: &mut [Evidence]) {
        self.flows.sort_by_key(|flow| flow.from);
        let (mut steps, all) = (0, &*known);
        let needs = |(symbol, one): (Symbol, &Evidence)| match one.case {
            Case::Open(_) if !self.gave_up && steps <= STEPS_MAX => self.needs(symbol, all, &mut steps),
            _ => None,
        };
        let found: Vec<Option<Vec<Obligation>>> = (0..).zip(all).map(needs).collect();
        for (one, needs) in known.iter_mut().zip(found) {
            match needs {
                Some(needs) => needs.into_iter().for_each(|more| one.oblige(more)),
                None if matches!(one.case, Case::Open(_)) => one.case = Case::ByKind,
                None => {}
            }
        }
    }

    /// The obligations about everything that a name's value may have come to; none if nothing excuses it.
    fn needs(&self, from: Symbol, known: &[Evidence], steps: &mut usize) -> Option<Vec<Obligation>> {
        let mut search = Search { flows: self, known, needs: Vec::new(), is_lost: false };
        let mut seen = FxHashSet::from_iter([from]);
        let guarded = search.follow(vec![from], &mut seen, None, steps);
        for flow in guarded {
            let mut beyond = seen.clone();
            search.visit(flow, flow.unless.as_ref());
            if beyond.insert(flow.to) {
                search.follow(vec![flow.to], &mut beyond, flow.unless.as_ref(), steps);
            }
        }
        (!search.is_lost && *steps <= STEPS_MAX).then_some(search.needs)
    }

    fn out(&self, from: Symbol) -> impl Iterator<Item = &Flow> {
        let first = self.flows.partition_point(|flow| flow.from < from);
        self.flows[first..].iter().take_while(move |flow| flow.from == from)
    }
}

impl<'a> Search<'a> {
    /// Follows the paths from these names. Without a guard, those that have one are answered and not followed.
    fn follow(
        &mut self,
        mut open: Vec<Symbol>,
        seen: &mut FxHashSet<Symbol>,
        guard: Option<&Obligation>,
        steps: &mut usize,
    ) -> Vec<&'a Flow> {
        let (flows, mut guarded) = (self.flows, Vec::new());
        while let Some(at) = open.pop() {
            for flow in flows.out(at) {
                *steps += 1;
                if *steps > STEPS_MAX {
                    return Vec::new();
                }
                if guard.is_none() && flow.unless.is_some() {
                    guarded.push(flow);
                    continue;
                }
                self.visit(flow, guard);
                if seen.insert(flow.to) {
                    open.push(flow.to);
                }
            }
        }
        guarded
    }

    /// The value may have come to the end of this path, unless the guard holds.
    fn visit(&mut self, flow: &Flow, guard: Option<&Obligation>) {
        let Some(target) = self.known.get(flow.to as usize) else { return };
        if target.is_changed(flow) {
            match guard {
                Some(guard) => self.needs.push(guard.clone()),
                None => self.is_lost = true,
            }
        }
        if let Case::Open(needs) = &target.case {
            let guarded = |need: &Obligation| match guard {
                Some(guard) => Obligation::Any([guard.clone(), need.clone()].into()),
                None => need.clone(),
            };
            self.needs.extend(needs.iter().map(guarded));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(name: &str) -> Obligation {
        Obligation::Method(name.into())
    }

    /// The proof about the first of three names, which needs `looks`.
    fn proof(flows: &[(u32, u32, bool, Option<&str>)], uses: &[(usize, Doubt, bool)]) -> Option<Vec<Obligation>> {
        let mut known = vec![Evidence::default(); 3];
        known[0].add(&Doubt::Unless(method("looks")), false);
        uses.iter().for_each(|(at, doubt, within)| known[*at].add(doubt, *within));
        let mut all = Flows::default();
        flows.iter().for_each(|(from, to, holds, unless)| all.add(*from, *to, *holds, unless.map(method)));
        all.settle(&mut known);
        known.swap_remove(0).proof().map(|needs| needs.to_vec())
    }

    #[test]
    fn a_value_that_comes_to_where_it_is_changed_is_not_proved() {
        let path = [(0, 1, false, None), (1, 2, false, None)];
        assert_eq!(proof(&path, &[]), Some(vec![method("looks")]));
        assert_eq!(proof(&path, &[(2, Doubt::Kind, false)]), Some(vec![]));
        assert_eq!(
            proof(&path, &[(2, Doubt::Unless(method("more")), false)]),
            Some(vec![method("looks"), method("more")])
        );
        assert_eq!(proof(&[], &[(0, Doubt::None, false), (0, Doubt::Unless(method("more")), false)]), None);
    }

    #[test]
    fn a_container_may_be_changed_as_long_as_its_parts_are_not() {
        let path = [(0, 1, true, None)];
        assert_eq!(proof(&path, &[(1, Doubt::Kind, false)]), Some(vec![method("looks")]));
        assert_eq!(proof(&path, &[(1, Doubt::Kind, true)]), Some(vec![]));
        assert_eq!(proof(&[(0, 1, true, None), (1, 2, false, None)], &[(2, Doubt::Kind, false)]), Some(vec![]));
    }

    #[test]
    fn a_path_with_a_condition_counts_only_if_that_is_not_met() {
        let path = [(0, 1, false, Some("new")), (1, 2, false, None)];
        assert_eq!(proof(&path, &[]), Some(vec![method("looks")]));
        assert_eq!(proof(&path, &[(2, Doubt::Kind, false)]), Some(vec![method("looks"), method("new")]));
        let either = Obligation::Any([method("new"), method("more")].into());
        assert_eq!(proof(&path, &[(1, Doubt::Unless(method("more")), false)]), Some(vec![method("looks"), either]));
    }

    #[test]
    fn a_source_with_too_many_paths_proves_nothing() {
        let many: Vec<_> = (1..=10_001).map(|to| (0, to, false, None)).collect();
        assert_eq!(proof(&many[..10_000], &[]), Some(vec![method("looks")]));
        assert_eq!(proof(&many, &[]), Some(vec![]));
    }
}
