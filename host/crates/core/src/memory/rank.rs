//! The ranking of entries for a question: by their words, or by their words and their meaning.
//!
//! | ranking | finds |
//! |---|---|
//! | [`FullText`] | entries that share words with the question |
//! | [`Hybrid`] | those, and entries of similar meaning in other words, by the vectors of an [`Embedder`] |
//!
//! Both leave out irrelevant entries. A hybrid ranks twice and adds up the reciprocals of the ranks: `1 / (60 + rank)`,
//! the reciprocal rank fusion of Cormack, Clarke and Büttcher (SIGIR 2009), whose constant it is. Scores of words and
//! of vectors have no common measure, and ranks need none.
//!
//! Vectors are rows of the host's own store, wherever the entries are stored. Each has a digest of its model and its
//! text: one of another model, or of an earlier text, is never compared and is made again. They follow the entries: an
//! entry that a search no longer finds loses its vector, and so does a deleted one.

use super::{Episode, MemoryEntry, MemoryError, MemoryHit, MemoryNote};
use crate::Digest;
use crate::store::{Batch, Key, Op, Store, StoreError, Table};
use crate::text::truncate;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Entries of a namespace that a search of the host's own backends reads, in the order of their keys. Further ones are
/// not found.
pub const SEARCHED_MAX: usize = 2_000;

/// Bytes of them that a search holds, plus or minus one read: an agent may fill a namespace with the longest values,
/// and two hundred of them may search at a time. Further ones are not found either.
pub const SEARCHED_BYTES_MAX: usize = 16 << 20;

/// Texts that one search embeds at most: at 10 ms each, under three seconds. The others are found by their words, and
/// later searches embed them.
pub const EMBEDDED_MAX: usize = 256;

/// Bytes of a text that an embedder gets: a sentence model reads no more than its beginning.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// Numbers of a vector. A model with more is no sentence model.
const DIMENSIONS_MAX: usize = 4_096;

/// The constant of reciprocal rank fusion, from its authors.
const FUSION: f64 = 60.0;

/// Rows that one read returns.
const ROWS_AT_ONCE: usize = 500;

/// Ranks entries for a question.
#[async_trait::async_trait]
pub trait Ranking: Send + Sync {
    /// At most `limit` relevant entries, the best first, of equal ones the one with the smaller key.
    ///
    /// # Errors
    /// [`MemoryError::Failed`] when the ranking's own data cannot be read or written.
    async fn rank(
        &self,
        namespace: &str,
        entries: Vec<MemoryEntry>,
        question: &str,
        limit: u32,
    ) -> Result<Vec<MemoryHit>, MemoryError>;

    /// Deletes its data about a deleted entry.
    ///
    /// # Errors
    /// [`MemoryError::Failed`] when it cannot be removed.
    async fn forget(&self, _namespace: &str, _key: &str) -> Result<(), MemoryError> {
        Ok(())
    }
}

/// By full text alone, see [`crate::full_text`].
#[derive(Clone, Copy, Debug, Default)]
pub struct FullText;

#[async_trait::async_trait]
impl Ranking for FullText {
    async fn rank(
        &self,
        _: &str,
        entries: Vec<MemoryEntry>,
        question: &str,
        limit: u32,
    ) -> Result<Vec<MemoryHit>, MemoryError> {
        Ok(ranked(entries, question, limit))
    }
}

/// The best entries, as the host's own backends rank them: by full text, the best first, and of equal ones the one with
/// the smaller key. Entries without a shared word are left out.
#[must_use]
pub fn ranked(entries: Vec<MemoryEntry>, query: &str, limit: u32) -> Vec<MemoryHit> {
    let words: Vec<String> = entries.iter().map(MemoryEntry::words).collect();
    let scores = crate::full_text::scores(&words, query);
    best(entries, scores, limit)
}

/// Makes vectors of texts: similar meanings have vectors of nearly one direction.
#[async_trait::async_trait]
pub trait Embedder: Send + Sync {
    /// The digest of the model and its settings: vectors of two models are not comparable.
    fn model(&self) -> Digest;

    /// The cosine from which on two texts count as similar.
    fn alike_min(&self) -> f32;

    /// A vector of length 1 for each text, in order.
    ///
    /// # Errors
    /// The reason, as text. The embedder has logged it: then a search uses the words alone.
    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, String>;
}

/// By full text and by meaning, see the module.
pub struct Hybrid {
    embedder: Arc<dyn Embedder>,
    store: Arc<dyn Store>,
}

