//! Core modules that attack the validator and the compiler. None is instantiated.

use crate::bomb::Make::Bytes;
use crate::bomb::{BombForm, ExpectedEnd, Row};
use crate::bytes::{list, number, program_with_sections, section};

/// Types: one function without parameters and results.
const KIND: &[u8] = b"\x01\x60\0\0";

const BLOCK: &[u8] = b"\x02\x40";
const LOOP: &[u8] = b"\x03\x40";
const IF: &[u8] = b"\x41\0\x04\x40";
const ELSE: u8 = 0x05;
const END: u8 = 0x0b;
const BR_IF: u8 = 0x0d;
const BR_TABLE: u8 = 0x0e;
const DROP: u8 = 0x1a;
const LOCAL_GET: u8 = 0x20;
const LOCAL_SET: u8 = 0x21;
const I32_CONST: u8 = 0x41;
const I64_CONST: u8 = 0x42;
const I32_ADD: u8 = 0x6a;
const I64_XOR: u8 = 0x85;
const I64_ROTL: u8 = 0x89;
const UNREACHABLE: u8 = 0;
const I32: u8 = 0x7f;
const I64: u8 = 0x7e;

pub(crate) const BOMBS: &[Row] = &[
    (
        "types-by-the-million",
        "One type more than a module may have.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_with_sections(&section(1, &list(1_000_001, &[0x60, 0, 0])))),
    ),
    (
        "types-claimed",
        "A module that says it has four billion types.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_with_sections(&section(1, &number(u32::MAX as usize)))),
    ),
    (
        "parameters-by-the-million",
        "A function type of a million parameters.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| {
            program_with_sections(&section(1, &[b"\x01\x60", list(1_000_000, &[I32]).as_slice(), b"\0"].concat()))
        }),
    ),
    (
        "results-by-the-million",
        "A function type of a million results.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_with_sections(&section(1, &[b"\x01\x60\0", list(1_000_000, &[I32]).as_slice()].concat()))),
    ),
    (
        "locals-past-the-cap",
        "A function of 50 001 locals.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| functions(1, &locals(50_001), &[])),
    ),
    (
        "locals-that-overflow",
        "Two runs of locals whose sum is no number of 32 bits.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| {
            functions(1, &[number(2), locals_run(u32::MAX as usize), locals_run(u32::MAX as usize)].concat(), &[])
        }),
    ),
    (
        "locals-of-thousands-of-functions",
        "Fifty thousand locals in each of five thousand functions.",
        BombForm::Program,
        ExpectedEnd::Exhausted,
        Bytes(|| functions(5_000, &locals(50_000), &[])),
    ),
    (
        "body-of-7-mib",
        "A body that is longer than bodies may be.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| functions(1, &[0], &vec![1; 7_654_321])),
    ),
    (
        "branch-table-of-a-million",
        "A table of a million branches to one place.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| functions(1, &[0], &[BLOCK, &[I32_CONST, 0, BR_TABLE], &list(1_000_000, &[0]), &[0, END]].concat())),
    ),
    (
        "branch-tables-to-everywhere",
        "A thousand tables of branches to a thousand blocks.",
        BombForm::Program,
        ExpectedEnd::Exhausted,
        Bytes(branch_tables),
    ),
    (
        "blocks-nested-by-the-million",
        "A compiler that recurses into a million blocks.",
        BombForm::Program,
        ExpectedEnd::Exhausted,
        Bytes(|| functions(1, &[0], &nested(1_000_000, BLOCK))),
    ),
    (
        "loops-nested-by-the-hundred-thousand",
        "Headers of loops, each a place where all values meet.",
        BombForm::Program,
        ExpectedEnd::Exhausted,
        Bytes(|| functions(1, &[0], &nested(100_000, LOOP))),
    ),
    (
        "conditions-nested-by-the-hundred-thousand",
        "Conditions with both arms within each other.",
        BombForm::Program,
        ExpectedEnd::Exhausted,
        Bytes(conditions),
    ),
    (
        "loops-in-which-every-local-changes",
        "Two thousand loops, at each of which two thousand values meet.",
        BombForm::Program,
        ExpectedEnd::Exhausted,
        Bytes(meeting_values),
    ),
    (
        "values-that-all-live",
        "Two million values that are alive at once.",
        BombForm::Program,
        ExpectedEnd::Exhausted,
        Bytes(|| {
            functions(1, &[0], &[[I32_CONST, 1].repeat(2_000_000), vec![I32_ADD; 1_999_999], vec![DROP]].concat())
        }),
    ),
    (
        "values-that-depend-on-each-other",
        "A function of a million statements that cannot be told apart.",
        BombForm::Program,
        ExpectedEnd::Exhausted,
        Bytes(statements),
    ),
    (
        "vectors-that-all-live",
        "Twenty thousand vectors that are alive at once.",
        BombForm::Program,
        ExpectedEnd::Harmless,
        Bytes(vectors),
    ),
    (
        "constants-of-vectors",
        "A hundred thousand constants of 16 bytes.",
        BombForm::Program,
        ExpectedEnd::Harmless,
        Bytes(|| {
            functions(1, &[0], &(0..100_000_u32).flat_map(|at| [vector(at), vec![DROP]].concat()).collect::<Vec<u8>>())
        }),
    ),
    (
        "arguments-by-the-thousand",
        "Three thousand calls of a thousand arguments each.",
        BombForm::Program,
        ExpectedEnd::Exhausted,
        Bytes(arguments),
    ),
    (
        "nesting-that-is-never-reached",
        "Two hundred thousand blocks behind an end.",
        BombForm::Program,
        ExpectedEnd::Harmless,
        Bytes(|| functions(1, &[0], &[vec![UNREACHABLE], nested(200_000, BLOCK)].concat())),
    ),
    (
        "code-that-is-never-reached",
        "A million instructions whose operands come from nowhere.",
        BombForm::Program,
        ExpectedEnd::Harmless,
        Bytes(|| functions(1, &[0], &[vec![UNREACHABLE], vec![I32_ADD; 1_000_000], vec![DROP]].concat())),
    ),
    (
        "blocks-without-end",
        "Two hundred thousand blocks that are not closed.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| functions(1, &[0], &BLOCK.repeat(200_000))),
    ),
    (
        "data-claimed",
        "A module that says it has four billion segments of data.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_with_sections(&section(11, &number(u32::MAX as usize)))),
    ),
    (
        "data-segments-past-the-cap",
        "A hundred thousand and one segments of data.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_with_sections(&section(11, &list(100_001, &[1, 0])))),
    ),
    (
        "data-at-both-ends-of-a-memory",
        "Two bytes far from each other, of which an image is made.",
        BombForm::Program,
        ExpectedEnd::Harmless,
        Bytes(|| sparse(1, 16 << 20)),
    ),
    (
        "data-at-both-ends-of-many-memories",
        "Two bytes far from each other in each of 600 modules, of which gigabytes of images are made.",
        BombForm::Program,
        ExpectedEnd::Exhausted,
        Bytes(|| sparse(600, 200 << 20)),
    ),
    (
        "elements-claimed",
        "A segment that says it has four billion functions.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_with_sections(&section(9, &[b"\x01\x01\0", number(u32::MAX as usize).as_slice()].concat()))),
    ),
    (
        "globals-past-the-cap",
        "A million globals and one.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_with_sections(&section(6, &list(1_000_001, &[I32, 0, I32_CONST, 0, END])))),
    ),
    (
        "global-of-a-million-terms",
        "A global whose value is a sum of a million terms.",
        BombForm::Program,
        ExpectedEnd::Exhausted,
        Bytes(|| {
            program_with_sections(&section(
                6,
                &[&[1, I32, 0, I32_CONST, 0][..], &[I32_CONST, 1, I32_ADD].repeat(1_000_000), &[END]].concat(),
            ))
        }),
    ),
    (
        "tables-past-the-cap",
        "A hundred and one tables.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_with_sections(&section(4, &list(101, &[0x70, 0, 0])))),
    ),
    (
        "memories-past-the-cap",
        "A hundred and one memories.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_with_sections(&section(5, &list(101, &[0, 0])))),
    ),
    (
        "memory-past-4-gib",
        "A memory of one page more than 4 GiB.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_with_sections(&section(5, b"\x01\0\x81\x80\x04"))),
    ),
    (
        "exports-of-one-name",
        "A hundred thousand exports of the same name.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| exports(|_| "same".to_owned())),
    ),
    (
        "exports-by-the-hundred-thousand",
        "A hundred thousand exports.",
        BombForm::Program,
        ExpectedEnd::Harmless,
        Bytes(|| exports(|at| format!("e{at}"))),
    ),
    (
        "import-name-past-the-cap",
        "An import whose name has 100 001 bytes.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_with_sections(&import(&[b'a'; 100_001]))),
    ),
    (
        "import-name-that-is-no-text",
        "An import whose name is 90 000 bytes that are no UTF-8.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| program_with_sections(&import(&[0xff; 90_000]))),
    ),
    (
        "names-of-megabytes",
        "A name for people of four megabytes.",
        BombForm::Program,
        ExpectedEnd::Harmless,
        Bytes(names),
    ),
    (
        "group-of-a-million-types",
        "A group of a million types and one, which may name each other.",
        BombForm::Program,
        ExpectedEnd::Invalid,
        Bytes(|| {
            program_with_sections(&section(1, &[b"\x01\x4e", list(1_000_001, &[0x60, 0, 0]).as_slice()].concat()))
        }),
    ),
];

