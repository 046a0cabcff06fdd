//! Attacks on a reader that does not compile the file: false lengths, levels, counts, names, custom sections.

use crate::bomb::Make::Bytes;
use crate::bomb::{BombForm, ExpectedEnd, Row};
use crate::bytes::{
    COMPONENT, LIMITS, MODULE, custom, list, number, plugin_then, program_of, program_then, program_with_sections,
    section,
};

/// More than the corpus' cap on functions, in one module.
const FUNCTIONS: usize = 1_000;

pub(crate) const BOMBS: &[Row] = &[
    ("empty-file", "A file without a byte.", BombForm::Plugin, ExpectedEnd::NoComponent, Bytes(Vec::new)),
    (
        "megabytes-of-text",
        "A text where WebAssembly is expected.",
        BombForm::Plugin,
        ExpectedEnd::NoComponent,
        Bytes(|| b"#!/bin/sh\n".repeat(400_000)),
    ),
    (
        "core-module-as-plugin",
        "A module in the place of a component.",
        BombForm::Plugin,
        ExpectedEnd::NoComponent,
        Bytes(|| MODULE.to_vec()),
    ),
    (
        "longer-than-allowed",
        "A file that is one byte too long.",
        BombForm::Program,
        ExpectedEnd::Cap("bytes_max"),
        Bytes(longer_than_allowed),
    ),
    ("cut-off", "The end of a section is missing.", BombForm::Program, ExpectedEnd::NoComponent, Bytes(cut_off)),
    (
        "section-claims-4-gib",
        "A section that says it has 4 GiB.",
        BombForm::Program,
        ExpectedEnd::NoComponent,
        Bytes(|| header(&[&[0], &number(u32::MAX as usize)])),
    ),
    (
        "name-claims-4-gib",
        "A custom section whose name says it has 4 GiB.",
        BombForm::Program,
        ExpectedEnd::NoComponent,
        Bytes(|| header(&[&section(0, &number(u32::MAX as usize))])),
    ),
    (
        "number-of-six-bytes",
        "A length that is written longer than numbers are.",
        BombForm::Program,
        ExpectedEnd::NoComponent,
        Bytes(|| header(&[b"\0\x80\x80\x80\x80\x80\0"])),
    ),
    (
        "number-without-end",
        "A length of a million bytes.",
        BombForm::Program,
        ExpectedEnd::NoComponent,
        Bytes(|| header(&[&[0], &[0x80; 1_000_000]])),
    ),
    (
        "custom-sections-by-the-hundred-thousand",
        "Two hundred thousand empty custom sections.",
        BombForm::Program,
        ExpectedEnd::Harmless,
        Bytes(|| program_then(&custom(b"a", b"").repeat(200_000))),
    ),
    (
        "components-nested-past-the-cap",
        "One component more within each other than allowed.",
        BombForm::Program,
        ExpectedEnd::Cap("nesting_max"),
        Bytes(|| nested(20)),
    ),
    (
        "components-nested-by-the-hundred-thousand",
        "A parser that recurses into 100 000 components.",
        BombForm::Program,
        ExpectedEnd::Cap("nesting_max"),
        Bytes(|| nested(100_000)),
    ),
    (
        "functions-claimed",
        "A module that says it has four billion functions.",
        BombForm::Program,
        ExpectedEnd::Cap("functions_max"),
        Bytes(|| program_with_sections(&section(3, &number(u32::MAX as usize)))),
    ),
    (
        "functions-spread-over-modules",
        "Many modules, each with few functions.",
        BombForm::Program,
        ExpectedEnd::Cap("functions_max"),
        Bytes(functions_spread),
    ),
    (
        "bodies-claimed",
        "A module that says it has four billion bodies of functions.",
        BombForm::Program,
        ExpectedEnd::NoComponent,
        Bytes(|| program_with_sections(&section(10, &number(u32::MAX as usize)))),
    ),
    (
        "bodies-without-functions",
        "Millions of empty bodies that no function has.",
        BombForm::Program,
        ExpectedEnd::NoComponent,
        Bytes(|| program_with_sections(&section(10, &list(2_000_000, &[2, 0, 0x0b])))),
    ),
    (
        "imports-by-the-million",
        "A million imports, each a name in the memory of the host.",
        BombForm::Program,
        ExpectedEnd::Cap("interfaces_max"),
        Bytes(|| program_then(&section(10, &list(1_000_000, &[0, 1, b'a', 1, 0])))),
    ),
    (
        "imports-claimed",
        "A component that says it has four billion imports.",
        BombForm::Program,
        ExpectedEnd::NoComponent,
        Bytes(|| program_then(&section(10, &number(u32::MAX as usize)))),
    ),
    (
        "exports-by-the-million",
        "A million exports, each a name in the memory of the host.",
        BombForm::Plugin,
        ExpectedEnd::Cap("interfaces_max"),
        Bytes(|| plugin_then(&section(11, &list(1_000_000, &[0, 1, b'a', 5, 0, 0])))),
    ),
    (
        "export-name-of-kilobytes",
        "The name of an export in what people are told.",
        BombForm::Plugin,
        ExpectedEnd::WrongWorld,
        Bytes(|| header(&[&export(&b"longhaul:plugin/x".repeat(5_000))])),
    ),
    (
        "export-name-with-escapes",
        "The name of an export that paints the terminal.",
        BombForm::Plugin,
        ExpectedEnd::WrongWorld,
        Bytes(|| header(&[&export("longhaul:plugin/\u{1b}[2J\u{202e}@0.1.0".as_bytes())])),
    ),
    (
        "export-name-that-is-no-text",
        "The name of an export of bytes that are no UTF-8.",
        BombForm::Plugin,
        ExpectedEnd::NoComponent,
        Bytes(|| header(&[&export(&[0xff; 90_000])])),
    ),
    (
        "manifest-twice",
        "Two manifests, of which readers may take different ones.",
        BombForm::Plugin,
        ExpectedEnd::Manifest,
        Bytes(|| plugin_then(&custom(MANIFEST, b"").repeat(2))),
    ),
    (
        "manifest-of-megabytes",
        "A manifest that is parsed as a whole.",
        BombForm::Plugin,
        ExpectedEnd::Manifest,
        Bytes(|| plugin_then(&custom(MANIFEST, &b"a = 1\n".repeat(500_000)))),
    ),
    (
        "manifest-that-is-no-text",
        "A manifest of bytes that are no UTF-8.",
        BombForm::Plugin,
        ExpectedEnd::Manifest,
        Bytes(|| plugin_then(&custom(MANIFEST, &[0xff; 1_000]))),
    ),
    (
        "producers-by-the-hundred-thousand",
        "Words about tools, each kept by its name.",
        BombForm::Program,
        ExpectedEnd::Harmless,
        Bytes(producers),
    ),
    (
        "two-roles",
        "A component that says it is a tool and a memory.",
        BombForm::Plugin,
        ExpectedEnd::WrongWorld,
        Bytes(|| plugin_then(&export(b"longhaul:plugin/memory@0.1.0"))),
    ),
    (
        "role-without-functions",
        "A tool that has none of a tool's functions.",
        BombForm::Plugin,
        ExpectedEnd::WrongWorld,
        Bytes(|| plugin_then(&[])),
    ),
    (
        "no-program",
        "A component that exports nothing.",
        BombForm::Program,
        ExpectedEnd::WrongWorld,
        Bytes(|| COMPONENT.to_vec()),
    ),
    (
        "adapter-types-nested-by-the-hundred-thousand",
        "The adapter for WASI preview 1, which reads types by recursion.",
        BombForm::Module,
        ExpectedEnd::NoComponent,
        Bytes(|| module_with_deep_types(100_000)),
    ),
    (
        "adapter-types-nested-by-the-thousand",
        "The same with as many as are let through, for the stack that they are read on.",
        BombForm::Module,
        ExpectedEnd::NoComponent,
        Bytes(|| module_with_deep_types(9_000)),
    ),
    (
        "adapter-imports-by-the-hundred-thousand",
        "The adapter for WASI preview 1, which looks up every import.",
        BombForm::Module,
        ExpectedEnd::NoComponent,
        Bytes(module_with_imports),
    ),
];

