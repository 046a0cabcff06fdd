//! `longhaul doctor --bombs`: runs the corpus of bombs on this machine, each in a process of its own. A bomb that ends
//! its host ends no other work of the user, and is reported.

use crate::bombs::{self, BombOutcome, BombVerdict};
use crate::context::Context;
use crate::exit::Exit;
use crate::order::print_json;
use longhaul_api::wire::doctor::BombView;
use longhaul_bombs::{Bomb, corpus};
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::text::printable;
use longhaul_home::own_program;
use longhaul_resources::ProcessTable;
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

/// Longest time of one bomb, with everything. Each of its own limits ends it long before.
const BOMB_MAX: Duration = Duration::from_secs(120);

/// Memory of the process that holds a bomb and of its compiler, in bytes, at which they are stopped. It bounds the cost
/// for the user's machine, up to the growth between two samples. The corpus allows its compiler 1 GiB.
const MEMORY_BYTES_MAX: u64 = 3 << 30;

/// Interval between two samples of the memory of a bomb.
const LOOK: Duration = Duration::from_millis(10);

/// Longest text of an end that is shown, in bytes.
const SHOWN_BYTES_MAX: usize = 160;

/// Runs the bombs whose names contain `part`. Fails if one did not end as it must, or was not tried.
pub async fn run(context: &Context, part: &str) -> fault::Result<Exit> {
    let bombs: Vec<Bomb> = corpus().into_iter().filter(|bomb| bomb.name.contains(part)).collect();
    if bombs.is_empty() {
        bail!("no bomb has `{part}` in its name; `longhaul doctor --bombs` shows them all");
    }
    let mut verdicts = Vec::new();
    for bomb in &bombs {
        let (outcome, memory_bytes) = in_a_child(bomb).await?;
        show(context, bomb, &outcome, memory_bytes)?;
        verdicts.push(outcome.verdict);
    }
    let count = |of: BombVerdict| verdicts.iter().filter(|verdict| **verdict == of).count();
    let (held, not_tried) = (count(BombVerdict::Held), count(BombVerdict::NotTried));
    if !context.json {
        let not_tried = if not_tried > 0 { format!(", {not_tried} not tried") } else { String::new() };
        outln!("{held} of {} bombs held{not_tried}", bombs.len());
    }
    Ok(if held == bombs.len() { Exit::Done } else { Exit::Error })
}

fn show(context: &Context, bomb: &Bomb, outcome: &BombOutcome, memory_bytes: u64) -> fault::Result<()> {
    let BombOutcome { verdict, said, ms } = outcome;
    if context.json {
        return print_json(&BombView {
            name: bomb.name.to_owned(),
            attacks: bomb.attacks.to_owned(),
            held: *verdict == BombVerdict::Held,
            verdict: verdict.word().to_owned(),
            said: said.clone(),
            ms: *ms,
            memory_bytes,
        });
    }
    let mark = match verdict {
        BombVerdict::Held => "held",
        BombVerdict::NotHeld => "NOT HELD",
        BombVerdict::NotTried => "NOT TRIED",
    };
    let said = printable(said, SHOWN_BYTES_MAX);
    outln!("{mark:<9} {:<48} {ms:>6} ms {:>5} MiB  {said}", bomb.name, memory_bytes >> 20);
    Ok(())
}

/// The outcome of a bomb, and the highest sample of the memory of its process and the compiler below it.
async fn in_a_child(bomb: &Bomb) -> fault::Result<(BombOutcome, u64)> {
    let mut command = tokio::process::Command::new(own_program()?);
    command.args(["bomb-child", bomb.name]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.kill_on_drop(true).spawn().context("this program cannot be started")?;
    let pid = child.id();
    let mut ended = pin!(tokio::time::timeout(BOMB_MAX, child.wait_with_output()));
    let mut memory_bytes = 0;
    let ended = loop {
        match tokio::time::timeout(LOOK, &mut ended).await {
            Ok(ended) => break Some(ended),
            Err(_) => memory_bytes = memory_bytes.max(tree_bytes(pid)),
        }
        if memory_bytes > MEMORY_BYTES_MAX {
            break None;
        }
    };
    let lost = |said: String| BombOutcome { verdict: BombVerdict::NotHeld, said, ms: 0 };
    let outcome = match ended {
        None => lost(format!("it was stopped at {memory_bytes} bytes of memory, and may have {MEMORY_BYTES_MAX}")),
        Some(Err(_)) => lost(format!("it was stopped after {} s", BOMB_MAX.as_secs())),
        Some(Ok(ended)) => {
            let ended = ended.context("what became of a bomb is not known")?;
            serde_json::from_slice(&ended.stdout).unwrap_or_else(|_| lost(format!("the host ended: {}", ended.status)))
        }
    };
    Ok((outcome, memory_bytes))
}

/// Memory of a process and all its descendants, in bytes; 0 if the machine does not tell.
fn tree_bytes(pid: Option<u32>) -> u64 {
    let Ok(table) = ProcessTable::read() else { return 0 };
    let root = pid.and_then(|pid| table.named(pid)).map(|stat| stat.process);
    root.map_or(0, |root| table.tree(root).iter().map(|stat| stat.rss_bytes).sum())
}

/// The main function of the process that holds one bomb: prints the outcome and returns the exit code.
pub fn child(name: &str) -> i32 {
    let tried = in_this_process(name);
    let code = i32::from(tried.is_err());
    let not_tried = |error: Fault| BombOutcome { verdict: BombVerdict::NotTried, said: format!("{error:#}"), ms: 0 };
    outln!("{}", json!(tried.unwrap_or_else(not_tried)));
    code
}

fn in_this_process(name: &str) -> fault::Result<BombOutcome> {
    let bomb = corpus().into_iter().find(|bomb| bomb.name == name).with_context(|| format!("no bomb is `{name}`"))?;
    let ours = std::fs::Permissions::from_mode(0o700);
    let cache = tempfile::Builder::new().prefix("longhaul-bombs-").permissions(ours).tempdir();
    let cache = cache.context("no directory can be made for compiled code")?;
    let engine = bombs::engine(cache.path().to_owned(), own_program()?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    Ok(runtime.block_on(bombs::hold(&engine, &bomb)))
}
