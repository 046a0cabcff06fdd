//! A corpus of bombs: modules and components that are slow, huge or deep for whoever parses, validates, compiles, links
//! or instantiates them, each with the end that it must come to.
//!
//! Small ones are text files of `tests/bombs`; large ones are generated, so that the program carries them too. Refuses to
//! load or run anything: that is up to the caller, who alone has the limits.

mod bytes;
mod calls;
mod components;
mod files;
mod modules;
mod texts;

pub use bytes::LIMITS;

/// One bomb.
pub struct Bomb {
    /// Unique, in lower case with `-`.
    pub name: &'static str,
    /// What it attacks, in a sentence.
    pub attacks: &'static str,
    /// How it is loaded.
    pub form: Form,
    /// How it must end.
    pub end: End,
    make: Make,
}

/// How a bomb is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As a plugin.
    Plugin,
    /// As a program of WASI, which is run if it loads.
    Program,
    /// As a core module for WASI preview 1, which becomes a program first.
    Module,
}

/// How a bomb must end. All but [`End::Harmless`] are refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
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
enum Make {
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

/// All of them.
#[must_use]
pub fn corpus() -> Vec<Bomb> {
    [files::BOMBS, modules::BOMBS, components::BOMBS, calls::BOMBS, texts::BOMBS]
        .into_iter()
        .flatten()
        .map(of_row)
        .collect()
}

/// Name, what it attacks, form, end, and what makes it.
type Row = (&'static str, &'static str, Form, End, Make);

fn of_row(row: &'static Row) -> Bomb {
    let (name, attacks, form, end, make) = *row;
    Bomb { name, attacks, form, end, make }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_bomb_has_a_name_of_its_own_a_sentence_and_bytes() {
        let corpus = corpus();
        assert!(corpus.len() >= 60, "{}", corpus.len());
        let names: BTreeSet<&str> = corpus.iter().map(|bomb| bomb.name).collect();
        assert_eq!(names.len(), corpus.len(), "two of one name");
        for bomb in &corpus {
            let is_name =
                bomb.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
            assert!(is_name && bomb.attacks.ends_with('.'), "{}", bomb.name);
        }
    }

    #[test]
    fn every_text_of_the_corpus_is_in_it() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/bombs");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let found: BTreeSet<String> = files.filter_map(|name| name.strip_suffix(".wat").map(str::to_owned)).collect();
        let listed: BTreeSet<String> = texts::BOMBS.iter().map(|row| row.0.to_owned()).collect();
        assert_eq!(found, listed);
    }
}
