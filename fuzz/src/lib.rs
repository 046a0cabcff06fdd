//! The fuzz targets as plain functions: each hands its bytes to one reader as a hostile source would, and asserts the
//! properties of every answer.
//!
//! The programs in `fuzz_targets` are for libFuzzer; [`driver`] runs the same without it, over the kept corpus and
//! mutations of it. Refuses to reach anything outside: what a reader would open or start is not handed to it.

pub mod driver;
mod replies;
mod stored;
mod texts;
mod values;

pub use values::PROGRAM;

/// A target by its name, which is also that of its program and of its folder in `corpus`.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 9] = [
    ("backup", stored::backup),
    ("checkpoint", stored::checkpoint),
    ("config", texts::config),
    ("journal_records", stored::journal_records),
    ("manifest", texts::manifest),
    ("model_replies", replies::model_replies),
    ("plan", texts::plan),
    ("shell_words", texts::shell_words),
    ("wit_values", values::wit_values),
];

/// The target of this name; without a name all of them.
///
/// # Errors
/// There is no such target: a text that says which there are.
pub fn chosen(name: Option<&str>) -> Result<Vec<Target>, String> {
    let Some(name) = name else { return Ok(TARGETS.into()) };
    let found: Vec<Target> = TARGETS.into_iter().filter(|(target, _)| *target == name).collect();
    let all = TARGETS.map(|(target, _)| target).join(", ");
    if found.is_empty() { Err(format!("there is no target `{name}`; choose one of {all}")) } else { Ok(found) }
}

/// Runs one target on these bytes.
///
/// # Panics
/// When there is no such target, and with every finding.
pub fn run(name: &str, bytes: &[u8]) {
    let (_, target) = TARGETS.iter().find(|(target, _)| *target == name).expect("one of the targets");
    target(bytes);
}
