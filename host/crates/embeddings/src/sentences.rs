//! The model as an embedder: loaded when it is first asked, one sentence at a time.

use crate::bert::{Bert, PIECES_MAX, WIDTH};
use crate::{EmbeddingsError, Pieces};
use longhaul_core::Digest;
use longhaul_core::memory::Embedder;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Grows when the same files give other vectors, because of how a text is cut or a vector made.
const VERSION: &[u8] = b"1";

/// The cosine from which on two texts mean something alike. Of the paraphrases in `tests/it/minilm.rs` 18 of 20 have
/// more than that with what they ask for, and questions that nothing answers have at most 0.15 with anything; the
/// model's authors name no number.
const ALIKE_MIN: f32 = 0.25;

/// A file that has to have a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Path of the file.
    pub path: PathBuf,
    /// The SHA-256 of its bytes.
    pub digest: Digest,
    /// Most bytes that are read of the file.
    pub bytes_max: u64,
}

/// The files of all-MiniLM-L6-v2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFiles {
    /// The weights, safetensors.
    pub weights: Pinned,
    /// The vocabulary, a piece a line.
    pub vocabulary: Pinned,
}

/// A sentence model. It has about 180 MB while it is loaded and 91 MB from then on, for as long as it lives.
pub struct Sentences {
    files: ModelFiles,
    /// The loaded model, for one sentence at a time: all work shares the processor, and a product of matrices uses all
    /// of it.
    loaded: Arc<Mutex<Option<Loaded>>>,
}

struct Loaded {
    bert: Bert,
    pieces: Pieces,
}

impl Sentences {
    /// A model of these files, which are read when it is first asked.
    #[must_use]
    pub fn new(files: ModelFiles) -> Self {
        Self { files, loaded: Arc::default() }
    }
}

#[async_trait::async_trait]
impl Embedder for Sentences {
    fn model(&self) -> Digest {
        Digest::of_parts(&[self.files.weights.digest.as_bytes(), self.files.vocabulary.digest.as_bytes(), VERSION])
    }

    fn alike_min(&self) -> f32 {
        ALIKE_MIN
    }

    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, String> {
        let mut loaded = Arc::clone(&self.loaded).lock_owned().await;
        let files = self.files.clone();
        let made = tokio::task::spawn_blocking(move || {
            let model = match loaded.take() {
                Some(model) => model,
                None => Loaded::read(&files)?,
            };
            let vectors = texts.iter().map(|text| model.vector(text)).collect::<Result<Vec<_>, _>>();
            *loaded = Some(model);
            vectors
        });
        let made = made
            .await
            .map_err(|stopped| stopped.to_string())
            .and_then(|made: Result<_, EmbeddingsError>| made.map_err(|error| error.to_string()));
        made.inspect_err(|error| tracing::warn!("what texts mean is not known, so their words alone count: {error}"))
    }
}

impl Loaded {
    fn read(files: &ModelFiles) -> Result<Self, EmbeddingsError> {
        let vocabulary = String::from_utf8(files.vocabulary.read()?);
        let vocabulary = vocabulary.map_err(|error| EmbeddingsError::Vocabulary { reason: error.to_string() })?;
        Ok(Self { pieces: Pieces::read(&vocabulary)?, bert: Bert::read(&files.weights.read()?)? })
    }

    fn vector(&self, text: &str) -> Result<Vec<f32>, EmbeddingsError> {
        let vector = self.bert.vector(&self.pieces.of(text, PIECES_MAX))?;
        debug_assert_eq!(vector.len(), WIDTH);
        Ok(vector)
    }
}

impl Pinned {
    /// The file's bytes, whose digest is checked before they are parsed.
    fn read(&self) -> Result<Vec<u8>, EmbeddingsError> {
        let failed = |source| EmbeddingsError::Io { path: self.path.clone(), source };
        let file = std::fs::File::open(&self.path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(self.bytes_max).read_to_end(&mut bytes).map_err(failed)?;
        let found = Digest::of(&bytes);
        if found != self.digest {
            let (found, expected) = (found.to_string(), self.digest.to_string());
            return Err(EmbeddingsError::Other { path: self.path.clone(), found, expected });
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_is_not_the_one_that_was_tried_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, content: &str, digest: Digest| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).expect("ours");
            Pinned { path, digest, bytes_max: 1 << 20 }
        };
        let files = ModelFiles {
            weights: file("model.safetensors", "weights", Digest::of(b"other weights")),
            vocabulary: file("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n", Digest::of(b"[UNK]\n[CLS]\n[SEP]\n")),
        };
        let said = Sentences::new(files.clone()).embed(vec!["x".into()]).await.expect_err("refused");
        assert!(said.contains("remove it and pull the model again"), "{said}");
        let missing = Pinned { path: folder.path().join("none"), ..files.vocabulary.clone() };
        let said =
            Sentences::new(ModelFiles { vocabulary: missing, ..files }).embed(Vec::new()).await.expect_err("refused");
        assert!(said.contains("longhaul models pull minilm"), "{said}");
    }
}
