//! For each name, the steps that use it, by position.

use super::{Node, NodeState};
use crate::analysis::{Analysis, Name, Reason};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A step's position in insertion order.
pub(super) type Place = u64;

/// A name, numbered within one graph.
pub(super) type Symbol = u32;

/// What a step does with a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Use {
    /// What it sees depends on the name's value, or absence.
    pub(super) reads: bool,
    /// It may change what later steps see.
    pub(super) changes: bool,
    /// What was before cannot be seen after it.
    pub(super) settles: bool,
}

/// What a step does with names altogether.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    pub(super) names: Vec<(Symbol, Use)>,
    pub(super) reads_all: bool,
    pub(super) changes_all: bool,
}

/// The index of one graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    symbols: HashMap<Name, Symbol>,
    names: Vec<Name>,
    users: Vec<BTreeMap<Place, Use>>,
    uses: HashMap<Place, Uses>,
    /// Every step that uses any name.
    pub(super) steps: BTreeSet<Place>,
    pub(super) reading_all: BTreeSet<Place>,
    pub(super) changing_all: BTreeSet<Place>,
}

impl Index {
    pub(super) fn insert(&mut self, node: &Node) {
        let place = node.position;
        let uses = self.uses_of_node(node);
        for (symbol, one) in &uses.names {
            self.users[*symbol as usize].insert(place, *one);
        }
        if uses.reads_all {
            self.reading_all.insert(place);
        }
        if uses.changes_all {
            self.changing_all.insert(place);
        }
        self.steps.insert(place);
        self.uses.insert(place, uses);
    }

    pub(super) fn remove(&mut self, node: &Node) {
        let place = node.position;
        let uses = self.uses.remove(&place).unwrap_or_default();
        for (symbol, _) in &uses.names {
            self.users[*symbol as usize].remove(&place);
        }
        self.reading_all.remove(&place);
        self.changing_all.remove(&place);
        self.steps.remove(&place);
    }

    /// What the step at a position does; every step that is in the index has an answer.
    pub(super) fn uses(&self, place: Place) -> &Uses {
        static NONE: Uses = Uses { names: Vec::new(), reads_all: false, changes_all: false };
        self.uses.get(&place).unwrap_or(&NONE)
    }

    pub(super) fn users(&self, symbol: Symbol) -> &BTreeMap<Place, Use> {
        &self.users[symbol as usize]
    }

    pub(super) fn symbol(&self, name: &str) -> Option<Symbol> {
        self.symbols.get(name).copied()
    }

    pub(super) fn name(&self, symbol: Symbol) -> &Name {
        &self.names[symbol as usize]
    }

    /// Every name that any step used.
    pub(super) fn symbols(&self) -> impl Iterator<Item = Symbol> + use<> {
        0..u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn reads(&self, place: Place, name: &str) -> bool {
        self.uses(place).reads_all || self.used(place, name).reads
    }

    pub(super) fn changes(&self, place: Place, name: &str) -> bool {
        self.uses(place).changes_all || self.used(place, name).changes
    }

    fn used(&self, place: Place, name: &str) -> Use {
        let users = self.symbol(name).map(|symbol| self.users(symbol));
        users.and_then(|users| users.get(&place)).copied().unwrap_or_default()
    }

    fn uses_of_node(&mut self, node: &Node) -> Uses {
        let parsed = node.state == NodeState::Parsed;
        let analysis: &Analysis = &node.analysis;
        let mut names: BTreeMap<Symbol, Use> = BTreeMap::new();
        if parsed {
            for name in analysis.reads.keys().chain(analysis.builtins.keys()).chain(&node.observed_reads) {
                names.entry(self.intern(name)).or_default().reads = true;
            }
        }
        let changed = analysis.writes.iter().chain(&analysis.deletes).chain(analysis.mutates.keys());
        for name in changed.chain(&node.observed_writes) {
            names.entry(self.intern(name)).or_default().changes = true;
        }
        if parsed && !node.failed {
            for name in &analysis.settles {
                names.entry(self.intern(name)).or_default().settles = true;
            }
        }
        let all = analysis.sees_all.as_ref();
        let reads_all = parsed && all.is_some_and(|reason| !matches!(reason, Reason::StarImport { .. }));
        Uses { names: names.into_iter().collect(), reads_all, changes_all: all.is_some() }
    }

    fn intern(&mut self, name: &Name) -> Symbol {
        if let Some(symbol) = self.symbols.get(name) {
            return *symbol;
        }
        // 100,000 steps of a million bytes each would come near; the last number is shared then, which errs towards
        // more edges.
        let symbol = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.clone());
        self.users.push(BTreeMap::new());
        self.symbols.insert(name.clone(), symbol);
        symbol
    }
}
