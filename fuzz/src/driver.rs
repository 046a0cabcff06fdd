//! Runs a target without libFuzzer: over its kept corpus, and over mutations of it from a seeded generator.
//!
//! It sees no coverage, so it finds again what was found, and little that is new. An input that ends the process is in
//! the folder of findings, where it was put before it was tried.

use crate::Target;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes of an input that is made here of a short one; of a longer one it has at most twice as many.
const INPUT_BYTES_MAX: usize = 8 << 10;

/// Changes that make one input of another.
const CHANGES_MAX: u64 = 8;

/// Pieces of text that readers look for.
const WORDS: [&[u8]; 20] = [
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\n",
    b"\r\n",
    b"data: ",
    b"null",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"\xff",
    b"\0",
    b"\xe2\x80\xae",
    b"../",
    b"'",
    b"$(",
    b"\x1e",
];

/// The kept inputs of a target, in the order of their names.
///
/// # Panics
/// When they cannot be read.
#[must_use]
pub fn kept(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).expect("readable"))).collect()
}

/// Bound of a target's mutations beyond its corpus.
#[derive(Clone, Copy, Debug)]
pub enum FuzzBudget {
    /// Number of mutations.
    Mutations(u64),
    /// Time to mutate for.
    Time(Duration),
}

/// Runs the kept inputs, then mutations of them; answers how many. `findings` is where the input that is tried stands
/// meanwhile.
///
/// # Panics
/// With every finding.
pub fn drive((name, target): Target, bound: FuzzBudget, seed: u64, findings: &Path) -> u64 {
    let kept = kept(name);
    assert!(!kept.is_empty(), "`{name}` has no corpus");
    for (path, bytes) in &kept {
        println!("{}", path.display());
        target(bytes);
    }
    let inputs: Vec<Vec<u8>> = kept.into_iter().map(|(_, bytes)| bytes).collect();
    let tried = findings.join(name);
    let mut random = Random(seed | 1);
    let (started, mut done) = (Instant::now(), 0);
    let goes_on = |done| match bound {
        FuzzBudget::Mutations(count) => done < count,
        FuzzBudget::Time(time) => started.elapsed() < time,
    };
    while goes_on(done) {
        done += 1;
        let input = mutated(&inputs, &mut random);
        fs::write(&tried, &input).expect("a folder of ours");
        target(&input);
    }
    fs::remove_file(&tried).ok();
    done
}

fn mutated(inputs: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = inputs[random.below(inputs.len())].clone();
    let bytes_max = INPUT_BYTES_MAX.max(input.len().saturating_mul(2));
    for _ in 0..=random.next() % CHANGES_MAX {
        let at = random.below(input.len() + 1);
        let end = (at + random.below(32)).min(input.len());
        match random.next() % 8 {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = u8::try_from(random.below(256)).unwrap_or(0),
            2 => drop(input.drain(at..end)),
            3 => {
                let piece = input[at..end].to_vec();
                input.splice(at..at, piece);
            }
            4 => {
                let other = &inputs[random.below(inputs.len())];
                let from = random.below(other.len() + 1);
                let piece = other[from..(from + random.below(256)).min(other.len())].to_vec();
                input.splice(at..end, piece);
            }
            5 => {
                let times = 1 << random.below(10);
                input.splice(at..at, WORDS[random.below(WORDS.len())].repeat(times));
            }
            _ => {
                input.splice(at..at, WORDS[random.below(WORDS.len())].iter().copied());
            }
        }
        input.truncate(bytes_max);
    }
    input
}

/// Marsaglia's xorshift: equal seeds give equal inputs on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count.max(1) as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{INPUT_BYTES_MAX, Random, mutated};

    #[test]
    fn a_long_input_is_changed_as_a_whole_and_stays_bounded() {
        for length in [0, 100, 4 * INPUT_BYTES_MAX] {
            let (inputs, mut random) = ([vec![b'x'; length]], Random(19));
            let lengths: Vec<usize> = (0..100).map(|_| mutated(&inputs, &mut random).len()).collect();
            let (least, most) = (lengths.iter().min(), lengths.iter().max());
            assert!(most <= Some(&INPUT_BYTES_MAX.max(2 * length)), "{length}: {most:?}");
            assert!(length <= INPUT_BYTES_MAX || least > Some(&INPUT_BYTES_MAX), "{length}: {least:?}");
        }
    }
}