impl Hybrid {
    /// A ranking by this embedder, with vectors in this store.
    #[must_use]
    pub fn new(embedder: Arc<dyn Embedder>, store: Arc<dyn Store>) -> Self {
        Self { embedder, store }
    }

    /// The cosine of each entry with the question; none for one without a vector yet.
    async fn cosines(
        &self,
        namespace: &str,
        entries: &[MemoryEntry],
        question: &str,
    ) -> Result<Vec<Option<f32>>, MemoryError> {
        let nothing = vec![None; entries.len()];
        let space = space(namespace);
        let keys: Vec<Key> = entries.iter().map(|entry| space.clone().and(&entry.key)).collect();
        let texts: Vec<String> = entries.iter().map(meaning).collect();
        let signs: Vec<Digest> = texts.iter().map(|text| self.sign(text)).collect();
        let found = self.kept(&space)?;
        self.drop_strangers(&keys, &found).await?;
        let mut kept: BTreeMap<Key, Vector> = found.into_iter().filter_map(|(key, one)| Some((key, one?))).collect();
        // A vector of another model, or of an earlier text, counts as missing.
        let is_missing = |at: &usize| kept.get(&keys[*at]).is_none_or(|vector| vector.sign != signs[*at]);
        let asked: Vec<usize> = (0..entries.len()).filter(is_missing).take(EMBEDDED_MAX).collect();
        let mut wanted = vec![truncate(question, TEXT_BYTES_MAX)];
        wanted.extend(asked.iter().map(|at| texts[*at].clone()));
        let Some(mut made) = self.made(wanted).await else { return Ok(nothing) };
        let fresh = made.split_off(1);
        let Some(question) = made.pop() else { return Ok(nothing) };
        let mut batch = Batch::new();
        for (at, numbers) in asked.into_iter().zip(fresh) {
            let vector = Vector { sign: signs[at], numbers };
            batch.push(Op::Put(Table::Memory, keys[at].clone(), vector.write()));
            kept.insert(keys[at].clone(), vector);
        }
        if !batch.ops.is_empty() {
            self.store.commit(batch).await.map_err(stored)?;
        }
        let of = |(key, sign): (&Key, &Digest)| kept.get(key).filter(|vector| vector.sign == *sign)?.cosine(&question);
        Ok(keys.iter().zip(&signs).map(of).collect())
    }

    /// The digest of a vector's model and text: another model's differs.
    fn sign(&self, text: &str) -> Digest {
        Digest::of_parts(&[self.embedder.model().as_bytes(), text.as_bytes()])
    }

    /// A vector for each text, all of one length; none where the embedder gives none.
    async fn made(&self, texts: Vec<String>) -> Option<Vec<Vec<f32>>> {
        let count = texts.len();
        let made = self.embedder.embed(texts).await.ok()?;
        let length = made.first()?.len();
        let fits = |one: &Vec<f32>| one.len() == length && one.iter().all(|number| number.is_finite());
        (made.len() == count && (1..=DIMENSIONS_MAX).contains(&length) && made.iter().all(fits)).then_some(made)
    }

    /// The vectors of a namespace, by their keys. None in place of one that is damaged.
    fn kept(&self, space: &Key) -> Result<BTreeMap<Key, Option<Vector>>, MemoryError> {
        let (mut kept, mut after) = (BTreeMap::new(), None::<Vec<u8>>);
        while kept.len() < SEARCHED_MAX * 2 {
            let rows = self.store.scan(Table::Memory, space, after.as_deref(), ROWS_AT_ONCE).map_err(stored)?;
            let Some((last, _)) = rows.last() else { break };
            after = Some(last.clone());
            let vectors = rows.into_iter().map(|(key, bytes)| (Key::from_bytes(key), Vector::read(&bytes)));
            kept.extend(vectors);
        }
        Ok(kept)
    }

    /// Removes the vectors of deleted entries.
    async fn drop_strangers(&self, living: &[Key], kept: &BTreeMap<Key, Option<Vector>>) -> Result<(), MemoryError> {
        let living: BTreeSet<&Key> = living.iter().collect();
        let mut batch = Batch::new();
        for key in kept.keys().filter(|key| !living.contains(key)) {
            batch.push(Op::Delete(Table::Memory, key.clone()));
        }
        if batch.ops.is_empty() { Ok(()) } else { self.store.commit(batch).await.map_err(stored) }
    }
}

