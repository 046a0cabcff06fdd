//! One bomb of the corpus: its target, its form, its expected end, and the source of its bytes.
//!
//! Refuses to judge an end: the caller that loads the bomb compares.

use crate::bytes;

/// One bomb.
pub struct Bomb {
    /// Unique, in lower case with `-`.
    pub name: &'static str,
    /// Its target, in a sentence.
    pub attacks: &'static str,
    /// The way to load it.
    pub form: BombForm,
    /// The expected end.
    pub end: ExpectedEnd,
    make: Make,
}

/// The way to load a bomb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BombForm {
    /// As a plugin.
    Plugin,
    /// As a program of WASI, which is run if it loads.
    Program,
    /// As a core module for WASI preview 1, which becomes a program first.
    Module,
}

/// The expected end of a bomb. All but [`ExpectedEnd::Harmless`] are refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedEnd {
    /// Loading it reaches the cap of this name, before anything is compiled.
    Cap(&'static str),
    /// It is refused as no component.
    NoComponent,
    /// It is refused for its manifest.
    Manifest,
    /// It is refused as no plugin or program of ours, or for an unknown import.
    WrongWorld,
    /// The compiler's process validates it and refuses it with a reason.
    Invalid,
    /// The compiler's process reaches its processor time, its memory or its stack, whichever is first on the machine.
    Exhausted,
    /// It loads, and running it reaches the cap of this name.
    CallCap(&'static str),
    /// It loads, and running it traps.
    Trap,
    /// It loads and completes within all limits: it only looks like an attack.
    Harmless,
}

#[derive(Clone, Copy)]
pub(crate) enum Make {
    /// Fields of a component, to which the export of a program is added.
    Text(&'static str),
    Bytes(fn() -> Vec<u8>),
}

impl Bomb {
    /// Makes the bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match self.make {
            Make::Text(fields) => bytes::program_of(fields),
            Make::Bytes(make) => make(),
        }
    }
}

/// Name, target, form, end, and the source of its bytes.
pub(crate) type Row = (&'static str, &'static str, BombForm, ExpectedEnd, Make);

pub(crate) fn of_row(row: &'static Row) -> Bomb {
    let (name, attacks, form, end, make) = *row;
    Bomb { name, attacks, form, end, make }
}
