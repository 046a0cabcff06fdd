//! The names of one source, each kept once and numbered.

use super::Name;
use std::collections::HashMap;

/// A name, numbered within one source.
pub(super) type Symbol = u32;

/// The names of a source.
#[derive(Default)]
pub(super) struct Symbols {
    numbers: HashMap<Name, Symbol>,
    names: Vec<Name>,
}

impl Symbols {
    pub(super) fn symbol(&mut self, name: &str) -> Symbol {
        if let Some(symbol) = self.numbers.get(name) {
            return *symbol;
        }
        // A source of a million bytes has fewer names than that.
        let symbol = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let name = Name::from(name);
        self.names.push(name.clone());
        self.numbers.insert(name, symbol);
        symbol
    }

    pub(super) fn name(&self, symbol: Symbol) -> Name {
        self.names[symbol as usize].clone()
    }
}
