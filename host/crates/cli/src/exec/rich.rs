//! Typed outputs of code, as a terminal can show them: plain data and tables as text, pictures by their size.
//!
//! Texts that the code made up pass the terminal's cleaning as its output does.

use crate::terminal;
use longhaul_exec::JobOutput;
use serde_json::Value;

/// Rows of a table that are shown; `--json` has more.
const ROWS_MAX: usize = 20;

/// Prints an output.
pub(super) fn show(output: &JobOutput) {
    terminal::pass_output(&text_of(output));
}

fn text_of(output: &JobOutput) -> String {
    match output {
        JobOutput::Text { text } => format!("{text}\n"),
        JobOutput::Json { value } => format!("{value}\n"),
        JobOutput::Table { columns, rows, rows_total } => table(columns, rows, *rows_total),
        JobOutput::Png { base64 } => format!("[PNG of {} bytes; --json has it]\n", base64.len() / 4 * 3),
        JobOutput::Svg { text } => format!("[SVG of {} bytes; --json has it]\n", text.len()),
    }
}

/// Lines with tabs, which scripts can split.
fn table(columns: &[String], rows: &[Vec<Value>], rows_total: u64) -> String {
    let line = |cells: Vec<String>| {
        let plain: Vec<String> = cells.iter().map(|cell| cell.replace(['\t', '\n', '\r'], " ")).collect();
        format!("{}\n", plain.join("\t"))
    };
    let shown = &rows[..rows.len().min(ROWS_MAX)];
    let mut text = line(columns.to_vec());
    text.extend(shown.iter().map(|row| line(row.iter().map(cell).collect())));
    if rows_total > shown.len() as u64 {
        text += &format!("[{} of {rows_total} rows]\n", shown.len());
    }
    text
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn outputs_are_lines_and_pictures_are_told_by_their_size() {
        let rows = |count: usize| vec![vec![json!(1), json!("a\tb"), json!(null)]; count];
        let columns = ["n", "name", "none"].map(str::to_owned).to_vec();
        let table = |count: usize| JobOutput::Table { columns: columns.clone(), rows: rows(count), rows_total: 21 };
        assert_eq!(text_of(&JobOutput::Json { value: json!({ "a": [1] }) }), "{\"a\":[1]}\n");
        assert_eq!(text_of(&JobOutput::Png { base64: "iVBORw0KGgo=".into() }), "[PNG of 9 bytes; --json has it]\n");
        assert_eq!(text_of(&table(1)), "n\tname\tnone\n1\ta b\t\n[1 of 21 rows]\n");
        assert_eq!(text_of(&table(21)).lines().count(), 22);
    }
}