/// A module of so many functions with these locals and this body.
fn functions(count: usize, locals: &[u8], body: &[u8]) -> Vec<u8> {
    let body = [locals, body, &[END]].concat();
    let body = [number(body.len()), body].concat();
    program_with_sections(
        &[section(1, KIND), section(3, &list(count, &[0])), section(10, &list(count, &body))].concat(),
    )
}

fn locals(count: usize) -> Vec<u8> {
    [number(1), locals_run(count)].concat()
}

fn locals_run(count: usize) -> Vec<u8> {
    [number(count), vec![I32]].concat()
}

fn nested(depth: usize, start: &[u8]) -> Vec<u8> {
    [start.repeat(depth), vec![END; depth]].concat()
}

fn conditions() -> Vec<u8> {
    const DEPTH: usize = 100_000;
    functions(1, &[0], &[IF.repeat(DEPTH), [ELSE, END].repeat(DEPTH)].concat())
}

fn branch_tables() -> Vec<u8> {
    const BLOCKS: usize = 1_000;
    let targets: Vec<u8> = (0..BLOCKS).flat_map(number).collect();
    let table = [IF, &[I32_CONST, 0, BR_TABLE], &number(BLOCKS), &targets, &[0, END]].concat();
    functions(1, &[0], &[BLOCK.repeat(BLOCKS + 1), table.repeat(1_500), vec![END; BLOCKS + 1]].concat())
}

