//! Answers about graphs, for a person or as JSON. Names, outputs and values come from the code, so they are cut to a
//! length and cleaned of control characters.

use super::super::context::Context;
use super::super::exit::Exit;
use super::super::order::print_json;
use longhaul_api::wire::graphs::{
    GraphChangesView, GraphDiagnosisView, GraphPatchView, GraphRunView, GraphStepView, GraphVersionView, GraphView,
};
use longhaul_core::fault;
use longhaul_core::graph::{
    DiagnosisView, GraphAnswer, GraphChanges, GraphSummary, GraphVersion, PatchView, ReplaySummary, StepFailure,
    StepFrame, StepOutput, StepView,
};
use longhaul_core::text::{count, printable};
use std::collections::BTreeSet;

/// Longest name, message and output in a line, in bytes.
const NAME_BYTES_MAX: usize = 60;
const LINE_BYTES_MAX: usize = 160;

/// Longest line of a value, in bytes.
const VALUE_LINE_BYTES_MAX: usize = 1_000;

/// The most lines of a step's output, and the most names in a list.
pub(super) const LINES_MAX: usize = 200;
const NAMES_MAX: usize = 40;

pub fn answer(context: &Context, answer: &GraphAnswer) -> fault::Result<Exit> {
    match answer {
        GraphAnswer::Changed(changes) => changed(context, changes),
        GraphAnswer::Replayed(did) => replayed(context, did, &BTreeSet::new()),
        GraphAnswer::Stale(steps) => stale(context, steps),
        GraphAnswer::Steps(steps) => self::steps(steps),
        GraphAnswer::Diagnosed(found) => diagnosed(context, found),
        GraphAnswer::Patched(kept) => patched(context, kept),
        GraphAnswer::Text(text) => {
            outtext!(text);
            Ok(Exit::Done)
        }
    }
}

/// Prints the answer to a run, without the output of the steps that was printed before.
pub fn answer_to_run(context: &Context, answer: &GraphAnswer, printed: &BTreeSet<String>) -> fault::Result<Exit> {
    match answer {
        GraphAnswer::Replayed(did) => replayed(context, did, printed),
        other => self::answer(context, other),
    }
}

/// Prints graphs, a line each.
pub fn summaries(context: &Context, graphs: &[GraphSummary]) -> fault::Result<Exit> {
    if graphs.is_empty() && !context.json {
        outln!("there are no graphs; make one with `longhaul graph new NAME`");
    }
    for graph in graphs {
        summary(context, graph)?;
    }
    Ok(Exit::Done)
}

/// Prints a graph as a line: of JSON, or for people.
pub fn summary(context: &Context, graph: &GraphSummary) -> fault::Result<Exit> {
    if context.json {
        print_json(&GraphView::from(graph.clone()))?;
        return Ok(Exit::Done);
    }
    let stale = if graph.stale == 0 { String::new() } else { format!(", {} stale", graph.stale) };
    let steps = if graph.steps == 1 { "step" } else { "steps" };
    let name = printable(&graph.name, LINE_BYTES_MAX);
    outln!("{name}  {} {steps}{stale}, {}, version {}", graph.steps, graph.language, graph.version);
    Ok(Exit::Done)
}

pub fn versions(context: &Context, versions: &[GraphVersion]) -> fault::Result<Exit> {
    for version in versions {
        if context.json {
            print_json(&GraphVersionView::from(version.clone()))?;
        } else {
            outln!("{:>6}  {}", version.number, printable(&version.what, LINE_BYTES_MAX));
        }
    }
    Ok(Exit::Done)
}

fn changed(context: &Context, changes: &GraphChanges) -> fault::Result<Exit> {
    if context.json {
        print_json(&GraphChangesView::from(changes.clone()))?;
    } else {
        outln!("stale: {}", names(&changes.stale));
        if let Some(failure) = &changes.failure {
            outln!("broken: {}", line_of(failure));
        }
    }
    Ok(if changes.failure.is_some() { Exit::Incomplete } else { Exit::Done })
}

