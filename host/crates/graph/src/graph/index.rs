//! For each name, the steps that use it, by position.

use super::places::Places;
use super::{Node, NodeState};
use crate::analysis::{Analysis, Name, Reason};
use std::collections::{BTreeSet, HashMap};

/// A step's position in insertion order.
pub(super) type Place = u64;

/// A name, numbered within one graph.
pub(super) type Symbol = u32;

/// Positions are given one after another, so that they number a list.
pub(super) fn slot(place: Place) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

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

impl Use {
    fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads || other.reads,
            changes: self.changes || other.changes,
            settles: self.settles || other.settles,
        }
    }
}

/// What a step does with names altogether.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    pub(super) names: Vec<(Symbol, Use)>,
    pub(super) reads_all: bool,
    pub(super) changes_all: bool,
}

/// The steps that use one name, by position.
#[derive(Clone, Debug, Default)]
pub(super) struct Users {
    pub(super) readers: Places<()>,
    /// Those that may change it, and whether they settle it.
    pub(super) writers: Places<bool>,
}

/// The index of one graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    symbols: HashMap<Name, Symbol>,
    names: Vec<Name>,
    users: Vec<Users>,
    /// By position; of one that was removed, nothing.
    uses: Vec<Uses>,
    pub(super) reading_all: BTreeSet<Place>,
    pub(super) changing_all: BTreeSet<Place>,
}

impl Users {
    /// The next step that reads or may change the name.
    pub(super) fn after(&self, place: Place) -> Option<Place> {
        let reader = self.readers.range(place + 1..).next().map(|(reader, ())| reader);
        let writer = self.writers.range(place + 1..).next().map(|(writer, _)| writer);
        reader.into_iter().chain(writer).min()
    }
}

impl Index {
    pub(super) fn insert(&mut self, node: &Node) {
        let place = node.position;
        let uses = self.uses_of_node(node);
        for (symbol, one) in &uses.names {
            let users = &mut self.users[*symbol as usize];
            if one.reads {
                users.readers.insert(place, ());
            }
            if one.changes {
                users.writers.insert(place, one.settles);
            }
        }
        if uses.reads_all {
            self.reading_all.insert(place);
        }
        if uses.changes_all {
            self.changing_all.insert(place);
        }
        let at = slot(place);
        if at >= self.uses.len() {
            self.uses.resize_with(at + 1, Uses::default);
        }
        self.uses[at] = uses;
    }

    pub(super) fn remove(&mut self, node: &Node) {
        let place = node.position;
        let uses = self.uses.get_mut(slot(place)).map(std::mem::take).unwrap_or_default();
        for (symbol, _) in &uses.names {
            let users = &mut self.users[*symbol as usize];
            users.readers.remove(place);
            users.writers.remove(place);
        }
        self.reading_all.remove(&place);
        self.changing_all.remove(&place);
    }

    /// What the step at a position does; every step that is in the index has an answer.
    pub(super) fn uses(&self, place: Place) -> &Uses {
        static NONE: Uses = Uses { names: Vec::new(), reads_all: false, changes_all: false };
        self.uses.get(slot(place)).unwrap_or(&NONE)
    }

    pub(super) fn users(&self, symbol: Symbol) -> &Users {
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
        let users = self.symbol(name).map(|symbol| self.users(symbol));
        self.uses(place).reads_all || users.is_some_and(|users| users.readers.contains(place))
    }

    pub(super) fn changes(&self, place: Place, name: &str) -> bool {
        let users = self.symbol(name).map(|symbol| self.users(symbol));
        self.uses(place).changes_all || users.is_some_and(|users| users.writers.contains(place))
    }

    fn uses_of_node(&mut self, node: &Node) -> Uses {
        let parsed = node.state == NodeState::Parsed;
        let analysis: &Analysis = &node.analysis;
        let mut named: Vec<(&Name, Use)> = Vec::new();
        let changed = analysis.writes.iter().chain(&analysis.deletes).chain(analysis.mutates.keys());
        let changes = Use { changes: true, ..Use::default() };
        named.extend(changed.chain(&node.observed_writes).map(|name| (name, changes)));
        if parsed {
            let read = analysis.reads.keys().chain(analysis.builtins.keys()).chain(&node.observed_reads);
            named.extend(read.map(|name| (name, Use { reads: true, ..Use::default() })));
            let settled = analysis.settles.iter().filter(|_| !node.failed);
            named.extend(settled.map(|name| (name, Use { settles: true, ..Use::default() })));
        }
        let all = analysis.sees_all.as_ref();
        let reads_all = parsed && all.is_some_and(|reason| !matches!(reason, Reason::StarImport { .. }));
        Uses { names: self.numbered(named), reads_all, changes_all: all.is_some() }
    }

    /// What is done with each name, by number. Each name is looked for once.
    fn numbered(&mut self, mut named: Vec<(&Name, Use)>) -> Vec<(Symbol, Use)> {
        named.sort_unstable_by_key(|(name, _)| *name);
        let mut numbered: Vec<(Symbol, Use)> = named
            .chunk_by(|(one, _), (next, _)| one == next)
            .map(|same| (self.intern(same[0].0), same.iter().fold(Use::default(), |met, (_, one)| met.and(*one))))
            .collect();
        numbered.sort_unstable_by_key(|(symbol, _)| *symbol);
        numbered
    }

    fn intern(&mut self, name: &Name) -> Symbol {
        if let Some(symbol) = self.symbols.get(name) {
            return *symbol;
        }
        // 100,000 steps of a million bytes each would come near; the last number is shared then, which errs towards
        // more edges.
        let symbol = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.clone());
        self.users.push(Users::default());
        self.symbols.insert(name.clone(), symbol);
        symbol
    }
}
