//! The list of this program's dependencies, in the section and the form that auditors of programs know: JSON, packed
//! with zlib, in `.dep-v0`.
//!
//! Nothing reads it at run time. A build without a list has no such section.

#[cfg(dependency_list)]
const LIST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/dependencies.zlib"));

#[cfg(dependency_list)]
#[used]
// SAFETY: nothing else is in a section of this name, and what is in it is data that no code of the program reads.
#[unsafe(link_section = ".dep-v0")]
static SECTION: [u8; LIST.len()] = {
    let mut bytes = [0; LIST.len()];
    bytes.copy_from_slice(LIST);
    bytes
};

/// Refers to the section, since a linker drops what nothing refers to.
pub(crate) fn keep() {
    #[cfg(dependency_list)]
    let _ = std::hint::black_box(SECTION.as_ptr());
}
