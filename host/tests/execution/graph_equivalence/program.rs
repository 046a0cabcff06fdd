//! Programs of a few steps, made of a seed: functions, classes, aliases, mutation, conditionals, exceptions, and values
//! that cannot be kept.
//!
//! Nothing prints an address, calls itself, or grows without end; everything else that goes wrong is wanted.

use std::fmt::Write as _;

/// Numbers of a seed, by SplitMix64.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap_or(0)
    }

    fn name(&mut self, letter: char) -> String {
        format!("{letter}{}", self.below(3))
    }
}

/// The sources of a program's steps.
pub fn program(random: &mut Random) -> Vec<String> {
    let count = 4 + random.below(6);
    (0..count).map(|at| if at == 0 { beginning(random) } else { step(random) }).collect()
}

/// One step.
pub fn step(random: &mut Random) -> String {
    let mut source = String::new();
    for _ in 0..=random.below(3) {
        statement(random, &mut source, 0);
    }
    if random.below(3) == 0 {
        let shown = match random.below(5) {
            0 => random.name('l'),
            1 => random.name('d'),
            2 => format!("{}.v", random.name('o')),
            3 => format!("{}({})", random.name('f'), number(random)),
            _ => number(random),
        };
        let _ = writeln!(source, "{shown}");
    }
    source
}

/// Most names are bound, so that most steps do not raise.
fn beginning(random: &mut Random) -> String {
    let mut source =
        String::from("i0, i1, i2 = 1, 2, 3\nl0, l1, l2 = [], [4, 5], [6]\nd0, d1, d2 = {}, {'k': [7]}, {}\n");
    for place in 0..3 {
        function(random, &mut source, 0, place);
    }
    class(&mut source, 0, random.below(3));
    source
}

/// An expression that mostly gives a number.
fn number(random: &mut Random) -> String {
    match random.below(11) {
        0..3 => random.below(7).to_string(),
        3..5 => random.name('i'),
        5 => format!("{} + {}", random.name('i'), random.below(5)),
        6 => format!("len({})", random.name('l')),
        7 => format!("{}({})", random.name('f'), random.name('i')),
        8 => format!("{}.v", random.name('o')),
        9 => format!("len({})", random.name('d')),
        _ => format!("{}.get('k', 3)", random.name('d')),
    }
}

fn statement(random: &mut Random, source: &mut String, depth: usize) {
    let pad = "    ".repeat(depth);
    match random.below(34) {
        0..3 => line(source, &pad, &format!("{} = {}", random.name('i'), number(random))),
        3 => line(source, &pad, &format!("{} += {}", random.name('i'), number(random))),
        4..7 => line(source, &pad, &list(random)),
        7..10 => line(source, &pad, &format!("{}.append({})", random.name('l'), number(random))),
        10 => line(source, &pad, &format!("{}[0] = {}", random.name('l'), number(random))),
        11..13 => line(source, &pad, &dict(random)),
        13..15 => {
            let place = random.below(3);
            function(random, source, depth, place);
        }
        15 => line(source, &pad, &format!("{} = {}", random.name('f'), random.name('f'))),
        16 => class(source, depth, random.below(3)),
        17..19 => line(source, &pad, &format!("{} = {}({})", random.name('o'), random.name('C'), number(random))),
        19..21 => line(source, &pad, &format!("{}.up({})", random.name('o'), number(random))),
        21 => line(source, &pad, &format!("{}.more = {}", random.name('o'), random.name('l'))),
        22 => line(source, &pad, &format!("print({}, {})", number(random), random.name('l'))),
        23 => line(source, &pad, &format!("print({}, {})", random.name('d'), random.name('o'))),
        24 => line(source, &pad, &format!("del {}", random.name('i'))),
        25 => line(source, &pad, &failure(random)),
        26 => line(source, &pad, &outside(random)),
        27 => line(source, &pad, &live(random)),
        28 => line(source, &pad, &format!("t{} = ({}, {})", random.below(3), random.name('l'), random.name('i'))),
        29 => line(source, &pad, &format!("t{}[0].append({})", random.below(3), number(random))),
        _ if depth > 1 => line(source, &pad, &format!("{} = {}", random.name('i'), number(random))),
        30 | 31 => {
            line(source, &pad, &format!("if {} > {}:", number(random), random.below(5)));
            statement(random, source, depth + 1);
            line(source, &pad, "else:");
            statement(random, source, depth + 1);
        }
        32 => {
            line(source, &pad, "for q in range(2):");
            statement(random, source, depth + 1);
        }
        _ => {
            line(source, &pad, "try:");
            statement(random, source, depth + 1);
            line(source, &pad, "except Exception as error:");
            line(source, &pad, "    last, i0 = error, len(str(error))");
        }
    }
}

