//! One bomb of the corpus: what it attacks, how it is loaded, how it must end, and what makes its bytes.
//!
//! Refuses to judge an end: whoever loads the bomb compares.

use crate::bytes;

/// One bomb.
pub struct Bomb {
    /// Unique, in lower case with `-`.
    pub name: &'static str,
    /// What it attacks, in a sentence.
    pub attacks: &'static str,
    /// How it is loaded.
    pub form: BombForm,
    /// How it must end.
    pub end: ExpectedEnd,
    make: Make,
}

/// How a bomb is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BombForm {
    /// As a plugin.
    Plugin,
    /// As a program of WASI, which is run if it loads.
    Program,
    /// As a core module for WASI preview 1, which becomes a program first.
    Module,
}

/// How a bomb must end. All but [`ExpectedEnd::Harmless`] are refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedEnd {
    /// Loading it reaches the cap of this name, before anything is compiled.
    Cap(&'static str),
    /// It is told that it is no component.
    NoComponent,
    /// It is told that its manifest cannot be used.
    Manifest,
    /// It is told that it is no plugin or program of ours, or imports what there is not.
    WrongWorld,
    /// The compiler's process validates it and refuses it with a reason.
    Invalid,
    /// The compiler's process reaches its processor time, its memory or its stack, whichever is first on the machine.
    Exhausted,
    /// It loads, and running it reaches the cap of this name.
    CallCap(&'static str),
    /// It loads, and running it traps.
    Trap,
    /// It loads and runs to its end within all limits: what looks like an attack is none.
    Harmless,
}

#[derive(Clone, Copy)]
pub(crate) enum Make {
    /// Fields of a component, to which the export of a program is added.
    Text(&'static str),
    Bytes(fn() -> Vec<u8>),
}

impl Bomb {
    /// Makes it.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match self.make {
            Make::Text(fields) => bytes::program_of(fields),
            Make::Bytes(make) => make(),
        }
    }
}

/// Name, what it attacks, form, end, and what makes it.
pub(crate) type Row = (&'static str, &'static str, BombForm, ExpectedEnd, Make);

pub(crate) fn of_row(row: &'static Row) -> Bomb {
    let (name, attacks, form, end, make) = *row;
    Bomb { name, attacks, form, end, make }
}
