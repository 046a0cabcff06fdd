//! A corpus of bombs: modules and components that are slow, huge or deep for the parser, validator, compiler, linker or
//! instantiation, each with its expected end.
//!
//! Small ones are text files of `tests/bombs`; large ones are generated, so that the program holds them too. Refuses to
//! load or run anything: that is up to the caller, which alone has the limits.

mod bomb;
mod bytes;
mod calls;
mod components;
mod files;
mod modules;
mod texts;

pub use bomb::{Bomb, BombForm, ExpectedEnd};
pub use bytes::LIMITS;

use bomb::of_row;

/// All bombs.
#[must_use]
pub fn corpus() -> Vec<Bomb> {
    [files::BOMBS, modules::BOMBS, components::BOMBS, calls::BOMBS, texts::BOMBS]
        .into_iter()
        .flatten()
        .map(of_row)
        .collect()
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
