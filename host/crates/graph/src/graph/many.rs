//! Steps that are added at once: their sources are analysed on all cores.
//!
//! What a source does depends on no other, so the graph becomes what it would be if they had been added one after
//! another. The calling thread gives the steps their positions while others analyse already, takes what is done into
//! the graph, in the steps' order, and analyses while nothing waits for that. Where the system gives no threads, it
//! does all of it. Refuses to wait for a thread that has other work.

use super::error::StepGraphError;
use super::node::{Analysed, Node, StepId};
use super::places::Place;
use crate::analysis::StepLanguage;
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Most steps that a thread takes at a time.
const CHUNK_STEPS_MAX: usize = 64;

/// Bytes of sources, after which a thread's part has enough of them.
const CHUNK_BYTES: usize = 8 << 10;

/// Work from which on others are woken, in bytes of sources with 20 for each step: a hundred short steps.
///
/// On two cores, a thousand steps of one line took the same time with 2, 4 and 16 KiB.
const SHARED_BYTES_MIN: usize = 4 << 10;

/// The threads beside the calling one, one for each other core. They are not those that all of a process share: what
/// waits there may be long.
static HELPERS: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let others = thread::available_parallelism().map_or(1, NonZeroUsize::get) - 1;
    let builder = ThreadPoolBuilder::new().num_threads(others).thread_name(|_| "analysis of many".into());
    (others > 0).then(|| builder.build().ok()).flatten()
});

/// Steps that follow each other, and the position of the first.
struct Chunk {
    first: Place,
    steps: Vec<(StepId, String)>,
}

/// What became of a chunk.
struct Done {
    first: Place,
    nodes: Vec<Arc<Node>>,
}

/// Steps that are still to come, and what gives each of them its position.
struct Coming<I, G> {
    steps: I,
    give: G,
    next: Place,
    bytes: usize,
}

/// Chunks that nobody has taken yet.
struct Line {
    language: Arc<dyn StepLanguage>,
    chunks: Mutex<VecDeque<Chunk>>,
}

/// Analyses steps, whose positions begin at `first`, and hands them to `take` in their order, after `give` was called
/// for all of them.
///
/// # Errors
/// The first of `give`; nothing is taken then.
pub(super) fn analysed(
    language: &Arc<dyn StepLanguage>,
    first: Place,
    steps: impl Iterator<Item = (StepId, String)>,
    give: impl FnMut(&StepId, Place) -> Result<(), StepGraphError>,
    take: impl FnMut(Arc<Node>),
) -> Result<(), StepGraphError> {
    let line = Arc::new(Line { language: Arc::clone(language), chunks: Mutex::default() });
    let mut coming = Coming { steps, give, next: first, bytes: 0 };
    let (done, finished) = channel();
    let mut is_worth_it = false;
    while let Some(chunk) = coming.chunk().inspect_err(|_| line.chunks().clear())? {
        line.push(chunk);
        if is_worth_it {
            call_for(&line, &done);
        }
        // What has come by now is work enough for us.
        is_worth_it = coming.bytes >= SHARED_BYTES_MIN;
    }
    // The last sender goes with the last of those who were called.
    drop(done);
    let own = || line.work().map(Ok);
    let next = || finished.try_recv().ok().or_else(own).or_else(|| finished.recv().ok());
    in_order(first..coming.next, next, take);
    Ok(())
}

/// Has a helper take a chunk. When it comes to it, it may find that others were quicker; nobody waits for it then,
/// since what else it has to do may be long.
fn call_for(line: &Arc<Line>, done: &Sender<thread::Result<Done>>) {
    let Some(helpers) = &*HELPERS else { return };
    let (line, done) = (Arc::clone(line), done.clone());
    helpers.spawn(move || {
        let found = catch_unwind(AssertUnwindSafe(|| line.work())).transpose();
        // Nobody listens where the steps are not added after all.
        let _ = found.map(|found| done.send(found));
    });
}

/// Takes what is done in the order of its positions, up to the last; or panics as who did it.
fn in_order(
    places: Range<Place>,
    mut next_done: impl FnMut() -> Option<thread::Result<Done>>,
    mut take: impl FnMut(Arc<Node>),
) {
    let (mut next, mut early) = (places.start, HashMap::new());
    while next < places.end {
        let done = early.remove(&next).map(Ok).or_else(&mut next_done).expect("whoever takes a chunk answers for it");
        let done = done.unwrap_or_else(|panic| resume_unwind(panic));
        if done.first == next {
            next += done.nodes.len() as Place;
            done.nodes.into_iter().for_each(&mut take);
        } else {
            early.insert(done.first, done);
        }
    }
}

impl<I, G> Coming<I, G>
where
    I: Iterator<Item = (StepId, String)>,
    G: FnMut(&StepId, Place) -> Result<(), StepGraphError>,
{
    fn chunk(&mut self) -> Result<Option<Chunk>, StepGraphError> {
        let (first, enough) = (self.next, self.bytes + CHUNK_BYTES);
        let mut steps = Vec::with_capacity(self.steps.size_hint().0.clamp(1, CHUNK_STEPS_MAX));
        while steps.len() < CHUNK_STEPS_MAX
            && self.bytes < enough
            && let Some((id, source)) = self.steps.next()
        {
            (self.give)(&id, self.next)?;
            self.next += 1;
            self.bytes += source.len() + 20;
            steps.push((id, source));
        }
        Ok((!steps.is_empty()).then_some(Chunk { first, steps }))
    }
}

impl Line {
    /// What is in the line is whole, wherever a thread panicked.
    fn chunks(&self) -> MutexGuard<'_, VecDeque<Chunk>> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, chunk: Chunk) {
        self.chunks().push_back(chunk);
    }

    /// Analyses the first chunk in the line, if there is one.
    fn work(&self) -> Option<Done> {
        let Chunk { first, steps } = self.chunks().pop_front()?;
        let analysed =
            |((id, source), position)| Arc::new(Node::new(id, position, Analysed::new(&*self.language, source, None)));
        Some(Done { first, nodes: steps.into_iter().zip(first..).map(analysed).collect() })
    }
}
