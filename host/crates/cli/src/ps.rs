//! `longhaul ps` and `longhaul top`: the resources that the machine, runs, child processes and instances use.
//!
//! `top` redraws until `q` or Ctrl-C. If standard output is no terminal, or with `--once`, it draws once. The
//! terminal's settings are restored however the command ends. It opens a client for each picture: with one for all of
//! them it would stay the owner of a data directory that has none, and refuse `longhaul serve` until `q`.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use clap::Args;
use longhaul_api::operations::ResourceOperations as _;
use longhaul_api::resources::{ChildEnd, ChildView, EndChild, GuestView, ListSamples, ReadResources, ResourcesView};
use longhaul_api::wire::resources::{Resources, SampleView};
use longhaul_core::fault;
use longhaul_core::text::truncate;
use longhaul_report::messages::counted;
use longhaul_resources::{PartialLimits, ProcessUsage, Sample};
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Args, Debug)]
pub struct PsArgs {
    /// End this child process and its descendants: they are asked first, and killed after 5 seconds.
    #[arg(long, value_name = "PID")]
    end: Option<u32>,
    /// Show the samples of the last minutes instead, oldest first.
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..=120), conflicts_with = "end")]
    history: Option<u32>,
}

#[derive(Args, Debug)]
pub struct TopArgs {
    /// Draw once and end.
    #[arg(long)]
    once: bool,
    /// Seconds between two updates.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    every: u64,
}

/// Rows of instances in `top`, those with the most memory.
const GUESTS_SHOWN: usize = 20;

/// Rows of `top` below the picture: an empty one, how to end, and that of the cursor.
const HINT_ROWS: usize = 3;

/// Minutes of samples beside what is used now, with `--json`.
const HISTORY_MINUTES: u32 = 60;

/// Longest name of an invocation or a process, in characters.
const NAME_CHARACTERS: usize = 48;

/// `longhaul ps`.
pub async fn ps(context: &Context, args: PsArgs) -> fault::Result<Exit> {
    match args {
        PsArgs { end: Some(pid), .. } => end(context, pid).await,
        PsArgs { history: Some(minutes), .. } => history(context, minutes).await,
        PsArgs { .. } => {
            context.client.keep();
            let resources = now(context).await?;
            if context.json {
                print_json(&Resources::of(resources, samples(context, HISTORY_MINUTES).await?))?;
            } else {
                outtext!(picture(&resources, usize::MAX));
            }
            Ok(Exit::Done)
        }
    }
}

async fn end(context: &Context, pid: u32) -> fault::Result<Exit> {
    let ChildEnd { asked, killed } = context.end_child(EndChild { pid }).await?;
    if context.json {
        print_json(&ChildEnd { asked, killed })?;
    } else {
        outln!("ended: {} went when asked, {killed} had to be killed", counted(asked, "process"));
    }
    Ok(Exit::Done)
}

/// The samples of the last minutes: one each five seconds.
async fn samples(context: &Context, minutes: u32) -> fault::Result<Vec<Sample>> {
    let limit = usize::try_from(minutes).unwrap_or(usize::MAX).saturating_mul(12);
    context.resource_history(ListSamples { after_ms: 0, limit }).await
}

async fn history(context: &Context, minutes: u32) -> fault::Result<Exit> {
    let samples = samples(context, minutes).await?;
    if context.json {
        print_json(&samples.into_iter().map(SampleView::from).collect::<Vec<_>>())?;
        return Ok(Exit::Done);
    }
    for sample in samples {
        let at = jiff::Timestamp::from_millisecond(i64::try_from(sample.at_ms).unwrap_or(i64::MAX));
        let at = at.map_or_else(|_| "?".to_owned(), |at| at.strftime("%H:%M:%S").to_string());
        outln!(
            "{at}  memory {:>5.1}%  cpu {:>5.1}%  host {:>7.1} MB {:>6.1}%  children {:>3} {:>8.1} MB {:>6.1}%  instances {:>3}",
            sample.memory_percent,
            sample.cpu_percent,
            sample.host.memory_mb,
            sample.host.cpu_percent,
            sample.children.num_children,
            sample.children.memory_mb,
            sample.children.cpu_percent,
            sample.guests
        );
    }
    Ok(Exit::Done)
}

