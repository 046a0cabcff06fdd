//! What a walk over a source has found so far, name by name, whatever the language.
//!
//! Names are numbered, so that all that is known of one lies in one place and a small source costs few allocations.

use super::flow::{Flow, Status};
use super::names::{ByName, Names};
use super::{Analysis, Name, Reason, Span, lines};
use std::collections::HashMap;

/// A name, numbered within one source.
pub(super) type Symbol = u32;

/// First and last byte of a place.
pub(super) type Range = (u32, u32);

/// Names that are looked for one after another; with more of them, a table is made.
const FEW: usize = 16;

/// The findings of one walk.
#[derive(Default)]
pub(super) struct Facts {
    known: Vec<Known>,
    /// The numbers of names, once there are more than [`FEW`].
    numbers: HashMap<Name, Symbol>,
    pub(super) flow: Flow,
    /// How many bodies that run later the walk is in.
    pub(super) deferred: usize,
    /// What such bodies read, until something has had the chance to call them.
    pending: Vec<Symbol>,
    pub(super) sees_all: Option<Reason>,
    error: Option<(usize, &'static str)>,
}

/// What is known of one name as a variable of the namespace.
struct Known {
    name: Name,
    read: Option<Range>,
    /// Read by a body that runs later.
    later: Option<Range>,
    /// Read, and there without any step. Known at the end.
    builtin: bool,
    written: bool,
    deleted: bool,
    mutated: Option<Reason>,
    /// What is certain of it, where the source binds or unbinds it. Known at the end.
    settled: Option<Status>,
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

    fn add(&mut self, name: Name) -> Symbol {
        let symbol = number(self.known.len());
        if self.known.len() == FEW {
            self.numbers.extend(self.known.iter().map(|one| one.name.clone()).zip(0..));
        }
        if self.known.len() >= FEW {
            self.numbers.insert(name.clone(), symbol);
        }
        let (read, later, mutated, settled) = (None, None, None, None);
        self.known.push(Known { name, read, later, builtin: false, written: false, deleted: false, mutated, settled });
        symbol
    }

    pub(super) fn name(&self, symbol: Symbol) -> &Name {
        &self.known[symbol as usize].name
    }

    /// A variable of the namespace is read.
    pub(super) fn read(&mut self, symbol: Symbol, range: Range) {
        if self.deferred == 0 {
            self.expose(symbol, range);
        } else {
            self.known[symbol as usize].later.get_or_insert(range);
            self.pending.push(symbol);
        }
    }

    /// A variable of the namespace is bound.
    pub(super) fn bind(&mut self, symbol: Symbol) {
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

    /// The value of a variable of the namespace may be changed in place.
    pub(super) fn mutate(&mut self, symbol: Symbol, reason: &Reason) {
        self.known[symbol as usize].mutated.get_or_insert_with(|| reason.clone());
    }

    /// True when the source binds the variable somewhere before.
    pub(super) fn is_written(&self, symbol: Symbol) -> bool {
        self.known[symbol as usize].written
    }

    /// Code that is not seen here may run now, and with it every function that was defined before.
    pub(super) fn may_call(&mut self) {
        if self.deferred > 0 || self.pending.is_empty() {
            return;
        }
        for symbol in std::mem::take(&mut self.pending) {
            if let Some(range) = self.known[symbol as usize].later {
                self.expose(symbol, range);
            }
        }
    }

    /// The walk goes no further here, unless in a body that runs another time.
    pub(super) fn jump(&mut self) {
        if self.deferred == 0 {
            self.flow.stop();
        }
    }

    pub(super) fn refuse(&mut self, at: u32, message: &'static str) {
        self.error.get_or_insert((at as usize, message));
    }

    /// What the source does, at its end; or the place and reason for which it is refused.
    pub(super) fn answer(
        mut self,
        source: &str,
        is_builtin: impl Fn(&str) -> bool,
    ) -> Result<Analysis, (usize, &'static str)> {
        if let Some(error) = self.error {
            return Err(error);
        }
        // A later step may call what was defined here; what is not certain by now is read from what comes before.
        for symbol in 0..self.known.len() {
            if let Some(range) = self.known[symbol].later {
                self.expose(number(symbol), range);
            }
            let known = &mut self.known[symbol];
            known.builtin = known.read.is_some() && is_builtin(&known.name);
            known.settled = self.flow.status((0, number(symbol))).filter(|_| known.written || known.deleted);
        }
        // In their order, names have lost their numbers.
        let mut known = self.known;
        known.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let writes = names(&known, |one| one.written);
        let listed = |wanted: fn(&Known) -> bool| {
            let as_written = known.iter().all(|one| wanted(one) == one.written);
            if as_written { writes.clone() } else { names(&known, wanted) }
        };
        let mut found = Analysis {
            reads: reads(&known, false),
            builtins: reads(&known, true),
            definite_writes: listed(|one| one.settled == Some(Status::Bound)),
            settles: listed(|one| one.settled.is_some()),
            deletes: listed(|one| one.deleted),
            mutates: mutates(&known),
            writes,
            sees_all: self.sees_all,
        };
        lines::locate(source, found.reads.values_mut().chain(found.builtins.values_mut()));
        Ok(found)
    }

    /// A variable is read by code that runs here.
    fn expose(&mut self, symbol: Symbol, range: Range) {
        if self.flow.status((0, symbol)).is_none() {
            self.known[symbol as usize].read.get_or_insert(range);
        }
    }
}

/// Reads of names that are builtins, or are not, with the bytes of their places alone.
fn reads(known: &[Known], builtin: bool) -> ByName<Span> {
    let read = known.iter().filter(|one| one.builtin == builtin && one.read.is_some());
    ByName::sorted(
        read.clone().count(),
        read.filter_map(|one| {
            let (start, end) = one.read?;
            Some((one.name.clone(), Span { start, end, line: 1, column: 1 }))
        }),
    )
}

fn names(known: &[Known], wanted: fn(&Known) -> bool) -> Names {
    Names::sorted(known.iter().filter(|one| wanted(one)).map(|one| &one.name))
}

fn mutates(known: &[Known]) -> ByName<Reason> {
    let mutated = known.iter().filter(|one| one.mutated.is_some());
    ByName::sorted(mutated.clone().count(), mutated.filter_map(|one| Some((one.name.clone(), one.mutated.clone()?))))
}

/// A source of a million bytes has fewer names than fit.
fn number(at: usize) -> Symbol {
    Symbol::try_from(at).unwrap_or(Symbol::MAX)
}