/// The section of a plugin's manifest.
const MANIFEST: &[u8] = b"longhaul:manifest";

fn header(parts: &[&[u8]]) -> Vec<u8> {
    [&COMPONENT[..], &parts.concat()].concat()
}

/// The export of an instance under a name. The instance need not exist: the name is read first.
fn export(name: &[u8]) -> Vec<u8> {
    section(11, &[&[1, 0][..], &number(name.len()), name, &[5, 0, 0]].concat())
}

fn longer_than_allowed() -> Vec<u8> {
    let mut bytes = program_of("");
    let max = usize::try_from(LIMITS.bytes_max).unwrap_or(usize::MAX);
    bytes.extend(custom(b"long", &vec![0; max - bytes.len()]));
    bytes.truncate(max + 1);
    bytes
}

fn cut_off() -> Vec<u8> {
    let mut bytes = program_then(&custom(b"long", &[0; 1_000]));
    bytes.truncate(bytes.len() - 500);
    bytes
}

/// A program with components within each other. Made from the innermost out, so that none is copied again.
fn nested(depth: usize) -> Vec<u8> {
    let (mut length, mut heads) = (COMPONENT.len(), Vec::new());
    for _ in 1..depth {
        let head = [&COMPONENT[..], &[4], &number(length)].concat();
        length += head.len();
        heads.push(head);
    }
    heads.reverse();
    let inner = [heads.concat().as_slice(), COMPONENT].concat();
    program_then(&section(4, &inner))
}

fn functions_spread() -> Vec<u8> {
    let kind = section(1, b"\x01\x60\0\0");
    let functions = section(3, &list(FUNCTIONS, &[0]));
    let bodies = section(10, &list(FUNCTIONS, &[2, 0, 0x0b]));
    let module = section(1, &[&MODULE[..], &kind, &functions, &bodies].concat());
    program_then(&module.repeat(50))
}

/// Five thousand sections with 40 fields each, every one of another name.
fn producers() -> Vec<u8> {
    let sections = (0..5_000_usize).map(|at| {
        let fields = (0..40_usize).map(|field| {
            let name = format!("{at}-{field}");
            [&number(name.len()), name.as_bytes(), &[1, 1, b'a', 1, b'b']].concat()
        });
        custom(b"producers", &[number(40), fields.collect::<Vec<_>>().concat()].concat())
    });
    program_then(&sections.collect::<Vec<_>>().concat())
}

/// A module whose custom section holds types of instances within each other.
fn module_with_deep_types(depth: usize) -> Vec<u8> {
    let types = [b"\x01".as_slice(), &b"\x42\x01\x01".repeat(depth), b"\x42\0"].concat();
    let inner = header(&[&section(7, &types)]);
    [MODULE.as_slice(), &custom(b"component-type:deep", &inner)].concat()
}

fn module_with_imports() -> Vec<u8> {
    let kind = section(1, b"\x01\x60\0\0");
    let names = (0..100_000_usize).map(|at| {
        let name = format!("f{at}");
        [&[3][..], b"env", &number(name.len()), name.as_bytes(), &[0, 0]].concat()
    });
    let imports = section(2, &[number(100_000), names.collect::<Vec<_>>().concat()].concat());
    [&MODULE[..], &kind, &imports].concat()
}