#[async_trait::async_trait]
impl Ranking for Hybrid {
    async fn rank(
        &self,
        namespace: &str,
        entries: Vec<MemoryEntry>,
        question: &str,
        limit: u32,
    ) -> Result<Vec<MemoryHit>, MemoryError> {
        if entries.is_empty() || question.trim().is_empty() {
            return Ok(Vec::new());
        }
        let words: Vec<String> = entries.iter().map(MemoryEntry::words).collect();
        let by_words = crate::full_text::scores(&words, question);
        let alike_min = self.embedder.alike_min();
        let cosines = self.cosines(namespace, &entries, question).await?;
        let by_meaning = cosines.into_iter().map(|cosine| cosine.filter(|cosine| *cosine >= alike_min));
        let by_meaning: Vec<f64> = by_meaning.map(|cosine| cosine.map_or(0.0, f64::from)).collect();
        let scores = fused(&[by_words, by_meaning]);
        Ok(best(entries, scores, limit))
    }

    async fn forget(&self, namespace: &str, key: &str) -> Result<(), MemoryError> {
        let mut batch = Batch::new();
        batch.push(Op::Delete(Table::Memory, space(namespace).and(key)));
        self.store.commit(batch).await.map_err(stored)
    }
}

/// The entries with a score above 0, the best first, of equal ones the one with the smaller key.
fn best(entries: Vec<MemoryEntry>, scores: Vec<f64>, limit: u32) -> Vec<MemoryHit> {
    let scored = entries.into_iter().zip(scores).filter(|(_, score)| *score > 0.0);
    let mut hits: Vec<MemoryHit> = scored.map(|(entry, score)| MemoryHit { entry, score }).collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.entry.key.cmp(&b.entry.key)));
    hits.truncate(limit as usize);
    hits
}

/// Reciprocal rank fusion of several lists of scores. An entry without a score in a list has no rank in it; equal
/// scores have the same rank.
#[expect(clippy::cast_precision_loss, reason = "ranks of at most a few thousand entries")]
fn fused(lists: &[Vec<f64>]) -> Vec<f64> {
    let mut sums = vec![0.0; lists.first().map_or(0, Vec::len)];
    for scores in lists {
        let mut order: Vec<usize> = (0..scores.len()).filter(|at| scores[*at] > 0.0).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        let mut rank = 0;
        for (place, at) in order.iter().enumerate() {
            if place == 0 || scores[*at] < scores[order[place - 1]] {
                rank = place + 1;
            }
            sums[*at] += 1.0 / (FUSION + rank as f64);
        }
    }
    sums
}

/// The text of an entry for a sentence model: without the names of fields.
fn meaning(entry: &MemoryEntry) -> String {
    let value = MemoryNote::read(entry).value;
    let text = match serde_json::from_value::<Episode>(value.clone()) {
        Ok(episode) => episode.words(),
        Err(_) => match value.as_str() {
            Some(text) => format!("{}: {text}", entry.key),
            None => entry.words(),
        },
    };
    truncate(&text, TEXT_BYTES_MAX)
}

/// A stored vector: the digest of its model and its text, then the numbers, little-endian.
struct Vector {
    sign: Digest,
    numbers: Vec<f32>,
}

impl Vector {
    fn write(&self) -> Vec<u8> {
        let numbers = self.numbers.iter().flat_map(|number| number.to_le_bytes());
        self.sign.as_bytes().iter().copied().chain(numbers).collect()
    }

    /// None if it is damaged.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (sign, rest) = bytes.split_first_chunk::<32>()?;
        let (numbers, rest) = rest.as_chunks::<4>();
        let numbers: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let is_whole = rest.is_empty() && numbers.len() <= DIMENSIONS_MAX && numbers.iter().all(|one| one.is_finite());
        is_whole.then_some(Self { sign: Digest::from(*sign), numbers })
    }

    /// Both have the length 1. None if their models differ after all.
    fn cosine(&self, other: &[f32]) -> Option<f32> {
        let is_alike = self.numbers.len() == other.len();
        is_alike.then(|| self.numbers.iter().zip(other).map(|(a, b)| a * b).sum())
    }
}

/// The prefix of the keys of a namespace's vectors.
fn space(namespace: &str) -> Key {
    Key::of("vectors").and(namespace)
}

fn stored(error: StoreError) -> MemoryError {
    MemoryError::Failed(error.to_string())
}