fn replayed(context: &Context, did: &ReplaySummary, printed: &BTreeSet<String>) -> fault::Result<Exit> {
    if context.json {
        print_json(&GraphRunView::from(did.clone()))?;
    } else {
        did.outputs.iter().filter(|output| !printed.contains(&output.step)).for_each(output);
        outln!("ran: {}", names(&did.ran));
        let lists = [
            ("from the store", &did.answered),
            ("failed", &did.failed),
            ("blocked", &did.blocked),
            ("unknown", &did.unknown),
        ];
        for (word, steps) in lists.into_iter().filter(|(_, steps)| !steps.is_empty()) {
            outln!("{word}: {}", names(steps));
        }
        outln!("skipped: {}", count(did.untouched as usize, "fresh step"));
        if let Some(first) = did.discovered.first() {
            let found = count(did.discovered_count as usize, "dependency");
            let [from, to, name] =
                [&first.from, &first.to, &first.variable].map(|name| printable(name, NAME_BYTES_MAX));
            outln!("found: {found} that no source shows, such as `{name}` of `{from}` in `{to}`");
        }
        for warning in &did.warnings {
            outln!("warning: {}", printable(warning, LINE_BYTES_MAX));
        }
        for step in &did.unknown {
            let step = printable(step, NAME_BYTES_MAX);
            outln!("`{step}` acts and was cut off; look whether it did, then: longhaul graph run NAME --again {step}");
        }
    }
    let is_whole = did.failed.is_empty() && did.blocked.is_empty() && did.unknown.is_empty();
    Ok(if is_whole { Exit::Done } else { Exit::Incomplete })
}

/// Prints what a step printed, and the value of its last expression, as below the cell of a notebook.
fn output(output: &StepOutput) {
    heading(&output.step);
    print_lines(&output.stdout);
    output.value.as_deref().into_iter().for_each(value);
}

/// Prints the name of a step, above its output.
pub(super) fn heading(step: &str) {
    outln!("{}:", name(step));
}

/// The name of a step, for a line.
pub(super) fn name(step: &str) -> String {
    printable(step, NAME_BYTES_MAX)
}

/// A line of a step's output, below its name.
pub(super) fn indented(line: &str) -> String {
    format!("  {}", printable(line, LINE_BYTES_MAX))
}

/// The note about lines that are not printed.
pub(super) fn left_out(lines: usize) -> String {
    format!("  ({})", count(lines, "more line"))
}

/// Prints the value of a step's last expression.
pub(super) fn value(value: &str) {
    let mut lines = value.lines();
    outln!("  => {}", printable(lines.next().unwrap_or_default(), VALUE_LINE_BYTES_MAX));
    lines.take(LINES_MAX).for_each(|line| outln!("     {}", printable(line, VALUE_LINE_BYTES_MAX)));
}

fn stale(context: &Context, steps: &[String]) -> fault::Result<Exit> {
    if context.json {
        print_json(&steps)?;
    } else if steps.is_empty() {
        outln!("nothing is stale");
    }
    if !context.json {
        steps.iter().for_each(|step| outln!("{}", printable(step, LINE_BYTES_MAX)));
    }
    Ok(Exit::Done)
}

/// Prints a step a line, as JSON.
pub fn steps(steps: &[StepView]) -> fault::Result<Exit> {
    steps.iter().try_for_each(|step| print_json(&GraphStepView::from(step.clone())))?;
    Ok(Exit::Done)
}

/// Prints the drawing of the service.
pub fn drawing(text: &str) -> fault::Result<Exit> {
    match text {
        "" => outln!("there are no steps; add one with `longhaul graph add`"),
        text => outtext!(text),
    }
    Ok(Exit::Done)
}

