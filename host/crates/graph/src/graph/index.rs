//! For each name, the steps that use it, by position.

use super::node::{Node, NodeState};
use super::places::{Place, Places, slot};
use super::proofs::Proofs;
use crate::analysis::{Reason, VariableName};
use foldhash::fast::RandomState;
use hashbrown::hash_table::{Entry, HashTable};
use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::ops::Deref;

/// A name, numbered within one graph.
pub(super) type Symbol = u32;

/// A step's use of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Use {
    /// The step's behaviour depends on the name's value, or absence.
    pub(super) reads: bool,
    /// It may change what later steps see.
    pub(super) changes: bool,
    /// Later steps cannot see the earlier value.
    pub(super) settles: bool,
    /// Its source alone does not show that it leaves the value as it is, and the steps together do.
    pub(super) is_left: bool,
}

impl Use {
    fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads || other.reads,
            changes: self.changes || other.changes,
            settles: self.settles || other.settles,
            is_left: self.is_left || other.is_left,
        }
    }
}

/// A step's uses of all names.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    /// By symbol.
    pub(super) names: UsedNames,
    pub(super) reads_all: bool,
    pub(super) changes_all: bool,
}

/// Most steps use one name or two: those need no list.
#[derive(Clone, Debug)]
pub(super) enum UsedNames {
    Few(u8, [(Symbol, Use); USES_FEW]),
    Many(Box<[(Symbol, Use)]>),
}

/// As many uses as fit in the size of a list.
const USES_FEW: usize = 2;

/// The steps that use one name, by position.
#[derive(Clone, Debug, Default)]
pub(super) struct Users {
    pub(super) readers: Places<()>,
    /// The steps that may change it, and whether they settle it.
    pub(super) writers: Places<bool>,
}

/// The index of one graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// The numbers of names, by name.
    symbols: HashTable<Symbol>,
    hasher: RandomState,
    names: Vec<VariableName>,
    users: Vec<Users>,
    /// By position; empty for a removed step.
    uses: Vec<Uses>,
    /// A buffer for the uses of one step.
    draft: Vec<(Symbol, Use)>,
    proofs: Proofs,
    pub(super) reading_all: BTreeSet<Place>,
    pub(super) changing_all: BTreeSet<Place>,
}

impl UsedNames {
    const NONE: Self =
        Self::Few(0, [(0, Use { reads: false, changes: false, settles: false, is_left: false }); USES_FEW]);
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
        match (self.readers.next(place), self.writers.next(place)) {
            (Some(reader), Some(writer)) => Some(reader.min(writer)),
            (reader, writer) => reader.or(writer),
        }
    }
}

impl Uses {
    /// The use of one name.
    pub(super) fn of(&self, symbol: Symbol) -> Use {
        let at = self.names.binary_search_by_key(&symbol, |(one, _)| *one);
        at.map_or_else(|_| Use::default(), |at| self.names[at].1)
    }
}

impl Index {
    /// Reserves capacity for further steps, each with a name of its own.
    pub(super) fn reserve(&mut self, steps: usize) {
        self.symbols.reserve(steps, |symbol| self.hasher.hash_one(&*self.names[*symbol as usize]));
        self.names.reserve(steps);
        self.users.reserve(steps);
        self.uses.reserve(steps);
        self.proofs.reserve(steps);
    }

    /// Takes in a step. Then [`Index::take_due`] has the steps whose proofs it may have changed.
    pub(super) fn insert(&mut self, node: &Node) {
        self.proofs.bind(node);
        self.insert_uses(node);
    }

    fn insert_uses(&mut self, node: &Node) {
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
        if at == self.uses.len() {
            self.uses.push(uses);
        } else {
            self.uses[at] = uses;
        }
    }

    /// Takes out a step, as [`Index::insert`] takes it in.
    pub(super) fn remove(&mut self, node: &Node) {
        self.remove_uses(node.position);
        self.proofs.unbind(node);
    }

    /// Looks at the proofs of a step again.
    pub(super) fn prove_again(&mut self, node: &Node) {
        self.remove_uses(node.position);
        self.insert_uses(node);
    }

    /// The steps whose proofs are to be looked at again.
    pub(super) fn take_due(&mut self) -> BTreeSet<Place> {
        self.proofs.take_due()
    }

    /// Proves nothing any more, or proves again.
    pub(super) fn turn_proofs_off(&mut self, is_off: bool) {
        self.proofs.turn_off(is_off);
    }

    fn remove_uses(&mut self, place: Place) {
        self.proofs.forget(place);
        let uses = self.uses.get_mut(slot(place)).map(std::mem::take).unwrap_or_default();
        for (symbol, _) in &*uses.names {
            let users = &mut self.users[*symbol as usize];
            users.readers.remove(place);
            users.writers.remove(place);
        }
        self.reading_all.remove(&place);
        self.changing_all.remove(&place);
    }

    /// The uses of the step at a position; every step in the index has some.
    pub(super) fn uses(&self, place: Place) -> &Uses {
        static NONE: Uses = Uses { names: UsedNames::NONE, reads_all: false, changes_all: false };
        self.uses.get(slot(place)).unwrap_or(&NONE)
    }

    pub(super) fn users(&self, symbol: Symbol) -> &Users {
        &self.users[symbol as usize]
    }

    pub(super) fn symbol(&self, name: &str) -> Option<Symbol> {
        let is_it = |symbol: &Symbol| *self.names[*symbol as usize] == *name;
        self.symbols.find(self.hasher.hash_one(name), is_it).copied()
    }

    pub(super) fn name(&self, symbol: Symbol) -> &VariableName {
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
        let mut names = std::mem::take(&mut self.draft);
        for one in node.analysis.names() {
            let reads = parsed && one.read.is_some();
            let settles = parsed && !node.observed().failed && one.settled.is_some() && (one.written || one.deleted);
            let is_left = !one.is_changed_for_certain() && self.proofs.is_left(node.position, one);
            let changes = one.is_changed() && !is_left;
            names.push((self.intern(&one.name), Use { reads, changes, settles, is_left }));
        }
        for name in &node.observed().writes {
            names.push((self.intern(name), Use { changes: true, ..Use::default() }));
        }
        for name in node.observed().reads.iter().filter(|_| parsed) {
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
        let all = node.analysis.sees_all();
        let reads_all = parsed && all.is_some_and(|reason| !matches!(reason, Reason::StarImport { .. }));
        let uses = Uses { names: names.as_slice().into(), reads_all, changes_all: all.is_some() };
        names.clear();
        self.draft = names;
        uses
    }

    fn intern(&mut self, name: &VariableName) -> Symbol {
        let Self { symbols, hasher, names, .. } = self;
        let hash = |symbol: &Symbol| hasher.hash_one(&*names[*symbol as usize]);
        let free = match symbols.entry(hasher.hash_one(&**name), |symbol| names[*symbol as usize] == *name, hash) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(free) => free,
        };
        // 100,000 steps of a million bytes each would come near; then further names share the last number, which errs
        // towards more edges.
        let symbol = u32::try_from(names.len()).unwrap_or(u32::MAX);
        free.insert(symbol);
        names.push(name.clone());
        self.users.push(Users::default());
        symbol
    }
}
