//! Validates the interpreter's answer about a step.
//!
//! The step shares the interpreter with the code that wrote this answer, so the step can choose every number and
//! length: texts are cut, lists are capped, blobs are named by their content, and an invalid answer marks the step as
//! stopped.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longhaul_core::Digest;
use longhaul_core::json::has_more_values;
use longhaul_core::text::truncate;
use longhaul_graph::VariableName;
use longhaul_graph::step::{
    Delta, Exception, FILES_MAX, Frame, KeptValues, NAMES_MAX, StepEnd, StepReport, ValueGroup,
};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Values and keys in the JSON of an answer, which are in memory before any list is capped. A step of 10,000 variables
/// that need a hundred others each has half as many.
const ANSWER_VALUES_MAX: usize = 2_000_000;

/// Bytes of a name; the interpreter keeps none of more than 500 characters.
const NAME_BYTES_MAX: usize = 2_000;

/// Bytes of the last expression's value, of an exception's text, and of other texts: four for each character.
const RESULT_BYTES_MAX: usize = 40_000;
const MESSAGE_BYTES_MAX: usize = 16_000;
const TEXT_BYTES_MAX: usize = 2_000;

/// Bytes of the path of a file that a step read. The interpreter notes none that is longer.
const PATH_BYTES_MAX: usize = 4_096;

/// Frames, shown variables, and changes that are not kept.
const FRAMES_MAX: usize = 50;
const VALUES_MAX: usize = 20;
const UNKEPT_MAX: usize = 100;

#[derive(Deserialize)]
struct StepAnswer {
    error: Option<Error>,
    result: Option<String>,
    reads: BTreeSet<VariableName>,
    all: bool,
    groups: Vec<WrittenGroup>,
    deleted: BTreeSet<VariableName>,
    rebound: BTreeSet<VariableName>,
    /// Files and directories of the guest that the step read.
    files: Vec<String>,
    written: Vec<String>,
    unkept: Vec<String>,
    values: BTreeMap<VariableName, String>,
}

#[derive(Deserialize)]
struct Error {
    #[serde(rename = "type")]
    kind: String,
    message: String,
    line: Option<u32>,
    frames: Vec<Frame>,
}

#[derive(Deserialize)]
struct WrittenGroup {
    names: BTreeSet<VariableName>,
    #[serde(default)]
    value: Option<Digest>,
    #[serde(default)]
    live: Option<String>,
    #[serde(default)]
    needs: BTreeSet<VariableName>,
    #[serde(default)]
    alone: BTreeMap<VariableName, Digest>,
    #[serde(default)]
    blob: Option<String>,
}

/// Parses an answer into a report. The files that the step read are in it, without their content.
pub(super) fn read_into(report: &mut StepReport, text: &str) {
    if let Err(reason) = parsed(text).and_then(|answer| take(report, answer)) {
        report.delta = Delta::default();
        report.blobs = Vec::new();
        report.reads = BTreeSet::new();
        report.rebound = BTreeSet::new();
        (report.files, report.written) = (BTreeMap::new(), BTreeSet::new());
        let message = format!("the interpreter answered something else: {}", truncate(&reason, TEXT_BYTES_MAX));
        report.ended = StepEnd::Stopped { limit: None, message };
    }
}

fn parsed(text: &str) -> Result<StepAnswer, String> {
    if has_more_values(text.as_bytes(), ANSWER_VALUES_MAX) {
        return Err(format!("it has more than {ANSWER_VALUES_MAX} values"));
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn take(report: &mut StepReport, answer: StepAnswer) -> Result<(), String> {
    let names = answer.groups.iter().flat_map(|group| group.names.iter().chain(&group.needs));
    check_names(names.chain(&answer.reads).chain(&answer.deleted).chain(&answer.rebound))?;
    report.delta.deleted = answer.deleted;
    report.rebound = answer.rebound;
    let bounded = |paths: Vec<String>| paths.into_iter().filter(|path| path.len() <= PATH_BYTES_MAX).take(FILES_MAX);
    report.files = bounded(answer.files).map(|path| (path, None)).collect();
    report.written = bounded(answer.written).collect();
    for said in answer.groups {
        let group = group(said, &mut report.blobs)?;
        report.delta.groups.push(Arc::new(group));
    }
    report.result = answer.result.map(|text| truncate(&text, RESULT_BYTES_MAX));
    report.reads = answer.reads;
    report.sees_all = answer.all;
    report.unkept = answer.unkept.iter().take(UNKEPT_MAX).map(|text| truncate(text, TEXT_BYTES_MAX)).collect();
    let values = answer.values.into_iter().take(VALUES_MAX);
    report.values = values.map(|(name, text)| (name, truncate(&text, TEXT_BYTES_MAX))).collect();
    if let Some(error) = answer.error {
        let own = format!("<step {}>", report.step).chars().take(200).collect::<String>();
        report.ended = StepEnd::Raised(exception(error, &own));
    }
    Ok(())
}

fn check_names<'a>(names: impl Iterator<Item = &'a VariableName>) -> Result<(), String> {
    let mut count = 0;
    for name in names {
        count += 1;
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(format!("a name has {} bytes", name.len()));
        }
    }
    // Each group may need as many names as are allowed in all.
    if count > 100 * NAMES_MAX { Err(format!("it has {count} names")) } else { Ok(()) }
}

fn group(said: WrittenGroup, blobs: &mut Vec<(Digest, Arc<[u8]>)>) -> Result<ValueGroup, String> {
    let WrittenGroup { names, value, live, needs, mut alone, blob } = said;
    alone.retain(|name, _| names.contains(name));
    let kept = match (value, blob, live) {
        (Some(value), Some(text), None) => {
            let content = STANDARD.decode(text).map_err(|error| format!("a value is not base64: {error}"))?;
            let (blob, bytes) = (Digest::of(&content), content.len() as u64);
            blobs.push((blob, content.into()));
            KeptValues::Stored { blob, bytes, value }
        }
        // A stand-in is made of the step's input, later.
        (_, None, Some(reason)) => {
            KeptValues::Live { reason: truncate(&reason, TEXT_BYTES_MAX), value: Digest::of(b"live") }
        }
        _ => return Err("a group is neither kept nor live".to_owned()),
    };
    Ok(ValueGroup { names, kept, needs, alone })
}

fn exception(error: Error, own: &str) -> Exception {
    let Error { kind, message, line, mut frames } = error;
    frames.truncate(FRAMES_MAX);
    let cut = |text: &str| truncate(text, TEXT_BYTES_MAX);
    let frames: Vec<Frame> =
        frames.iter().map(|frame| Frame { file: cut(&frame.file), line: frame.line, name: cut(&frame.name) }).collect();
    let line = line.or_else(|| frames.iter().rev().find(|frame| frame.file == own).map(|frame| frame.line));
    Exception { kind: cut(&kind), message: truncate(&message, MESSAGE_BYTES_MAX), line, frames }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_more_values_than_the_host_holds_is_refused_before_it_is_read() {
        let answer = |groups: usize| {
            let group = r#"{"names":[]},"#.repeat(groups);
            let group = group.trim_end_matches(',');
            let lists = r#""deleted": [], "rebound": [], "files": [], "written": [], "unkept": [], "values": {}"#;
            parsed(&format!(r#"{{"reads": [], "all": false, "groups": [{group}], {lists}}}"#))
        };
        assert!(answer(10).is_ok_and(|answer| answer.groups.len() == 10));
        assert!(answer(ANSWER_VALUES_MAX / 4).is_err_and(|reason| reason == "it has more than 2000000 values"));
    }
}
