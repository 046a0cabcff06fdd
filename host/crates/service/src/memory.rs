//! The memory of a project: lists, searches, shows, deletes and exports entries.

use super::{Service, ServiceOperations};
use longhaul_api::memory::{
    ForgetMemory, ListMemory, MemoryItem, MemoryScope, PromoteMemory, SearchMemory, ShowMemory,
};
use longhaul_api::operations::MemoryOperations;
use longhaul_api::runs::RunRef;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::memory::{MemoryBackend, MemoryEntry, MemoryNote, Trust, closest};
use longhaul_memory::{self as memory, episodes_of, facts_of};
use longhaul_records::record::RunRecord;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Keys that a backend is asked for at once, and that are read of one namespace in all.
const PAGE_KEYS: u32 = 200;
const KEYS_MAX: usize = 10_000;

/// Longest wait of a request, and of the end of the process, for runs that are being remembered.
const REMEMBERED_WAIT: Duration = Duration::from_secs(10);

impl Service {
    /// Remembers a run behind its end: whoever waits for the run does not wait for this.
    pub(super) fn remember(&self, run: RunId) {
        let rememberer = Arc::clone(&self.rememberer);
        self.remembering(async move { rememberer.remember_run(&run).await });
    }

    /// Remembers what earlier processes did not come to, while everything else goes on.
    pub(super) fn remember_due_soon(&self) {
        let rememberer = Arc::clone(&self.rememberer);
        self.remembering(async move { rememberer.remember_due().await });
    }

    /// Remembers like [`Self::remember_due_soon`], and waits a little, since the caller reads the memory next.
    pub(super) async fn remember_due(&self) {
        let rememberer = Arc::clone(&self.rememberer);
        let (done, is_done) = tokio::sync::oneshot::channel::<()>();
        self.remembering(async move {
            rememberer.remember_due().await;
            drop(done);
        });
        let _ = tokio::time::timeout(REMEMBERED_WAIT, is_done).await;
    }

    /// Waits a little at the end of the process for what is being remembered. The rest is left to the next one.
    pub async fn end_remembering(&self) {
        let mut all = std::mem::take(&mut *self.remembering.lock().unwrap_or_else(PoisonError::into_inner));
        let ended = async { while all.join_next().await.is_some() {} };
        if tokio::time::timeout(REMEMBERED_WAIT, ended).await.is_err() {
            tracing::warn!("the outcomes of runs are remembered later: it takes longer than {REMEMBERED_WAIT:?}");
        }
    }

    /// The number of runs that are being remembered.
    pub(super) fn remembering_now(&self) -> usize {
        let mut all = self.remembering.lock().unwrap_or_else(PoisonError::into_inner);
        while all.try_join_next().is_some() {}
        all.len()
    }

    fn remembering(&self, one: impl Future<Output = ()> + Send + 'static) {
        let mut all = self.remembering.lock().unwrap_or_else(PoisonError::into_inner);
        while all.try_join_next().is_some() {}
        all.spawn(one);
    }

    /// The memory of the project of a run, once earlier runs are in it.
    async fn open_memory(&self, which: &RunRef) -> fault::Result<ProjectMemory> {
        self.remember_due().await;
        let record = self.find(which)?.record;
        let config = record.config_now()?;
        self.expect_trust(&record.directory, &config)?;
        let factory = &*self.memories;
        let memory = memory::open(&self.host, factory, &config, &record.pins, &record.directory).await?;
        Ok(ProjectMemory { memory, record, by_meaning: config.memory.embeddings.is_some() })
    }
}

/// The memory of a project, as a run of it sees it.
struct ProjectMemory {
    memory: Arc<dyn MemoryBackend>,
    record: RunRecord,
    /// True when episodes are found by their meaning, too.
    by_meaning: bool,
}

#[async_trait::async_trait]
impl MemoryOperations for ServiceOperations<'_> {
    async fn memories(&self, request: ListMemory) -> fault::Result<Vec<MemoryItem>> {
        let ListMemory { run, prefix, limit } = request;
        let ProjectMemory { memory, record, .. } = self.0.open_memory(&run).await?;
        listed(&*memory, &record, &prefix, limit).await
    }

    async fn search_memory(&self, request: SearchMemory) -> fault::Result<Vec<MemoryItem>> {
        let SearchMemory { run, query, limit } = request;
        let ProjectMemory { memory, record, by_meaning } = self.0.open_memory(&run).await?;
        searched(&*memory, &record, &query, limit, by_meaning).await
    }

    async fn memory(&self, ShowMemory { run, key, shelf }: ShowMemory) -> fault::Result<Vec<MemoryItem>> {
        let ProjectMemory { memory, record, .. } = self.0.open_memory(&run).await?;
        of_key(&*memory, &record, &key, shelf).await
    }

    async fn promote_memory(&self, request: PromoteMemory) -> fault::Result<Vec<MemoryItem>> {
        let PromoteMemory { run, key, shelf } = request;
        let ProjectMemory { memory, record, .. } = self.0.open_memory(&run).await?;
        let mut promoted = Vec::new();
        for one in of_key(&*memory, &record, &key, shelf).await? {
            promoted.push(promote(&*memory, &record, one).await?);
        }
        Ok(promoted)
    }

    async fn forget_memory(&self, request: ForgetMemory) -> fault::Result<Vec<MemoryItem>> {
        let ForgetMemory { run, key, shelf } = request;
        let ProjectMemory { memory, record, .. } = self.0.open_memory(&run).await?;
        let found = of_key(&*memory, &record, &key, shelf).await?;
        for one in &found {
            let (namespace, before) = (namespace(one.shelf, &record), unchanged(&*memory, &record, one).await?);
            if !memory.remove(&namespace, &before).await? {
                bail!(changed(one));
            }
        }
        Ok(found)
    }
}