fn meeting_values() -> Vec<u8> {
    const LOCALS: usize = 2_000;
    const LOOPS: usize = 2_000;
    let change = |at: usize| [&[LOCAL_GET][..], &number(at), &[I32_CONST, 1, I32_ADD, LOCAL_SET], &number(at)].concat();
    let all: Vec<u8> = (0..LOCALS).flat_map(change).collect();
    let again = [I32_CONST, 0, BR_IF, 0, END];
    functions(1, &locals(LOCALS), &[LOOP.repeat(LOOPS), all, again.repeat(LOOPS)].concat())
}

fn statements() -> Vec<u8> {
    const LOCALS: usize = 40;
    let one = |at: usize| {
        [
            &[LOCAL_GET][..],
            &number((at + 13) % LOCALS),
            &[I64_CONST],
            &number(at % 64),
            &[I64_XOR, LOCAL_GET],
            &number((at + 7) % LOCALS),
            &[I64_ROTL, LOCAL_SET],
            &number(at % LOCALS),
        ]
        .concat()
    };
    let body: Vec<u8> = (0..700_000).flat_map(one).collect();
    functions(1, &[&[1][..], &number(LOCALS), &[I64]].concat(), &body)
}

/// A constant of 16 bytes.
fn vector(at: u32) -> Vec<u8> {
    [&[0xfd, 0x0c][..], &u128::from(at).to_le_bytes()].concat()
}

