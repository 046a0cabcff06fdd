//! For each name, the steps that use it, by position.

use super::places::Places;
use super::{Node, NodeState};
use crate::analysis::{Analysis, Name, Reason};
use foldhash::fast::RandomState;
use std::collections::{BTreeSet, HashMap};
use std::ops::Deref;

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
    /// By symbol.
    pub(super) names: UsedNames,
    pub(super) reads_all: bool,
    pub(super) changes_all: bool,
}

/// Most steps use one name or two: those are kept without a list.
#[derive(Clone, Debug)]
pub(super) enum UsedNames {
    Few(u8, [(Symbol, Use); USES_FEW]),
    Many(Box<[(Symbol, Use)]>),
}

/// As many as take the room of a list.
const USES_FEW: usize = 2;

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
    symbols: HashMap<Name, Symbol, RandomState>,
    names: Vec<Name>,
    users: Vec<Users>,
    /// By position; of one that was removed, nothing.
    uses: Vec<Uses>,
    /// Where what a step does is put together.
    draft: Vec<(Symbol, Use)>,
    pub(super) reading_all: BTreeSet<Place>,
    pub(super) changing_all: BTreeSet<Place>,
}

impl UsedNames {
    const NONE: Self = Self::Few(0, [(0, Use { reads: false, changes: false, settles: false }); USES_FEW]);
}

impl From<&[(Symbol, Use)]> for UsedNames {
    fn from(names: &[(Symbol, Use)]) -> Self {
        let mut few = [(0, Use::default()); USES_FEW];
        match (u8::try_from(names.len()), few.get_mut(..names.len())) {
            (Ok(count), Some(room)) => {
                room.copy_from_slice(names);
                Self::Few(count, few)
            }
            _ => Self::Many(names.into()),
        }
    }
}

impl Deref for UsedNames {
    type Target = [(Symbol, Use)];

    fn deref(&self) -> &[(Symbol, Use)] {
        match self {
            Self::Few(count, names) => &names[..usize::from(*count)],
            Self::Many(names) => names,
        }
    }
}

impl Default for UsedNames {
    fn default() -> Self {
        Self::NONE
    }
}

impl Users {
    /// The next step that reads or may change the name.
    pub(super) fn after(&self, place: Place) -> Option<Place> {
        let reader = self.readers.after(place).first().map(|(reader, ())| *reader);
        let writer = self.writers.after(place).first().map(|(writer, _)| *writer);
        reader.into_iter().chain(writer).min()
    }
}

impl Uses {
    /// What is done with one name.
    pub(super) fn of(&self, symbol: Symbol) -> Use {
        let at = self.names.binary_search_by_key(&symbol, |(one, _)| *one);
        at.map_or_else(|_| Use::default(), |at| self.names[at].1)
    }
}

impl Index {
    /// Makes room for steps to come, each with a name of its own.
    pub(super) fn reserve(&mut self, steps: usize) {
        self.symbols.reserve(steps);
        self.names.reserve(steps);
        self.users.reserve(steps);
        self.uses.reserve(steps);
    }

    pub(super) fn insert(&mut self, node: &Node) {
        let place = node.position;
        let uses = self.uses_of_node(node);
        for (symbol, one) in &*uses.names {
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
        for (symbol, _) in &*uses.names {
            let users = &mut self.users[*symbol as usize];
            users.readers.remove(place);
            users.writers.remove(place);
        }
        self.reading_all.remove(&place);
        self.changing_all.remove(&place);
    }

    /// What the step at a position does; every step that is in the index has an answer.
    pub(super) fn uses(&self, place: Place) -> &Uses {
        static NONE: Uses = Uses { names: UsedNames::NONE, reads_all: false, changes_all: false };
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
        let uses = self.uses(place);
        uses.reads_all || self.symbol(name).is_some_and(|symbol| uses.of(symbol).reads)
    }

    pub(super) fn changes(&self, place: Place, name: &str) -> bool {
        let uses = self.uses(place);
        uses.changes_all || self.symbol(name).is_some_and(|symbol| uses.of(symbol).changes)
    }

    fn uses_of_node(&mut self, node: &Node) -> Uses {
        let parsed = node.state == NodeState::Parsed;
        let analysis: &Analysis = &node.analysis;
        let mut names = std::mem::take(&mut self.draft);
        // What is settled is written or deleted.
        let certain = |name: &Name| parsed && !node.failed && analysis.settles.contains(name);
        for name in analysis.writes.iter().chain(&analysis.deletes) {
            names.push((self.intern(name), Use { changes: true, settles: certain(name), reads: false }));
        }
        for name in analysis.mutates.keys().chain(&node.observed_writes) {
            names.push((self.intern(name), Use { changes: true, ..Use::default() }));
        }
        let read = analysis.reads.keys().chain(analysis.builtins.keys()).chain(&node.observed_reads);
        for name in read.filter(|_| parsed) {
            names.push((self.intern(name), Use { reads: true, ..Use::default() }));
        }
        names.sort_unstable_by_key(|(symbol, _)| *symbol);
        names.dedup_by(|(next, more), (one, met)| {
            let same = next == one;
            if same {
                *met = met.and(*more);
            }
            same
        });
        let all = analysis.sees_all.as_ref();
        let reads_all = parsed && all.is_some_and(|reason| !matches!(reason, Reason::StarImport { .. }));
        let uses = Uses { names: names.as_slice().into(), reads_all, changes_all: all.is_some() };
        names.clear();
        self.draft = names;
        uses
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