/// `longhaul top`.
pub async fn top(context: &Context, TopArgs { once, every }: TopArgs) -> fault::Result<Exit> {
    if once || context.json || !std::io::stdout().is_terminal() {
        return ps(context, PsArgs { end: None, history: None }).await;
    }
    let _quiet = RawTerminal::new();
    let mut keys = keys();
    // One for all rounds: a Ctrl-C while the picture is made is heard in the next round.
    let mut interrupts = signal(SignalKind::interrupt())?;
    loop {
        let picture = picture(&now(context).await?, GUESTS_SHOWN);
        let picture = longhaul_core::text::cleaned(&picture);
        // Starts at the top left, and clears the earlier picture.
        let mut drawn = String::from("\x1b[H\x1b[2J");
        let (columns, rows) =
            termios::tcgetwinsize(std::io::stdout()).map_or((0, 0), |size| (size.ws_col, size.ws_row));
        drawn.push_str(&fitted(&picture, usize::from(columns), usize::from(rows)).replace('\n', "\r\n"));
        drawn.push_str("\r\n\r\nq ends\r\n");
        std::io::stdout().write_all(drawn.as_bytes())?;
        std::io::stdout().flush()?;
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(every)) => {}
            _ = interrupts.recv() => return Ok(Exit::Done),
            key = keys.recv() => if matches!(key, None | Some(b'q' | b'Q')) { return Ok(Exit::Done) },
        }
    }
}

/// The picture cut to a terminal of this size, above [`HINT_ROWS`]: a longer line would take two, and more lines would
/// push the first ones out. 0 is an unknown size, which cuts nothing.
fn fitted(picture: &str, columns: usize, rows: usize) -> String {
    let cut = |size: usize, taken: usize| if size == 0 { usize::MAX } else { size.saturating_sub(taken) };
    let (columns, rows) = (cut(columns, 0), cut(rows, HINT_ROWS));
    let lines = picture.lines().take(rows).map(|line| line.chars().take(columns).collect::<String>());
    lines.collect::<Vec<_>>().join("\n")
}

async fn now(context: &Context) -> fault::Result<ResourcesView> {
    context.resources(ReadResources {}).await
}

/// Pressed keys, read on a thread that ends with the process.
fn keys() -> tokio::sync::mpsc::Receiver<u8> {
    let (sender, receiver) = tokio::sync::mpsc::channel(8);
    std::thread::spawn(move || {
        let mut key = [0];
        while matches!(std::io::stdin().read(&mut key), Ok(1..)) {
            if sender.blocking_send(key[0]).is_err() {
                return;
            }
        }
    });
    receiver
}

/// A terminal without echo that passes each key on at once. The settings are restored on drop.
struct RawTerminal(Option<Termios>);

