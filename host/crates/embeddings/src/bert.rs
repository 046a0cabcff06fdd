//! The forward pass of all-MiniLM-L6-v2: a BERT of six layers, whose mean over all pieces is the vector of a sentence.
//!
//! Its shape is written down here and not read from a file: the weights are those of one digest. Further content of a
//! file is ignored.

use crate::EmbeddingsError;
use candle_core::{Device, Module as _, Tensor};
use candle_nn::ops::softmax_last_dim;
use candle_nn::{LayerNorm, Linear};
use std::collections::HashMap;

/// The longest sentence that the model was made for, in pieces with its marks. Further pieces are ignored.
pub(crate) const PIECES_MAX: usize = 256;

/// Numbers of a vector.
pub(crate) const WIDTH: usize = 384;

const LAYERS: usize = 6;
const HEADS: usize = 12;
const HEAD_WIDTH: usize = WIDTH / HEADS;
const INNER_WIDTH: usize = 1_536;
const VOCABULARY: usize = 30_522;
const POSITIONS: usize = 512;
const NORM_EPSILON: f64 = 1e-12;

/// The weights.
pub(crate) struct Bert {
    words: Tensor,
    /// Embedding of each position, with that of the first sentence of a pair added: there is only one sentence.
    places: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attended: Linear,
    attended_norm: LayerNorm,
    inner: Linear,
    outer: Linear,
    outer_norm: LayerNorm,
}

impl Bert {
    /// The model of a safetensors file.
    pub(crate) fn read(file: &[u8]) -> Result<Self, EmbeddingsError> {
        let mut found = Weights(candle_core::safetensors::load_buffer(file, &Device::Cpu)?);
        let places = found.take("embeddings.position_embeddings.weight", &[POSITIONS, WIDTH])?;
        let kinds = found.take("embeddings.token_type_embeddings.weight", &[2, WIDTH])?;
        Ok(Self {
            words: found.take("embeddings.word_embeddings.weight", &[VOCABULARY, WIDTH])?,
            places: places.narrow(0, 0, PIECES_MAX)?.broadcast_add(&kinds.narrow(0, 0, 1)?)?,
            norm: found.norm("embeddings.LayerNorm")?,
            layers: (0..LAYERS).map(|number| found.layer(number)).collect::<Result<_, _>>()?,
        })
    }

    /// The vector of a sentence, of length 1. At least one piece and at most [`PIECES_MAX`].
    pub(crate) fn vector(&self, pieces: &[u32]) -> Result<Vec<f32>, EmbeddingsError> {
        let words = self.words.index_select(&Tensor::new(pieces, &Device::Cpu)?, 0)?;
        let mut hidden = self.norm.forward(&(words + self.places.narrow(0, 0, pieces.len())?)?)?;
        for layer in &self.layers {
            hidden = layer.forward(&hidden)?;
        }
        let mean: Vec<f32> = hidden.mean(0)?.to_vec1()?;
        let length = mean.iter().map(|number| number * number).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        Ok(mean.into_iter().map(|number| number / length).collect())
    }
}

impl Layer {
    fn forward(&self, hidden: &Tensor) -> candle_core::Result<Tensor> {
        let pieces = hidden.dim(0)?;
        let split = |linear: &Linear| {
            linear.forward(hidden)?.reshape((pieces, HEADS, HEAD_WIDTH))?.transpose(0, 1)?.contiguous()
        };
        let scale = 1.0 / (HEAD_WIDTH as f64).sqrt();
        let scores = (split(&self.query)?.matmul(&split(&self.key)?.transpose(1, 2)?.contiguous()?)? * scale)?;
        let mixed = softmax_last_dim(&scores)?.matmul(&split(&self.value)?)?;
        let mixed = mixed.transpose(0, 1)?.contiguous()?.reshape((pieces, WIDTH))?;
        let attended = self.attended_norm.forward(&(self.attended.forward(&mixed)? + hidden)?)?;
        let inner = self.inner.forward(&attended)?.gelu_erf()?;
        self.outer_norm.forward(&(self.outer.forward(&inner)? + attended)?)
    }
}

/// The tensors of a file.
struct Weights(HashMap<String, Tensor>);

impl Weights {
    fn take(&mut self, name: &str, shape: &[usize]) -> Result<Tensor, EmbeddingsError> {
        let missing = || EmbeddingsError::Compute { reason: format!("the file has no tensor `{name}` of {shape:?}") };
        self.0.remove(name).filter(|tensor| tensor.dims() == shape).ok_or_else(missing)
    }

    fn linear(&mut self, name: &str, rows: usize, columns: usize) -> Result<Linear, EmbeddingsError> {
        let weight = self.take(&format!("{name}.weight"), &[rows, columns])?;
        Ok(Linear::new(weight, Some(self.take(&format!("{name}.bias"), &[rows])?)))
    }

    fn norm(&mut self, name: &str) -> Result<LayerNorm, EmbeddingsError> {
        let weight = self.take(&format!("{name}.weight"), &[WIDTH])?;
        Ok(LayerNorm::new(weight, self.take(&format!("{name}.bias"), &[WIDTH])?, NORM_EPSILON))
    }

    fn layer(&mut self, number: usize) -> Result<Layer, EmbeddingsError> {
        let of = |name: &str| format!("encoder.layer.{number}.{name}");
        Ok(Layer {
            query: self.linear(&of("attention.self.query"), WIDTH, WIDTH)?,
            key: self.linear(&of("attention.self.key"), WIDTH, WIDTH)?,
            value: self.linear(&of("attention.self.value"), WIDTH, WIDTH)?,
            attended: self.linear(&of("attention.output.dense"), WIDTH, WIDTH)?,
            attended_norm: self.norm(&of("attention.output.LayerNorm"))?,
            inner: self.linear(&of("intermediate.dense"), INNER_WIDTH, WIDTH)?,
            outer: self.linear(&of("output.dense"), WIDTH, INNER_WIDTH)?,
            outer_norm: self.norm(&of("output.LayerNorm"))?,
        })
    }
}
