//! The real model end to end: all-MiniLM-L6-v2, 91 MB, which is not in the repository.
//!
//! `cargo test -p longhaul-embeddings --features inference -- --ignored --nocapture` runs it with the files that
//! `longhaul models pull minilm` fetched, below `LONGHAUL_CACHE` or `~/.cache/longhaul`. What it is compared with was
//! computed by the tokenizer of the model's authors and by a forward pass in NumPy.

use longhaul_core::Digest;
use longhaul_core::memory::{Embedder, FullText, Hybrid, MemoryEntry, Ranking};
use longhaul_core::store::{Key, Row, Store, Table};
use longhaul_embeddings::{ModelFiles, Pieces, Pinned, Sentences};
use longhaul_store::{RedbStore, StoreOptions};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

fn pinned(name: &str, sha256: &str) -> Pinned {
    let cache = std::env::var_os("LONGHAUL_CACHE").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/longhaul"),
        PathBuf::from,
    );
    let path = cache.join("models/all-minilm-l6-v2").join(name);
    Pinned { path, digest: sha256.parse().expect("a digest"), bytes_max: 128 << 20 }
}

fn files() -> ModelFiles {
    ModelFiles {
        weights: pinned("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        vocabulary: pinned("vocab.txt", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
    }
}

/// A text, its pieces, and how its vector begins.
type Reference = (&'static str, &'static [u32], [f32; 4]);

const REFERENCES: [Reference; 2] = [
    (
        "Dates are in ISO 8601.",
        &[101, 5246, 2024, 1999, 11163, 6564, 24096, 1012, 102],
        [0.021_54, 0.011_57, 0.047_48, 0.045_59],
    ),
    (
        "the quick brown fox!the quick brown fox!the quick brown fox!",
        &[101, 1996, 4248, 2829, 4419, 999, 1996, 4248, 2829, 4419, 999, 1996, 4248, 2829, 4419, 999, 102],
        [0.028_51, 0.030_73, 0.009_82, 0.028_73],
    ),
];

#[tokio::test]
#[ignore = "needs the model files of 91 MB"]
async fn the_model_gives_what_its_authors_give() {
    let vocabulary = std::fs::read_to_string(files().vocabulary.path).expect("pulled");
    let pieces = Pieces::read(&vocabulary).expect("a vocabulary");
    let model = Sentences::new(files());
    for (text, numbers, begins) in REFERENCES {
        assert_eq!(pieces.of(text, 256), numbers, "{text}");
        let vector = model.embed(vec![text.to_owned()]).await.expect("a vector").pop().expect("one");
        assert_eq!(vector.len(), 384);
        for (found, expected) in vector.iter().zip(begins) {
            assert!((found - expected).abs() < 1e-4, "{text}: {vector:?}");
        }
    }
    let mixed = pieces.of("Café über naïve — 東京 \u{200b}x", 256);
    assert_eq!(mixed, [101, 7668, 19169, 15743, 1517, 1879, 1755, 1060, 102]);
}

/// Memories, and questions about them in other words.
const PARAPHRASES: [(&str, &str, &str); 20] = [
    ("port", "The service listens on 8080.", "which network socket does it bind to"),
    ("date format", "Timestamps are written in ISO 8601.", "how should I format a point in time"),
    ("database", "All rows are kept in PostgreSQL 16.", "where is data persisted"),
    ("licence", "The project is published under Apache 2.0.", "may I redistribute this code"),
    ("tests", "Run the checks with `make verify` before each commit.", "how do I validate my change"),
    ("secrets", "Passwords come from environment variables and never from files.", "how are credentials supplied"),
    ("deploy", "Releases are shipped every second Tuesday.", "when do new versions go live"),
    (
        "retries",
        "A failed request is sent again three times, with growing pauses.",
        "what happens when a call does not succeed",
    ),
    ("language", "Comments are written in British English.", "spelling conventions for documentation"),
    ("cache", "Results are kept for one hour and then thrown away.", "how long before stored answers expire"),
    ("login", "Users sign in with their company account through OpenID.", "authentication method"),
    ("logging", "Warnings go to standard error as JSON lines.", "where do diagnostics end up"),
    ("images", "Uploaded pictures are shrunk to 1024 pixels.", "maximum photo resolution"),
    ("money", "Amounts are stored as whole cents.", "how to represent prices"),
    ("encoding", "Input files may have a byte order mark, which is skipped.", "dealing with BOM at the start of text"),
    ("sorting", "Names are ordered without regard to capitals.", "is alphabetical order case sensitive"),
    ("limits", "An account may make 100 calls a minute.", "request quota"),
    ("backup", "A copy of all data is made each night at two.", "disaster recovery"),
    ("search", "Full text lookup uses a trigram index.", "finding words in documents quickly"),
    ("timezone", "The server clock runs in UTC.", "daylight saving problems on the host"),
];

/// Texts that share words with a question, and questions that nothing here answers.
const BY_WORD: [(&str, &str); 3] = [("8080", "port"), ("PostgreSQL", "database"), ("a trigram index", "search")];
const UNANSWERED: [&str; 5] =
    ["the colour of the sky", "a recipe for bread", "who won the match", "walking the dog", "how tall is the mountain"];

fn entries() -> Vec<MemoryEntry> {
    let entry = |(key, says, _): &(&str, &str, &str)| MemoryEntry {
        key: (*key).to_owned(),
        value: format!("{says:?}"),
        tags: Vec::new(),
        expires_at_ms: None,
    };
    PARAPHRASES.iter().map(entry).collect()
}

/// Counts the questions whose answer is among the first three, and the other entries that come with it.
async fn recall(ranking: &dyn Ranking, questions: &[(&str, &str)]) -> (usize, usize) {
    let (mut right, mut beside) = (0, 0);
    for (question, key) in questions {
        let hits = ranking.rank("episodic/p", entries(), question, 3).await.expect("ranked");
        let is_found = hits.iter().any(|hit| hit.entry.key == *key);
        right += usize::from(is_found);
        beside += hits.len() - usize::from(is_found);
    }
    (right, beside)
}

#[tokio::test]
#[ignore = "needs the model files of 91 MB"]
async fn paraphrases_are_found_that_share_no_word() {
    let folder = tempfile::tempdir().expect("a folder");
    let store: Arc<dyn Store> = Arc::new(RedbStore::open(folder.path(), StoreOptions::default()).expect("a store"));
    let model: Arc<Sentences> = Arc::new(Sentences::new(files()));
    let hybrid = Hybrid::new(Arc::clone(&model) as Arc<dyn Embedder>, Arc::clone(&store));
    let questions: Vec<(&str, &str)> = PARAPHRASES.iter().map(|(key, _, asked)| (*asked, *key)).collect();
    let words = recall(&FullText, &questions).await;
    let both = recall(&hybrid, &questions).await;
    let alone = by_meaning(&model, &questions).await;
    println!("of {} paraphrases among the first 3 (and others beside them):", questions.len());
    println!("  words {words:?}, meaning {alone:?}, both {both:?}");
    let by_word = (recall(&FullText, &BY_WORD).await, recall(&hybrid, &BY_WORD).await);
    println!("of {} questions by word: words {:?}, both {:?}", BY_WORD.len(), by_word.0, by_word.1);
    assert!(both.0 > words.0 + 5 && both.0 >= 16, "{words:?} {both:?}");
    assert_eq!(by_word.1.0, BY_WORD.len(), "what shares a word is found as before");
    for question in UNANSWERED {
        let hits = hybrid.rank("episodic/p", entries(), question, 3).await.expect("ranked");
        assert!(hits.is_empty(), "{question}: {hits:?}");
    }
    let kept: Vec<Row> = store.scan(Table::Memory, &Key::of("vectors"), None, 100).expect("readable");
    assert_eq!(kept.len(), PARAPHRASES.len());
    let began = Instant::now();
    let texts: Vec<String> = PARAPHRASES.iter().map(|(_, says, _)| (*says).to_owned()).collect();
    model.embed(texts).await.expect("vectors");
    println!("{:.1} ms a sentence", began.elapsed().as_secs_f64() * 1_000.0 / PARAPHRASES.len() as f64);
    assert_ne!(model.model(), Digest::of(b""));
}

/// The model's vectors alone, to compare with.
async fn by_meaning(model: &Sentences, questions: &[(&str, &str)]) -> (usize, usize) {
    let texts = PARAPHRASES.iter().map(|(key, says, _)| format!("{key}: {says}")).collect();
    let vectors = model.embed(texts).await.expect("vectors");
    let (mut right, mut beside) = (0, 0);
    for (question, key) in questions {
        let asked = model.embed(vec![(*question).to_owned()]).await.expect("a vector").pop().expect("one");
        let cosine = |vector: &Vec<f32>| vector.iter().zip(&asked).map(|(a, b)| a * b).sum::<f32>();
        let mut found: Vec<(f32, &str)> = vectors.iter().map(cosine).zip(PARAPHRASES.map(|one| one.0)).collect();
        found.retain(|(cosine, _)| *cosine >= model.alike_min());
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.truncate(3);
        let is_found = found.iter().any(|(_, found)| found == key);
        right += usize::from(is_found);
        beside += found.len() - usize::from(is_found);
    }
    (right, beside)
}