impl RawTerminal {
    fn new() -> Self {
        let Ok(before) = termios::tcgetattr(std::io::stdin()) else { return Self(None) };
        let mut after = before.clone();
        after.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        after.special_codes[SpecialCodeIndex::VMIN] = 1;
        after.special_codes[SpecialCodeIndex::VTIME] = 0;
        let _ = termios::tcsetattr(std::io::stdin(), OptionalActions::Now, &after);
        Self(Some(before))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = termios::tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// The resources as text.
fn picture(all: &ResourcesView, guests_max: usize) -> String {
    let mut text = String::new();
    // Writing into a text cannot fail.
    let _ = write_picture(&mut text, all, guests_max);
    text
}

fn write_picture(text: &mut String, all: &ResourcesView, guests_max: usize) -> std::fmt::Result {
    let system = &all.system;
    writeln!(
        text,
        "machine   {:.0} of {:.0} MB can be had ({:.1}% used), {} processors {:.1}% busy",
        system.memory_available_mb, system.memory_total_mb, system.memory_percent, system.cpu_count, system.cpu_percent
    )?;
    for gpu in &system.gpus {
        writeln!(
            text,
            "graphics  {}: {:.0} of {:.0} MB used",
            name(&gpu.name),
            gpu.memory_used_mb,
            gpu.memory_total_mb
        )?;
    }
    writeln!(text, "longhaul  process {}, {}", all.pid, usage_words(&all.host))?;
    for run in &all.runs {
        write!(text, "run       {} of {}", run.run, name(&run.project))?;
        match &run.waiting_for {
            Some(why) => writeln!(text, ": waits for room: {why}")?,
            None => writeln!(
                text,
                ": {} with {:.1} MB, {} with {:.1} MB",
                counted(run.guests, "instance"),
                run.guests_memory_mb,
                if run.children == 1 { "1 child".to_owned() } else { format!("{} children", run.children) },
                run.children_memory_mb
            )?,
        }
    }
    for task in &all.tasks {
        let waits = task.waiting_for.as_ref().map(|why| format!(": waits for {}", name(why))).unwrap_or_default();
        writeln!(text, "task      {} of {}{waits}", name(&task.task), name(&task.agent))?;
    }
    for child in &all.children {
        write_child(text, child)?;
    }
    let mut guests: Vec<&GuestView> = all.guests.iter().collect();
    guests.sort_by(|one, two| two.memory_mb.total_cmp(&one.memory_mb));
    for guest in guests.iter().take(guests_max) {
        writeln!(
            text,
            "instance  {}  {}  {:.1} of {:.0} MB (peak {:.1}), {} ms, {:.1}% of its fuel",
            name(guest.invocation.as_str()),
            name(&guest.plugin),
            guest.memory_mb,
            guest.memory_max_mb,
            guest.memory_peak_mb,
            guest.cpu_ms,
            share(guest.fuel, guest.fuel_max)
        )?;
    }
    if guests.len() > guests_max {
        writeln!(text, "          and {}", counted(guests.len() - guests_max, "more instance"))?;
    }
    for ended in all.ended.iter().rev().take(5) {
        let (kind, name, reason) = (ended.kind, name(&ended.name), &ended.reason);
        writeln!(text, "ended     {kind} `{name}` ({}): {reason}", ended.pid)?;
    }
    Ok(())
}

fn write_child(text: &mut String, child: &ChildView) -> std::fmt::Result {
    let run = child.run.as_ref().map(|run| format!(" of {run}")).unwrap_or_default();
    write!(text, "child     {} {} `{}`{run}: {}", child.pid, child.kind, name(&child.name), usage_words(&child.usage))?;
    let limits = limit_words(&child.limits);
    if !limits.is_empty() {
        write!(text, "; at most {limits}")?;
    }
    match &child.ending {
        Some(why) => writeln!(text, "; is being ended: {why}"),
        None => writeln!(text),
    }
}

fn usage_words(usage: &ProcessUsage) -> String {
    let ProcessUsage { memory_mb, cpu_percent, num_threads, num_children } = usage;
    let threads = counted(*num_threads, "thread");
    format!("{memory_mb:.1} MB, {cpu_percent:.1}% of a processor, {threads}, {num_children} below it")
}

fn limit_words(rule: &PartialLimits) -> String {
    let words = [
        rule.max_memory_mb.map(|max| format!("{max:.0} MB")),
        rule.max_processes.map(|max| format!("{} below it", counted(max, "process"))),
        rule.max_cpu_percent.map(|max| format!("{max:.0}% of a processor")),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Names come from others: their control characters must not move the cursor.
fn name(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    truncate(&plain, NAME_CHARACTERS)
}

#[expect(clippy::cast_precision_loss, reason = "a share, shown with one digit")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::fitted;

    #[test]
    fn a_picture_fits_its_terminal() {
        let picture = "machine   free\nlonghaul  process\nchild\n";
        assert_eq!(fitted(picture, 8, 5), "machine \nlonghaul");
        assert_eq!(fitted("é\u{1f980}x\n", 2, 9), "é\u{1f980}");
        assert_eq!(fitted(picture, 0, 0), picture.trim_end(), "an unknown size");
        assert_eq!(fitted(picture, 8, 2), "", "no room beside the hint");
    }
}