pub fn step(context: &Context, step: &StepView) -> fault::Result<Exit> {
    if context.json {
        print_json(&GraphStepView::from(step.clone()))?;
        return Ok(Exit::Done);
    }
    let took =
        format!("{} ms, {} fuel, {} bytes of memory at most", step.duration_ms, step.fuel_used, step.memory_bytes_peak);
    let rows = [
        ("step", step.id.clone()),
        ("state", step.state.as_str().to_owned()),
        ("reads", names(&step.reads)),
        ("writes", names(&step.writes)),
        ("needs", names(&step.needs)),
        ("live only", step.live_only.join(", ")),
        ("files", step.files.join(", ")),
        ("took", if step.fuel_used == 0 { String::new() } else { took }),
        ("value", step.value.clone().unwrap_or_default()),
        ("failure", step.failure.as_ref().map(line_of).unwrap_or_default()),
    ];
    for (name, text) in rows.iter().filter(|(_, text)| !text.is_empty()) {
        outln!("{name:<9} {}", printable(text, 4_000));
    }
    outln!("source");
    // All of it: it is the person's own, and may be asked for to be copied.
    outtext!(step.source.lines().map(|line| format!("  {line}\n")).collect::<String>());
    for (name, text) in [("stdout", &step.stdout), ("stderr", &step.stderr)] {
        lines(name, text);
    }
    if let Some(failure) = &step.failure {
        lines("traceback", &failure.traceback);
    }
    Ok(Exit::Done)
}

fn lines(name: &str, text: &str) {
    if text.trim().is_empty() {
        return;
    }
    outln!("{name}");
    print_lines(text);
}

fn print_lines(text: &str) {
    for line in text.lines().take(LINES_MAX) {
        outln!("{}", indented(line));
    }
    let more = text.lines().count().saturating_sub(LINES_MAX);
    if more > 0 {
        outln!("{}", left_out(more));
    }
}

fn diagnosed(context: &Context, found: &DiagnosisView) -> fault::Result<Exit> {
    if context.json {
        print_json(&GraphDiagnosisView::from(found.clone()))?;
        return Ok(Exit::Done);
    }
    outln!("`{}` failed: {}", printable(&found.step, NAME_BYTES_MAX), line_of(&found.failure));
    if let Some(StepFrame { step, line, function, source }) = &found.frame {
        let within = match function.as_str() {
            "" => String::new(),
            function => format!(", in `{}`", printable(function, NAME_BYTES_MAX)),
        };
        outln!("  at line {line} of `{}`{within}", printable(step, NAME_BYTES_MAX));
        if !source.is_empty() {
            outln!("    {}", printable(source, LINE_BYTES_MAX));
        }
    }
    for value in &found.values {
        let by = value.made_by.as_ref().map(|step| format!("  from `{}`", printable(step, NAME_BYTES_MAX)));
        let (name, shown) = (printable(&value.name, NAME_BYTES_MAX), printable(&value.shown, LINE_BYTES_MAX));
        outln!("  {name} = {shown}{}", by.unwrap_or_default());
    }
    outln!("likely at fault: `{}`, {}", printable(&found.culprit, NAME_BYTES_MAX), printable(&found.why, 600));
    Ok(Exit::Done)
}

fn patched(context: &Context, kept: &PatchView) -> fault::Result<Exit> {
    if context.json {
        print_json(&GraphPatchView::from(kept.clone()))?;
        return Ok(Exit::Done);
    }
    let tried = count(kept.tries as usize, "source");
    outln!("changed `{}`: {} ({tried} tried)", printable(&kept.step, NAME_BYTES_MAX), printable(&kept.why, 600));
    kept.source.lines().take(LINES_MAX).for_each(|line| outln!("  {}", printable(line, LINE_BYTES_MAX)));
    replayed(context, &kept.replay, &BTreeSet::new())
}

/// A failure in one line.
fn line_of(failure: &StepFailure) -> String {
    let place = match (failure.line, failure.column) {
        (Some(line), Some(column)) => format!(" (line {line}, column {column})"),
        (Some(line), None) => format!(" (line {line})"),
        _ => String::new(),
    };
    printable(&format!("{}: {}{place}", failure.kind, failure.message), LINE_BYTES_MAX)
}

fn names(steps: &[String]) -> String {
    if steps.is_empty() {
        return "nothing".to_owned();
    }
    let shown: Vec<String> = steps.iter().take(NAMES_MAX).map(|step| printable(step, NAME_BYTES_MAX)).collect();
    let more = steps.len() - shown.len();
    let tail = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{tail}", shown.join(", "))
}