fn vectors() -> Vec<u8> {
    const COUNT: u32 = 20_000;
    let all = (0..COUNT).flat_map(vector).collect();
    // i8x16.add
    let sum = [0xfd, 0x6e].repeat(COUNT as usize - 1);
    functions(1, &[0], &[all, sum, vec![DROP]].concat())
}

fn arguments() -> Vec<u8> {
    const PARAMETERS: usize = 1_000;
    let kinds = [&[2, 0x60][..], &list(PARAMETERS, &[I64]), &[0, 0x60, 0, 0]].concat();
    let call = [[I64_CONST, 1].repeat(PARAMETERS), b"\x10\0".to_vec()].concat();
    let body = [vec![0], call.repeat(3_000), vec![END]].concat();
    let bodies = [&[2, 2, 0, END][..], &number(body.len()), &body].concat();
    program_with_sections(&[section(1, &kinds), section(3, b"\x02\0\x01"), section(10, &bodies)].concat())
}

/// So many modules, each with a memory of so many bytes and one set at either end.
fn sparse(count: usize, bytes: usize) -> Vec<u8> {
    let at = |offset: usize| [&[0, I32_CONST][..], &signed(offset), &[END, 1, b'x']].concat();
    let data = [vec![2], at(0), at(bytes - 1)].concat();
    let memory = [&[1, 0][..], &number(bytes >> 16)].concat();
    let module = section(1, &[crate::bytes::MODULE.as_slice(), &section(5, &memory), &section(11, &data)].concat());
    crate::bytes::program_then(&module.repeat(count))
}

/// A number below 2^31 as constants have it, whose highest bit is a sign.
fn signed(number: usize) -> Vec<u8> {
    let (mut left, mut bytes) = (number, Vec::new());
    loop {
        let low = u8::try_from(left & 0x7f).unwrap_or(0);
        left >>= 7;
        let ends = left == 0 && low & 0x40 == 0;
        bytes.push(if ends { low } else { low | 0x80 });
        if ends {
            return bytes;
        }
    }
}

fn exports(name: impl Fn(usize) -> String) -> Vec<u8> {
    const COUNT: usize = 100_000;
    let one = |at: usize| {
        let name = name(at);
        [&number(name.len()), name.as_bytes(), &[0, 0]].concat()
    };
    let exports = [number(COUNT), (0..COUNT).flat_map(one).collect()].concat();
    let bodies = section(10, &[1, 2, 0, END]);
    program_with_sections(&[section(1, KIND), section(3, &[1, 0]), section(7, &exports), bodies].concat())
}

fn import(name: &[u8]) -> Vec<u8> {
    [section(1, KIND), section(2, &[&[1][..], &number(name.len()), name, b"\x01a\0\0"].concat())].concat()
}

fn names() -> Vec<u8> {
    let name = b"n".repeat(4 << 20);
    let function = [&[1, 0][..], &number(name.len()), &name].concat();
    let names = crate::bytes::custom(b"name", &section(1, &function));
    let sections = [section(1, KIND), section(3, &[1, 0]), section(10, &[1, 2, 0, END]), names];
    program_with_sections(&sections.concat())
}
