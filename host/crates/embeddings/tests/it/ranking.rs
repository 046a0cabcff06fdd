//! Ranking by words and by meaning, over a real store, with an embedder that knows a few words by heart.

use longhaul_core::memory::{EMBEDDED_MAX, Embedded, Embedder, Hybrid, MemoryBackend, MemoryEntry, Ranking};
use longhaul_core::store::{Key, Store, Table};
use longhaul_core::{Clock, Digest};
use longhaul_store::{RedbStore, StoreOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct StoppedClock;

impl Clock for StoppedClock {
    fn now_ms(&self) -> u64 {
        1_700_000_000_000
    }
}

/// An embedder in which the meaning of a text is its animal, vehicle or plant, or nothing.
struct FakeEmbedder {
    name: &'static str,
    embedded: AtomicUsize,
    fails: bool,
}

const MEANINGS: [&[&str]; 3] = [&["dog", "hound", "puppy"], &["car", "lorry", "van"], &["tree", "oak"]];

impl FakeEmbedder {
    fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self { name, embedded: AtomicUsize::new(0), fails: false })
    }

    fn embedded(&self) -> usize {
        self.embedded.swap(0, Ordering::Relaxed)
    }
}

#[async_trait::async_trait]
impl Embedder for FakeEmbedder {
    fn model(&self) -> Digest {
        Digest::of(self.name.as_bytes())
    }

    fn alike_min(&self) -> f32 {
        0.5
    }

    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, String> {
        if self.fails {
            return Err("it is broken".to_owned());
        }
        self.embedded.fetch_add(texts.len() - 1, Ordering::Relaxed);
        let of = |text: &String| {
            let meant = MEANINGS.iter().position(|words| words.iter().any(|word| text.contains(word)));
            (0..MEANINGS.len()).map(|at| if Some(at) == meant { 1.0_f32 } else { 0.0 }).collect()
        };
        Ok(texts.iter().map(of).collect())
    }
}

struct Lab {
    _folder: tempfile::TempDir,
    store: Arc<dyn Store>,
}

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = RedbStore::open(folder.path(), StoreOptions::default()).expect("a store");
        Self { store: Arc::new(store), _folder: folder }
    }

    fn memory(&self, embedder: &Arc<FakeEmbedder>) -> Embedded {
        let ranking = Hybrid::new(Arc::clone(embedder) as Arc<dyn Embedder>, Arc::clone(&self.store));
        Embedded::new(Arc::clone(&self.store), Arc::new(StoppedClock)).ranked_by(Arc::new(ranking))
    }

    fn vectors(&self, namespace: &str) -> usize {
        let space = Key::of("vectors").and(namespace);
        self.store.scan(Table::Memory, &space, None, 10_000).expect("readable").len()
    }
}

fn entry(key: &str, says: &str) -> MemoryEntry {
    MemoryEntry { key: key.into(), value: format!("{says:?}"), tags: Vec::new(), expires_at_ms: None }
}

async fn put(memory: &Embedded, entries: &[(&str, &str)]) {
    for (key, says) in entries {
        memory.put("episodic/p", entry(key, says)).await.expect("kept");
    }
}

async fn found(memory: &Embedded, question: &str) -> Vec<String> {
    let hits = memory.search("episodic/p", question, 10).await.expect("searched");
    hits.into_iter().map(|hit| hit.entry.key).collect()
}

#[tokio::test]
async fn what_is_said_in_other_words_is_found_and_what_has_nothing_to_do_with_it_is_not() {
    let (lab, embedder) = (Lab::new(), FakeEmbedder::new("one"));
    let memory = lab.memory(&embedder);
    put(&memory, &[("a", "the hound barks"), ("b", "a fast lorry"), ("c", "the weather is fine")]).await;
    assert_eq!(found(&memory, "puppy").await, ["a"]);
    assert_eq!(found(&memory, "barks").await, ["a"], "by its word alone");
    assert_eq!(found(&memory, "oak").await, Vec::<String>::new());
    assert_eq!(found(&memory, " ").await, Vec::<String>::new());
}

