//! The findings of a walk over a source so far, name by name.
//!
//! Names are numbered, so that all facts of one are in one place and a small source needs few allocations.

use super::flow::Flow;
use super::flows::{Evidence, Flows};
use super::proof::{Doubt, ValueKind};
use super::{Analysis, NameUse, Reason, Span, VariableName, lines};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, HashMap};

/// A name, numbered within one source.
pub(super) type Symbol = u32;

/// First and last byte of a range.
pub(super) type Range = (u32, u32);

/// The most names that are searched linearly; above it, a table is made.
const FEW: usize = 16;

/// The findings of one walk.
#[derive(Default)]
pub(super) struct Facts {
    /// By number. Locals of the walk are among them, and stay unused.
    known: Vec<NameUse>,
    /// The evidence that values stay as they are, by number.
    evidence: Vec<Evidence>,
    /// Names of the methods that the source defines.
    pub(super) methods: BTreeSet<VariableName>,
    pub(super) flows: Flows,
    /// The numbers of names, once there are more than [`FEW`].
    numbers: HashMap<VariableName, Symbol>,
    pub(super) flow: Flow,
    /// The number of enclosing bodies that run later.
    pub(super) deferred: usize,
    /// The place where such bodies first read each name.
    later: FxHashMap<Symbol, Range>,
    /// Names that such bodies read, until some code may have called them.
    pending: Vec<Symbol>,
    pub(super) sees_all: Option<Reason>,
    error: Option<(usize, &'static str)>,
}

impl Facts {
    /// The number of a name.
    pub(super) fn symbol(&mut self, name: &str) -> Symbol {
        let known = match self.known.len() {
            count if count <= FEW => self.known.iter().position(|one| *one.name == *name).map(number),
            _ => self.numbers.get(name).copied(),
        };
        known.unwrap_or_else(|| self.add(name.into()))
    }

    fn add(&mut self, name: VariableName) -> Symbol {
        let symbol = number(self.known.len());
        if self.known.len() == FEW {
            self.numbers.extend(self.known.iter().map(|one| one.name.clone()).zip(0..));
        }
        if self.known.len() >= FEW {
            self.numbers.insert(name.clone(), symbol);
        }
        self.known.push(NameUse::new(name));
        self.evidence.push(Evidence::default());
        symbol
    }

    pub(super) fn name(&self, symbol: Symbol) -> &VariableName {
        &self.known[symbol as usize].name
    }

    /// A variable of the namespace is read.
    pub(super) fn read(&mut self, symbol: Symbol, range: Range) {
        if self.deferred == 0 {
            self.expose(symbol, range);
        } else {
            self.later.entry(symbol).or_insert(range);
            self.pending.push(symbol);
        }
    }

    /// A variable of the namespace is bound to a value, of this kind if it is known.
    pub(super) fn bind(&mut self, symbol: Symbol, kind: Option<ValueKind>) {
        self.note_kind(symbol, kind);
        self.known[symbol as usize].written = true;
        if self.deferred == 0 {
            self.flow.bind((0, symbol));
        }
    }

    /// A variable of the namespace is unbound.
    pub(super) fn unbind(&mut self, symbol: Symbol) {
        self.known[symbol as usize].deleted = true;
        if self.deferred == 0 {
            self.flow.unbind((0, symbol));
        }
    }

    fn note_kind(&mut self, symbol: Symbol, kind: Option<ValueKind>) {
        let known = &mut self.known[symbol as usize];
        if !known.written {
            known.bound = kind;
        } else if known.bound != kind {
            known.bound = None;
        }
    }

    /// The value of a variable of the namespace may be changed in place.
    pub(super) fn mutate(&mut self, symbol: Symbol, reason: &Reason) {
        self.known[symbol as usize].mutated.get_or_insert_with(|| Box::new(reason.clone()));
    }

    /// The value under a name of any scope, or a part of it, may be changed in place.
    pub(super) fn doubt(&mut self, symbol: Symbol, doubt: &Doubt, within: bool) {
        self.evidence[symbol as usize].add(doubt, within);
    }

    /// True when the source binds the variable somewhere before.
    pub(super) fn is_written(&self, symbol: Symbol) -> bool {
        self.known[symbol as usize].written
    }

    /// Unseen code may run now, and with it every function that was defined before.
    pub(super) fn may_call(&mut self) {
        if self.deferred > 0 || self.pending.is_empty() {
            return;
        }
        for symbol in std::mem::take(&mut self.pending) {
            if let Some(range) = self.later.get(&symbol) {
                self.expose(symbol, *range);
            }
        }
    }

    /// The walk ends here, except in a body that runs later.
    pub(super) fn jump(&mut self) {
        if self.deferred == 0 {
            self.flow.stop();
        }
    }

    pub(super) fn refuse(&mut self, at: u32, message: &'static str) {
        self.error.get_or_insert((at as usize, message));
    }

    /// The result of the analysis; or the place and reason of a refusal.
    pub(super) fn answer(
        mut self,
        source: &str,
        is_builtin: impl Fn(&str) -> bool,
    ) -> Result<Analysis, (usize, &'static str)> {
        if let Some(error) = self.error {
            return Err(error);
        }
        // A later step may call the functions defined here; uncertain names are read from earlier steps.
        for (symbol, range) in std::mem::take(&mut self.later) {
            self.expose(symbol, range);
        }
        self.flows.settle(&mut self.evidence);
        for ((known, symbol), evidence) in self.known.iter_mut().zip(0..).zip(self.evidence) {
            known.builtin = known.read.is_some() && is_builtin(&known.name);
            known.settled = self.flow.status((0, symbol)).filter(|_| known.written || known.deleted);
            known.proof = evidence.proof().filter(|_| known.mutated.is_some());
        }
        let mut known = self.known;
        known.retain(|one| one.read.is_some() || one.is_changed());
        lines::locate(source, known.iter_mut().filter_map(|one| one.read.as_mut()));
        Ok(Analysis::new(known, self.sees_all).with_methods(self.methods))
    }

    /// A variable is read by code that runs here.
    fn expose(&mut self, symbol: Symbol, (start, end): Range) {
        if self.flow.status((0, symbol)).is_none() {
            self.known[symbol as usize].read.get_or_insert(Span { start, end, line: 1, column: 1 });
        }
    }
}

/// A source of a million bytes has fewer names than the number type can hold.
fn number(at: usize) -> Symbol {
    Symbol::try_from(at).unwrap_or(Symbol::MAX)
}
