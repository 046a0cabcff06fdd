//! Steps that are added together: their sources are analysed on all cores.
//!
//! A source's analysis depends on no other source, so the graph is the same as if they had been added one after
//! another. The calling thread assigns the positions while others already analyse, takes the finished analyses into the
//! graph, in the steps' order, and analyses while none is finished. If the system gives no threads, it does all of the
//! work. Refuses to wait for a thread that has other work.

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

/// Most steps in one chunk of a thread.
const CHUNK_STEPS_MAX: usize = 64;

/// Bytes of sources that complete a chunk.
const CHUNK_BYTES: usize = 8 << 10;

/// The work from which on helpers start, in bytes of sources with 20 for each step: a hundred short steps.
///
/// On two cores, a thousand steps of one line took the same time with 2, 4 and 16 KiB.
const SHARED_BYTES_MIN: usize = 4 << 10;

/// The threads beside the calling one, one for each other core. They are not the pool that the whole process shares:
/// its queue may be long.
static HELPERS: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let others = thread::available_parallelism().map_or(1, NonZeroUsize::get) - 1;
    let builder = ThreadPoolBuilder::new().num_threads(others).thread_name(|_| "analysis of many".into());
    (others > 0).then(|| builder.build().ok()).flatten()
});

/// Consecutive steps, and the position of the first.
struct Chunk {
    first: Place,
    steps: Vec<(StepId, String)>,
}

/// The result of a chunk.
struct Done {
    first: Place,
    nodes: Vec<Arc<Node>>,
}

/// The remaining steps, and the function that assigns each of them its position.
struct Coming<I, G> {
    steps: I,
    give: G,
    next: Place,
    bytes: usize,
}

/// The chunks that no thread has taken yet.
struct Line {
    language: Arc<dyn StepLanguage>,
    chunks: Mutex<VecDeque<Chunk>>,
}

/// Analyses steps, whose positions start at `first`, and passes them to `take` in their order, after `give` was called
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
        // The work so far is enough for this thread.
        is_worth_it = coming.bytes >= SHARED_BYTES_MIN;
    }
    // The last sender ends with the last helper.
    drop(done);
    let own = || line.work().map(Ok);
    let next = || finished.try_recv().ok().or_else(own).or_else(|| finished.recv().ok());
    in_order(first..coming.next, next, take);
    Ok(())
}

/// Makes a helper take a chunk. When it starts, other threads may have been faster; no thread waits for it, since its
/// other work may take long.
fn call_for(line: &Arc<Line>, done: &Sender<thread::Result<Done>>) {
    let Some(helpers) = &*HELPERS else { return };
    let (line, done) = (Arc::clone(line), done.clone());
    helpers.spawn(move || {
        let found = catch_unwind(AssertUnwindSafe(|| line.work())).transpose();
        // The receiver is gone if the steps are not added after all.
        let _ = found.map(|found| done.send(found));
    });
}

/// Takes finished steps in the order of their positions, up to the last; or resumes the panic of a helper.
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
    /// The queue is complete even after a panic of a thread.
    fn chunks(&self) -> MutexGuard<'_, VecDeque<Chunk>> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, chunk: Chunk) {
        self.chunks().push_back(chunk);
    }

    /// Analyses the first chunk in the queue, if there is one.
    fn work(&self) -> Option<Done> {
        let Chunk { first, steps } = self.chunks().pop_front()?;
        let analysed =
            |((id, source), position)| Arc::new(Node::new(id, position, Analysed::new(&*self.language, source, None)));
        Some(Done { first, nodes: steps.into_iter().zip(first..).map(analysed).collect() })
    }
}