#[tokio::test]
async fn what_both_find_stands_before_what_one_of_them_finds() {
    let (lab, embedder) = (Lab::new(), FakeEmbedder::new("one"));
    let memory = lab.memory(&embedder);
    put(&memory, &[("a", "the puppy barks"), ("b", "a dog sleeps"), ("c", "feed the dog and the oak: trees")]).await;
    // `b` has the word and the meaning, `a` the meaning alone.
    let order = found(&memory, "dog").await;
    assert_eq!(order.last().map(String::as_str), Some("a"), "{order:?}");
    assert_eq!(order.len(), 3);
}

#[tokio::test]
async fn vectors_are_made_once_and_again_when_the_text_or_the_model_is_another() {
    let (lab, embedder) = (Lab::new(), FakeEmbedder::new("one"));
    let memory = lab.memory(&embedder);
    put(&memory, &[("a", "the hound barks"), ("b", "a fast lorry")]).await;
    found(&memory, "puppy").await;
    assert_eq!(embedder.embedded(), 2);
    found(&memory, "van").await;
    assert_eq!(embedder.embedded(), 0, "both are kept");
    put(&memory, &[("b", "an old oak")]).await;
    assert_eq!(found(&memory, "van").await, Vec::<String>::new(), "the vector of what it said before is not used");
    assert_eq!(embedder.embedded(), 1);
    let other = FakeEmbedder::new("two");
    assert_eq!(found(&lab.memory(&other), "tree").await, ["b"]);
    assert_eq!(other.embedded(), 2, "no vector of another model is compared");
    assert_eq!(lab.vectors("episodic/p"), 2);
}

#[tokio::test]
async fn what_is_forgotten_or_over_leaves_no_vector() {
    let (lab, embedder) = (Lab::new(), FakeEmbedder::new("one"));
    let memory = lab.memory(&embedder);
    put(&memory, &[("a", "the hound barks"), ("b", "a fast lorry"), ("c", "an oak")]).await;
    found(&memory, "puppy").await;
    assert_eq!(lab.vectors("episodic/p"), 3);
    assert!(memory.delete("episodic/p", "a").await.expect("deleted"));
    assert_eq!(lab.vectors("episodic/p"), 2);
    // The entry has expired: the next search drops it.
    memory
        .put("episodic/p", MemoryEntry { expires_at_ms: Some(1.0), ..entry("b", "a fast lorry") })
        .await
        .expect("gone");
    found(&memory, "puppy").await;
    assert_eq!(lab.vectors("episodic/p"), 1);
}

#[tokio::test]
async fn an_embedder_that_fails_leaves_the_words() {
    let lab = Lab::new();
    let broken = Arc::new(FakeEmbedder { fails: true, name: "broken", embedded: AtomicUsize::new(0) });
    let memory = lab.memory(&broken);
    put(&memory, &[("a", "the hound barks"), ("b", "a fast lorry")]).await;
    assert_eq!(found(&memory, "the lorry").await, ["b"]);
}

#[tokio::test]
async fn a_search_embeds_a_bounded_number_and_the_next_one_goes_on() {
    let (lab, embedder) = (Lab::new(), FakeEmbedder::new("one"));
    let ranking = Hybrid::new(Arc::clone(&embedder) as Arc<dyn Embedder>, Arc::clone(&lab.store));
    let entries: Vec<MemoryEntry> = (0..EMBEDDED_MAX + 1).map(|at| entry(&format!("{at:04}"), "a hound")).collect();
    let rank = async || ranking.rank("episodic/p", entries.clone(), "puppy", u32::MAX).await.expect("ranked").len();
    assert_eq!((rank().await, embedder.embedded()), (EMBEDDED_MAX, EMBEDDED_MAX));
    assert_eq!((rank().await, embedder.embedded()), (EMBEDDED_MAX + 1, 1));
}

#[tokio::test]
async fn damaged_vectors_are_made_anew() {
    let (lab, embedder) = (Lab::new(), FakeEmbedder::new("one"));
    let memory = lab.memory(&embedder);
    put(&memory, &[("a", "the hound barks")]).await;
    found(&memory, "puppy").await;
    embedder.embedded();
    for damaged in [&b""[..], b"x", &[0; 33], &[0xff; 48]] {
        let key = Key::of("vectors").and("episodic/p").and("a");
        let batch = longhaul_core::store::Batch::new().put(Table::Memory, key, damaged);
        lab.store.commit(batch).await.expect("ours");
        assert_eq!(found(&memory, "puppy").await, ["a"]);
        assert_eq!(embedder.embedded(), 1, "{damaged:?}");
    }
}