/// The namespace of a shelf in the memory of a run's project.
fn namespace(shelf: MemoryScope, record: &RunRecord) -> String {
    match shelf {
        MemoryScope::Fact => facts_of(record.scope()),
        MemoryScope::Episode => episodes_of(record.scope()),
        MemoryScope::Working => format!("working/{}", record.run),
    }
}

async fn listed(
    memory: &dyn MemoryBackend,
    record: &RunRecord,
    prefix: &str,
    limit: usize,
) -> fault::Result<Vec<MemoryItem>> {
    let mut found = Vec::new();
    for shelf in MemoryScope::ALL {
        found.extend(all(memory, record, shelf, prefix, limit).await?);
    }
    Ok(found)
}

async fn all(
    memory: &dyn MemoryBackend,
    record: &RunRecord,
    shelf: MemoryScope,
    prefix: &str,
    limit: usize,
) -> fault::Result<Vec<MemoryItem>> {
    let (namespace, mut found, mut after) = (namespace(shelf, record), Vec::new(), None::<String>);
    loop {
        let page = memory.list(&namespace, prefix, after.as_deref(), PAGE_KEYS).await?;
        for key in page.keys {
            if found.len() >= limit.min(KEYS_MAX) {
                return Ok(found);
            }
            // One that was over between the two questions is not there any more.
            found.extend(memory.get(&namespace, &key).await?.map(|entry| MemoryItem::of(shelf, entry, None)));
        }
        match page.next {
            Some(next) if after.as_ref() != Some(&next) => after = Some(next),
            _ => return Ok(found),
        }
    }
}

async fn searched(
    memory: &dyn MemoryBackend,
    record: &RunRecord,
    query: &str,
    limit: u32,
    by_meaning: bool,
) -> fault::Result<Vec<MemoryItem>> {
    let mut found = Vec::new();
    let ranked =
        [MemoryScope::Fact, MemoryScope::Working].into_iter().chain(by_meaning.then_some(MemoryScope::Episode));
    for shelf in ranked {
        let hits = memory.search(&namespace(shelf, record), query, limit).await?;
        found.extend(
            hits.into_iter().filter(|hit| hit.score > 0.0).map(|hit| MemoryItem::of(shelf, hit.entry, Some(hit.score))),
        );
    }
    if by_meaning {
        return Ok(found);
    }
    let episodes = all(memory, record, MemoryScope::Episode, "", KEYS_MAX).await?;
    let words: Vec<String> = episodes.iter().map(episode_words).collect();
    let best = closest(&words, query, limit as usize);
    found.extend(best.into_iter().map(|(at, score)| MemoryItem { score: Some(score), ..episodes[at].clone() }));
    Ok(found)
}

/// The entries of a key in one scope or in each: an agent may note for its run what it also notes as a fact.
async fn of_key(
    memory: &dyn MemoryBackend,
    record: &RunRecord,
    key: &str,
    only: Option<MemoryScope>,
) -> fault::Result<Vec<MemoryItem>> {
    let mut found = Vec::new();
    for shelf in MemoryScope::ALL.into_iter().filter(|shelf| only.is_none_or(|only| only == *shelf)) {
        let entry = memory.get(&namespace(shelf, record), key).await.context("ask the memory backend")?;
        found.extend(entry.map(|entry| MemoryItem::of(shelf, entry, None)));
    }
    if found.is_empty() {
        let kind = only.map(|only| format!(", of the kind `{}`", only.as_str())).unwrap_or_default();
        bail!(Fault::unknown(format!("nothing is remembered as `{key}`{kind}; `longhaul memory list` shows what is")));
    }
    Ok(found)
}

/// Marks an entry as a person's own words, unless it was changed meanwhile.
async fn promote(memory: &dyn MemoryBackend, record: &RunRecord, one: MemoryItem) -> fault::Result<MemoryItem> {
    let before = unchanged(memory, record, &one).await?;
    let mut note = one.note.clone();
    note.trust = Trust::OwnWords;
    if let (MemoryScope::Episode, Some(fields)) = (one.shelf, note.value.as_object_mut()) {
        fields.insert("trust".to_owned(), serde_json::to_value(Trust::OwnWords)?);
    }
    let entry = note.clone().entry(&one.key, before.tags.clone(), None);
    let entry = MemoryEntry { expires_at_ms: before.expires_at_ms, ..entry };
    if !memory.replace(&namespace(one.shelf, record), Some(&before), entry).await? {
        bail!(changed(&one));
    }
    Ok(MemoryItem { note, ..one })
}

/// The entry of an item that a person looks at. Another one that was noted since is not the one that is meant.
async fn unchanged(memory: &dyn MemoryBackend, record: &RunRecord, one: &MemoryItem) -> fault::Result<MemoryEntry> {
    let entry = memory.get(&namespace(one.shelf, record), &one.key).await?;
    entry.filter(|entry| MemoryNote::read(entry) == one.note).ok_or_else(|| changed(one))
}

fn changed(one: &MemoryItem) -> Fault {
    Fault::conflict(format!("`{}` was changed at the same time; look at it, and then try again", one.key))
}

fn episode_words(memory: &MemoryItem) -> String {
    let text = |name: &str| memory.note.value[name].as_str().unwrap_or_default().to_owned();
    format!("{} {}", text("goal"), text("summary"))
}
