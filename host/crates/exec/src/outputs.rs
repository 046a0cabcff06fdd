//! Typed outputs of a job, read within bounds from the answer of an interpreter.
//!
//! The interpreter is the job's, so it can make up every one of its outputs. An output that is malformed, or over a
//! bound, is dropped and counted. Nothing here looks into a picture: whoever shows an SVG must show it as an image,
//! where no script of it runs, and never as a part of a page.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Outputs of a job.
pub const OUTPUTS_MAX: usize = 100;

/// Bytes of all outputs of a job, as JSON.
pub const OUTPUTS_BYTES_MAX: usize = 8 << 20;

/// Values and keys in the JSON of one answer of an interpreter, which keeps less than half as many. The host holds all
/// of them in memory, where a value takes up to 200 bytes for each of its marks.
pub(crate) const ANSWER_VALUES_MAX: usize = 1_000_000;

/// Characters of a text, with the dots of a cut one.
const TEXT_CHARACTERS_MAX: usize = 100_003;

/// Rows and columns of a table.
const ROWS_MAX: usize = 1_000;
const COLUMNS_MAX: usize = 100;

/// The beginning of every PNG in base64: its signature.
const PNG_BEGINS: &str = "iVBORw0KGgo";

/// One result of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum JobOutput {
    /// The text of a value that has no other form.
    Text {
        /// The value as the language prints it, at most 100,000 characters.
        text: String,
    },
    /// Plain data.
    Json {
        /// The value.
        value: Value,
    },
    /// Rows of equal length.
    Table {
        /// The names of the columns, at most 100.
        columns: Vec<String>,
        /// The first rows, at most 1,000: numbers, texts, booleans and nulls.
        rows: Vec<Vec<Value>>,
        /// The number of all rows.
        rows_total: u64,
    },
    /// A picture.
    Png {
        /// Its bytes, in base64.
        base64: String,
    },
    /// A picture. It may carry scripts: show it as an image only.
    Svg {
        /// Its XML.
        text: String,
    },
}

/// The outputs of a job, and the number of those that were dropped.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    pub(crate) kept: Vec<JobOutput>,
    pub(crate) dropped: u64,
    bytes: usize,
}

impl Outputs {
    /// Takes one more.
    pub(crate) fn push(&mut self, value: Value) {
        let bytes = value.to_string().len();
        let has_room = self.kept.len() < OUTPUTS_MAX && bytes <= OUTPUTS_BYTES_MAX - self.bytes;
        match serde_json::from_value::<JobOutput>(value) {
            Ok(output) if has_room && output.is_well_formed() => {
                self.bytes += bytes;
                self.kept.push(output);
            }
            _ => self.dropped = self.dropped.saturating_add(1),
        }
    }

    /// Takes all of a list, and what the interpreter dropped itself.
    pub(crate) fn of(values: Vec<Value>, dropped: u64) -> Self {
        let mut outputs = Self { dropped, ..Self::default() };
        values.into_iter().for_each(|value| outputs.push(value));
        outputs
    }
}

impl JobOutput {
    fn is_well_formed(&self) -> bool {
        match self {
            Self::Text { text } => text.chars().count() <= TEXT_CHARACTERS_MAX,
            Self::Json { .. } => true,
            Self::Table { columns, rows, rows_total } => {
                let is_row = |row: &Vec<Value>| {
                    row.len() == columns.len() && !row.iter().any(|cell| cell.is_array() || cell.is_object())
                };
                let shown = u64::try_from(rows.len()).unwrap_or(u64::MAX);
                columns.len() <= COLUMNS_MAX
                    && rows.len() <= ROWS_MAX
                    && shown <= *rows_total
                    && rows.iter().all(is_row)
            }
            Self::Png { base64 } => {
                let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
                base64.starts_with(PNG_BEGINS) && base64.bytes().all(is_part)
            }
            Self::Svg { text } => text.contains("<svg"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(value: Value, is_kept: bool) {
        let outputs = Outputs::of(vec![value.clone()], 0);
        assert_eq!((outputs.kept.len(), outputs.dropped), if is_kept { (1, 0) } else { (0, 1) }, "{value}");
        if is_kept {
            assert_eq!(serde_json::to_value(&outputs.kept[0]).expect("JSON"), value);
        }
    }

    #[test]
    fn an_output_is_kept_if_it_is_of_a_known_kind_and_well_formed() {
        check(json!({ "kind": "text", "text": "<object>" }), true);
        check(json!({ "kind": "text", "text": "ä".repeat(TEXT_CHARACTERS_MAX) }), true);
        check(json!({ "kind": "text", "text": "ä".repeat(TEXT_CHARACTERS_MAX + 1) }), false);
        check(json!({ "kind": "json", "value": { "a": [1, null] } }), true);
        check(json!({ "kind": "table", "columns": ["a", "b"], "rows": [[1, "x"]], "rows_total": 7 }), true);
        check(json!({ "kind": "png", "base64": "iVBORw0KGgoAAAANSUhEUg==" }), true);
        check(json!({ "kind": "svg", "text": "<svg xmlns='http://www.w3.org/2000/svg'/>" }), true);
        check(json!({ "kind": "html", "text": "<script>" }), false);
        check(json!({ "kind": "png", "base64": "iVBORw0KGgo\" onload=\"x" }), false);
        check(json!({ "kind": "png", "base64": "R0lGODlh" }), false);
        check(json!({ "kind": "svg", "text": "<html>" }), false);
        check(json!({ "kind": "table", "columns": ["a"], "rows": [[1, 2]], "rows_total": 1 }), false);
        check(json!({ "kind": "table", "columns": ["a"], "rows": [[[1]]], "rows_total": 1 }), false);
        check(json!({ "kind": "table", "columns": ["a"], "rows": [[1], [2]], "rows_total": 1 }), false);
        check(json!({ "kind": "table", "columns": vec!["a"; COLUMNS_MAX + 1], "rows": [], "rows_total": 0 }), false);
        check(json!("text"), false);
        check(json!(null), false);
    }

    #[test]
    fn outputs_are_bounded_in_number_and_in_bytes() {
        let many = vec![json!({ "kind": "json", "value": 1 }); OUTPUTS_MAX + 3];
        let outputs = Outputs::of(many, 2);
        assert_eq!((outputs.kept.len(), outputs.dropped), (OUTPUTS_MAX, 5));
        let text = |bytes: usize| json!({ "kind": "json", "value": "x".repeat(bytes) });
        let around = text(0).to_string().len();
        let outputs = Outputs::of(vec![text(OUTPUTS_BYTES_MAX - around), text(0)], 0);
        assert_eq!((outputs.kept.len(), outputs.dropped), (1, 1));
        let outputs = Outputs::of(vec![text(OUTPUTS_BYTES_MAX - around + 1), text(0)], 0);
        assert_eq!((outputs.kept.len(), outputs.dropped), (1, 1), "a smaller one still fits");
    }
}
