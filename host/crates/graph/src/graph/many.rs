//! Steps that are added at once: their sources are analysed on all cores.
//!
//! What a source does depends on no other, so the graph becomes what it would be if they had been added one after
//! another. The calling thread takes what is done into the graph, in the steps' order, and analyses while nothing waits
//! for that. Where the system gives no threads, it does all of it.

use super::Analysed;
use crate::analysis::Language;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::mpsc::channel;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

/// Most steps that a thread takes at a time.
const CHUNK_STEPS_MAX: usize = 64;

/// Chunks of each thread, so that all end at about the same time, whatever their sources are.
const CHUNKS_PER_THREAD: usize = 8;

/// Work that is worth one thread more, in bytes of sources with 20 for each step.
///
/// On two cores, of which other work had some, two threads were as quick as one from 20,000 of them in 600 short steps
/// that are read plainly, and from 3,250 in steps that are parsed. Where other work had both cores, a second thread cost
/// up to a fifth more than none.
const SHARED_BYTES_MIN: usize = 16 << 10;

/// Asked for once: Linux answers with what several files say, which takes as long as some steps.
static CORES: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, NonZeroUsize::get));

/// Analyses sources, and gives `take` what was found in their order, in parts. Other threads begin before it is called;
/// what it leaves is not analysed.
pub(super) fn analysed<T>(
    language: &dyn Language,
    sources: &[String],
    take: impl FnOnce(&mut dyn Iterator<Item = Vec<Analysed>>) -> T,
) -> T {
    let threads = threads(sources);
    let size = (sources.len() / (threads * CHUNKS_PER_THREAD)).clamp(1, CHUNK_STEPS_MAX);
    let chunks = Mutex::new((0..).zip(sources.chunks(size)));
    let work = || {
        // What leads to the next chunk is no more than two numbers, which a panic elsewhere leaves whole.
        let (at, chunk): (usize, _) = chunks.lock().unwrap_or_else(PoisonError::into_inner).next()?;
        // Copied and not moved: sources that other threads freed would have all wait for the allocator.
        let copy = |source: &String| Analysed::new(language, source.as_str().into(), None);
        Some((at, chunk.iter().map(copy).collect::<Vec<_>>()))
    };
    thread::scope(|scope| {
        let (done, finished) = channel();
        for _ in 1..threads {
            let (done, work) = (done.clone(), &work);
            let analyse = move || while work().is_some_and(|found| done.send(found).is_ok()) {};
            let _ = thread::Builder::new().name("analysis".into()).spawn_scoped(scope, analyse);
        }
        // The last sender goes with the last of the threads.
        drop(done);
        let mut waiting = HashMap::new();
        let parts = (0..).map_while(|next| {
            while !waiting.contains_key(&next) {
                let (at, found) = finished.try_recv().ok().or_else(&work).or_else(|| finished.recv().ok())?;
                waiting.insert(at, found);
            }
            waiting.remove(&next)
        });
        take(&mut { parts })
    })
}

/// How many threads are worth their start, with the calling one.
fn threads(sources: &[String]) -> usize {
    let bytes: usize = sources.iter().map(|source| source.len() + 20).sum();
    let worth = bytes / SHARED_BYTES_MIN + 1;
    // The system is asked only when it matters.
    if worth == 1 { 1 } else { worth.min(*CORES) }
}
