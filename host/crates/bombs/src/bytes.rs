//! The parts that bombs are made of: numbers, sections, and the harmless program that carries a bomb.

/// The limits that the corpus is made for: each bomb exceeds one of them by far, or none.
#[derive(Clone, Copy, Debug)]
pub struct CorpusLimits {
    /// Bytes of a file.
    pub bytes_max: u64,
    /// Functions in all modules.
    pub functions_max: u64,
    /// Components and modules within each other.
    pub nesting_max: u64,
    /// Imports, and exports, at the outermost level.
    pub interfaces_max: u64,
    /// Memory of the compiler's process, in bytes.
    pub memory_bytes_max: u64,
    /// Processor time of the compiler's process, in milliseconds.
    pub cpu_ms_max: u64,
    /// Fuel of a call.
    pub fuel_max: u64,
    /// Linear memory of a call, in bytes.
    pub call_memory_bytes_max: u64,
    /// Elements of tables of a call.
    pub table_elements_max: u64,
    /// Instances of a call.
    pub instances_max: u32,
    /// Handles of a call.
    pub handles_max: u32,
}

/// Small limits, so that all bombs together take seconds.
pub const LIMITS: CorpusLimits = CorpusLimits {
    bytes_max: 8 << 20,
    functions_max: 10_000,
    nesting_max: 20,
    interfaces_max: 1_000,
    memory_bytes_max: 1 << 30,
    cpu_ms_max: 1_000,
    fuel_max: 20_000_000,
    call_memory_bytes_max: 16 << 20,
    table_elements_max: 10_000,
    instances_max: 20,
    handles_max: 100,
};

/// The first bytes of a component.
pub(crate) const COMPONENT: &[u8; 8] = b"\0asm\x0d\0\x01\0";

/// The first bytes of a core module.
pub(crate) const MODULE: &[u8; 8] = b"\0asm\x01\0\0\0";

/// A number in WebAssembly's encoding: seven bits a byte, the lowest first.
pub(crate) fn number(mut left: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(left & 0x7f).unwrap_or(0);
        left >>= 7;
        bytes.push(if left == 0 { low } else { low | 0x80 });
        if left == 0 {
            return bytes;
        }
    }
}

/// A section with its length.
pub(crate) fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id][..], &number(content.len()), content].concat()
}

/// A custom section.
pub(crate) fn custom(name: &[u8], data: &[u8]) -> Vec<u8> {
    section(0, &[&number(name.len()), name, data].concat())
}

/// A list of the same item: its count, then the items.
pub(crate) fn list(count: usize, item: &[u8]) -> Vec<u8> {
    [number(count), item.repeat(count)].concat()
}

/// A harmless program with these fields of a component in front of its own.
pub(crate) fn program_of(fields: &str) -> Vec<u8> {
    let text = format!(
        r#"(component {fields}
            (core module $program (func (export "run") (result i32) (i32.const 0)))
            (core instance $program (instantiate $program))
            (func $run (result (result)) (canon lift (core func $program "run")))
            (instance $api (export "run" (func $run)))
            (export "wasi:cli/run@0.2.12" (instance $api)))"#
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("a bomb of this crate is no text: {error}"))
}

/// A harmless program with these sections behind its own.
pub(crate) fn program_then(sections: &[u8]) -> Vec<u8> {
    [program_of("").as_slice(), sections].concat()
}

/// A harmless program that has this module as well.
pub(crate) fn program_with(module: &[u8]) -> Vec<u8> {
    program_then(&section(1, module))
}

/// A harmless program that has a module of these sections as well.
pub(crate) fn program_with_sections(sections: &[u8]) -> Vec<u8> {
    program_with(&[MODULE, sections].concat())
}

/// A component that claims to be a tool and has no function.
pub(crate) fn plugin_then(sections: &[u8]) -> Vec<u8> {
    let text = r#"(component (instance $none) (export "longhaul:plugin/tool@0.1.0" (instance $none)))"#;
    let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("a bomb of this crate is no text: {error}"));
    [bytes.as_slice(), sections].concat()
}
