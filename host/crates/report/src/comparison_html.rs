//! A comparison of runs as one HTML file, with a column for each run: no script, no font, no address. What plugins and
//! models wrote is escaped.

use super::comparison::{counts_words, feature_words, file_words, letter, status_word, step_words, tree_words};
use super::escape::escaped;
use super::html::STYLE;
use super::messages::{self, moment, spent_words};
use super::span;
use longhaul_api::comparison::{AlignedStep, ComparedFeature, ComparedRun, FileComparison, RunComparison, StepSide};
use longhaul_worktree::TreeDiff;
use std::fmt::Write as _;

const SIDES_STYLE: &str = "\
table.sides{table-layout:fixed}table.sides td,table.sides th{overflow-wrap:anywhere}
table.sides pre,pre.patch{margin:0;white-space:pre-wrap;font-size:.85rem}
tr.differs td{background:color-mix(in srgb,var(--mark) 8%,transparent)}tr.step th{font-weight:normal;color:var(--soft)}
td.none{color:var(--soft)}body{max-width:90rem}
";

/// The whole page.
#[must_use]
pub fn html(comparison: &RunComparison) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = page(comparison, &mut text);
    text
}

fn page(comparison: &RunComparison, to: &mut String) -> std::fmt::Result {
    let RunComparison { runs, counts, first_difference, steps, steps_left_out, features, files, .. } = comparison;
    let names: Vec<String> = runs.iter().map(|run| escaped(run.summary.run.as_str())).collect();
    let title = format!("{} beside each other", names.join(", "));
    writeln!(to, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">")?;
    writeln!(to, "<meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>")?;
    writeln!(to, "<style>\n{STYLE}{SIDES_STYLE}</style></head><body>\n<h1>{title}</h1>")?;
    run_table(runs, to)?;
    writeln!(to, "<h2>Steps</h2>\n<p>{}.</p>", counts_words(*counts))?;
    match first_difference {
        None => writeln!(to, "<p>No step differs.</p>")?,
        Some(first) => {
            writeln!(to, "<h2>The first difference</h2>")?;
            step_table(runs, std::slice::from_ref(first), to)?;
        }
    }
    feature_table(runs, features, to)?;
    files.iter().try_for_each(|file| file_section(file, to))?;
    answers(runs, to)?;
    writeln!(to, "<h2>All steps</h2>")?;
    let missing = steps_left_out + runs.iter().map(|run| run.steps_left_out).sum::<usize>();
    if missing > 0 {
        writeln!(to, "<p class=\"about\">{missing} steps are left out.</p>")?;
    }
    step_table(runs, steps, to)?;
    writeln!(to, "</body></html>")
}

/// The text of a run in one row of the table.
type Cell = fn(&ComparedRun) -> String;

fn run_table(runs: &[ComparedRun], to: &mut String) -> std::fmt::Result {
    write!(to, "<table class=\"sides\"><tr><th>run")?;
    for (place, run) in runs.iter().enumerate() {
        write!(to, "<th>{}: {}", letter(place), escaped(run.summary.run.as_str()))?;
    }
    writeln!(to, "</tr>")?;
    let rows: [(&str, Cell); 8] = [
        ("project", |run| run.summary.project.clone()),
        ("goal", |run| run.summary.title.clone()),
        ("status", |run| status_word(run.summary.status).to_owned()),
        ("features that pass", |run| format!("{} of {}", run.summary.passing.0, run.summary.passing.1)),
        ("began", |run| moment(run.summary.created_ms)),
        ("worked", |run| span(run.summary.wall_ms)),
        ("used", |run| spent_words(&run.summary.spent.usage)),
        ("steps", |run| run.steps.to_string()),
    ];
    for (name, of) in rows {
        write!(to, "<tr><th>{name}")?;
        runs.iter().try_for_each(|run| write!(to, "<td>{}", escaped(&of(run))))?;
        writeln!(to, "</tr>")?;
    }
    writeln!(to, "</table>")
}