fn line(source: &mut String, pad: &str, text: &str) {
    let _ = writeln!(source, "{pad}{text}");
}

fn list(random: &mut Random) -> String {
    let (name, other) = (random.name('l'), random.name('l'));
    match random.below(7) {
        0 => format!("{name} = [{}]", number(random)),
        1 | 2 => format!("{name} = {other}"),
        3 => format!("{name} = {other}[:]"),
        4 => format!("{name} = [{other}, {}]", number(random)),
        5 => format!("{name} += [{}]", number(random)),
        _ => format!("{name} = [x for x in {other} if x != {}]", random.name('i')),
    }
}

fn dict(random: &mut Random) -> String {
    let (name, other) = (random.name('d'), random.name('d'));
    match random.below(6) {
        0 => format!("{name} = {{'n': {}}}", number(random)),
        1 => format!("{name} = {other}"),
        2 | 3 => format!("{name}['k'] = {}", random.name('l')),
        4 => format!("{name}['k'].append({})", number(random)),
        _ => format!("{name}.pop('k')"),
    }
}

fn function(random: &mut Random, source: &mut String, depth: usize, place: usize) {
    let pad = "    ".repeat(depth);
    let (number, list) = (random.name('i'), random.name('l'));
    let body: &[String] = &match random.below(7) {
        0 | 1 => vec![format!("def f{place}(x): return x + {number}")],
        2 => vec![format!("def f{place}(x):"), format!("    {list}.append(x)"), format!("    return len({list})")],
        3 => vec![
            format!("def f{place}(x):"),
            format!("    global {number}"),
            format!("    {number} = {number} + x"),
            format!("    return {number}"),
        ],
        4 => vec![format!("def f{place}(x, kept=[]):"), "    kept.append(x)".into(), "    return len(kept)".into()],
        5 => vec![
            format!("def make(n, held={list}):"),
            "    def inner(x):".into(),
            "        nonlocal n".into(),
            "        n += 1".into(),
            "        held.append(n)".into(),
            "        return n + x".into(),
            "    return inner".into(),
            format!("f{place} = make({number})"),
        ],
        _ => vec![format!("f{place} = lambda x, y={number}: x * 2 + y + len({list})")],
    };
    body.iter().for_each(|text| line(source, &pad, text));
}

fn class(source: &mut String, depth: usize, place: usize) {
    let pad = "    ".repeat(depth);
    for text in [
        format!("class C{place}:"),
        "    k = 0".into(),
        "    made = []".into(),
        "    def __init__(self, v): self.v = v".into(),
        "    def up(self, n):".into(),
        "        self.v += n".into(),
        "        type(self).k += 1".into(),
        "        self.made.append(self.v)".into(),
        "        return self.v + i1".into(),
        "    def __repr__(self): return f'C({self.v}, {self.k})'".into(),
    ] {
        line(source, &pad, &text);
    }
}

fn failure(random: &mut Random) -> String {
    match random.below(4) {
        0 => format!("raise ValueError({})", random.name('i')),
        1 => format!("1 // ({} - 2)", random.name('i')),
        2 => format!("{}[9]", random.name('l')),
        _ => format!("{}['none']", random.name('d')),
    }
}

/// Effects that the analysis of names cannot see, or that are in no variable.
fn outside(random: &mut Random) -> String {
    match random.below(6) {
        0 => format!("import random; {} = random.randrange(100)", random.name('i')),
        1 => format!("import random; random.seed({})", random.below(4)),
        2 => format!("exec('{} = {} + 1')", random.name('i'), random.name('i')),
        3 => format!("globals()['{}'] = {}", random.name('i'), number(random)),
        4 => format!("{} = globals().get('{}', 5)", random.name('i'), random.name('i')),
        _ => format!("{} = '{}' in globals()", random.name('i'), random.name('o')),
    }
}

fn live(random: &mut Random) -> String {
    match random.below(3) {
        0 => format!("g{} = (x for x in {})", random.below(2), random.name('l')),
        _ => format!("{} = next(g{}, -1)", random.name('i'), random.below(2)),
    }
}
