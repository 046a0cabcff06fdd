//! Tables of the book for a terminal: as they are written where they fit, otherwise a list.
//!
//! The words of the cells are plain already. Columns are not aligned, and no row is cut.

use super::layout::{width, wrapped};

/// Stands for a pipe that belongs to its cell while a row is split.
const PIPE_OF_CELL: &str = "\u{1}";

/// The rows, of which the first is the head. In a list each row is an item, with the name of its column before each
/// further cell.
pub(super) fn rendered(rows: &[String], columns: usize) -> String {
    if rows.iter().all(|row| width(row) <= columns) {
        return rows.iter().map(|row| format!("{row}\n")).collect();
    }
    let mut rows = rows.iter().filter(|row| !is_rule(row)).map(|row| cells(row));
    let head = rows.next().unwrap_or_default();
    rows.map(|row| item(&head, &row, columns)).collect()
}

fn item(head: &[String], row: &[String], columns: usize) -> String {
    let first = row.first().map_or("", String::as_str);
    let mut text = wrapped(first, "- ", "  ", columns);
    for (name, cell) in head.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty()) {
        let words = if name.is_empty() { cell.clone() } else { format!("{name}: {cell}") };
        text += &wrapped(&words, "  ", "    ", columns);
    }
    text
}

/// True for the line between the head and the other rows.
fn is_rule(row: &str) -> bool {
    row.chars().all(|char| "|-: ".contains(char))
}

/// The cells of a row. A pipe behind a backslash belongs to its cell.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim().replace("\\|", PIPE_OF_CELL);
    let inner = row.strip_prefix('|').unwrap_or(&row);
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    inner.split('|').map(|cell| cell.trim().replace(PIPE_OF_CELL, "|")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(table: &str, expected: &str) {
        let rows: Vec<String> = table.lines().map(str::to_owned).collect();
        assert_eq!(rendered(&rows, 24), expected);
    }

    #[test]
    fn a_table_that_fits_stays_as_it_is_written() {
        check(
            "| key | meaning |\n|---|---|\n| a | exactly as wide. |\n",
            "| key | meaning |\n|---|---|\n| a | exactly as wide. |\n",
        );
    }

    /// Rows of 200 columns used to be broken by the terminal, in the middle of words.
    #[test]
    fn a_wider_table_is_a_list_with_the_names_of_its_columns() {
        check(
            "| key | meaning | |\n|---|---|---|\n| `a` | words that go on here | more |\n| `b \\| c` | | |\n",
            "- `a`\n  meaning: words that go\n    on here\n  more\n- `b | c`\n",
        );
    }
}