fn head(runs: &[ComparedRun], to: &mut String) -> std::fmt::Result {
    write!(to, "<table class=\"sides\"><tr>")?;
    (0..runs.len()).try_for_each(|place| write!(to, "<th>{}", letter(place)))?;
    writeln!(to, "</tr>")
}

fn step_table(runs: &[ComparedRun], steps: &[AlignedStep], to: &mut String) -> std::fmt::Result {
    head(runs, to)?;
    for step in steps {
        let words = escaped(&step_words(runs.len(), step));
        writeln!(to, "<tr class=\"step\"><th colspan=\"{}\">{}. {words}</tr>", runs.len(), step.number)?;
        write!(to, "<tr{}>", if step.change.is_same() { "" } else { " class=\"differs\"" })?;
        for place in 0..runs.len() {
            match step.sides.iter().find(|side| side.run == place) {
                None => write!(to, "<td class=\"none\">does not have it")?,
                Some(side) => cell(side, to)?,
            }
        }
        writeln!(to, "</tr>")?;
    }
    writeln!(to, "</table>")
}

fn cell(side: &StepSide, to: &mut String) -> std::fmt::Result {
    write!(to, "<td>{}<pre>", escaped(&side.call))?;
    if side.skipped_bytes > 0 {
        writeln!(to, "({} bytes before are the same)", side.skipped_bytes)?;
    }
    write!(to, "{}{}</pre>", escaped(&side.answer), if side.is_cut { "\n..." } else { "" })
}

fn feature_table(runs: &[ComparedRun], features: &[ComparedFeature], to: &mut String) -> std::fmt::Result {
    if features.is_empty() {
        return Ok(());
    }
    writeln!(to, "<h2>Features</h2>")?;
    head(runs, to)?;
    for feature in features {
        let (id, title) = (escaped(&feature.feature), escaped(&feature.title));
        writeln!(to, "<tr class=\"step\"><th colspan=\"{}\">{id}: {title}</tr>", runs.len())?;
        write!(to, "<tr{}>", if feature.is_same { "" } else { " class=\"differs\"" })?;
        for place in 0..runs.len() {
            match feature.sides.iter().find(|side| side.run == place) {
                None => write!(to, "<td class=\"none\">does not have it")?,
                Some(side) => write!(to, "<td>{}", escaped(&feature_words(side)))?,
            }
        }
        writeln!(to, "</tr>")?;
    }
    writeln!(to, "</table>")
}

fn file_section(FileComparison { run, diff, reason }: &FileComparison, to: &mut String) -> std::fmt::Result {
    let (first, other) = (letter(0), letter(*run));
    match diff {
        None => {
            let reason = escaped(reason.as_deref().unwrap_or_default());
            writeln!(to, "<h2>Files of {other}</h2>\n<p>They are not compared: {reason}.</p>")
        }
        Some(diff) => {
            writeln!(to, "<h2>Files from {first} to {other}</h2>\n<p>{}.</p>", tree_words(diff))?;
            patches(diff, to)
        }
    }
}

fn patches(diff: &TreeDiff, to: &mut String) -> std::fmt::Result {
    for file in &diff.files {
        let cut = if file.is_cut { "\n..." } else { "" };
        writeln!(
            to,
            "<details><summary>{}</summary><pre class=\"patch\">{}{cut}</pre></details>",
            escaped(&file_words(file)),
            escaped(&file.patch)
        )?;
    }
    match diff.files_left_out {
        0 => Ok(()),
        left_out => writeln!(to, "<p class=\"about\">{left_out} more files are left out.</p>"),
    }
}

fn answers(runs: &[ComparedRun], to: &mut String) -> std::fmt::Result {
    if runs.iter().all(|run| run.answer.is_none()) {
        return Ok(());
    }
    writeln!(to, "<h2>Answers</h2>")?;
    head(runs, to)?;
    write!(to, "<tr>")?;
    for run in runs {
        match &run.answer {
            None => write!(to, "<td class=\"none\">has none")?,
            Some(answer) => write!(to, "<td><pre>{}</pre>", escaped(&messages::plain(&answer.answer)))?,
        }
    }
    writeln!(to, "</tr></table>")
}
