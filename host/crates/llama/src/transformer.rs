//! The forward pass of a Llama, and the cache of keys and values that makes the next token cheap.
//!
//! All matrices become Q8_0 at load, whatever the file has: Q4_1 has no vector kernel, and one
//! format means one path. The cache can be cut back to any length, which is what lets a second
//! turn skip the first. There is no rope scaling, no bias, no mixture of experts: files that
//! need them are refused.

use std::io::{Read, Seek};
use std::ops::Range;
use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{DType, Device, Module, Tensor};
use candle_nn::ops::{rms_norm, silu, softmax_last_dim};
use candle_nn::rotary_emb::rope_i;

use crate::LlamaError;
use crate::gguf::{Gguf, TensorInfo};

/// Tokens computed in one pass. More would need more memory for the scores and gain nothing.
pub(crate) const BATCH_TOKENS: usize = 128;

/// Tokens that a new cache has room for; it doubles from there.
const CACHE_TOKENS_MIN: usize = 512;

const F32_BYTES: usize = 4;

/// The shape of a model. Every number is from the file and within the stated bounds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    pub(crate) layers: usize,
    pub(crate) width: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_width: usize,
    pub(crate) inner_width: usize,
    pub(crate) vocabulary: usize,
    /// Tokens that the model was trained for.
    pub(crate) context_tokens: usize,
    rope_base: f64,
    norm_epsilon: f64,
}

impl Config {
    pub(crate) fn read(gguf: &Gguf, vocabulary: usize) -> Result<Self, LlamaError> {
        let architecture = gguf.string("general.architecture")?;
        if architecture != "llama" {
            let what = format!("the architecture `{architecture}`");
            return Err(LlamaError::unsupported(what));
        }
        refuse_extensions(gguf)?;
        let width = gguf.count("llama.embedding_length", None, 1 << 14)?;
        let heads = gguf.count("llama.attention.head_count", None, 256)?;
        let kv_heads = gguf.count("llama.attention.head_count_kv", Some(heads), heads)?;
        let config = Config {
            layers: gguf.count("llama.block_count", None, 256)?,
            width,
            heads,
            kv_heads,
            head_width: width / heads,
            inner_width: gguf.count("llama.feed_forward_length", None, 1 << 16)?,
            vocabulary,
            context_tokens: gguf.count("llama.context_length", None, 1 << 20)?,
            rope_base: gguf.positive("llama.rope.freq_base", Some(10_000.0))?,
            norm_epsilon: gguf.positive("llama.attention.layer_norm_rms_epsilon", None)?,
        };
        config.check()?;
        for key in ["llama.rope.dimension_count", "llama.attention.key_length"] {
            if gguf.count(key, Some(config.head_width), 1 << 14)? != config.head_width {
                let what = format!("a `{key}` other than the width of a head");
                return Err(LlamaError::unsupported(what));
            }
        }
        Ok(config)
    }

    fn check(&self) -> Result<(), LlamaError> {
        let block = GgmlDType::Q8_0.block_size();
        let is_whole = self.width.is_multiple_of(self.heads)
            && self.heads.is_multiple_of(self.kv_heads)
            && self.head_width.is_multiple_of(2);
        if !is_whole {
            let reason = format!("its heads do not divide its width: {self:?}");
            return Err(LlamaError::bad_file(reason));
        }
        if !self.width.is_multiple_of(block) || !self.inner_width.is_multiple_of(block) {
            return Err(LlamaError::unsupported("widths that are no multiples of 32"));
        }
        Ok(())
    }

    fn kv_width(&self) -> usize {
        self.kv_heads * self.head_width
    }

    /// Bytes of one token in a cache.
    pub(crate) fn cache_token_bytes(&self) -> u64 {
        (2 * self.layers * self.kv_width() * F32_BYTES) as u64
    }

    /// Bytes that one more token of context costs apart from the cache: a row of the rope's two
    /// tables, and a column of the scores of a whole batch (raw, masked and normalised).
    pub(crate) fn context_token_bytes(&self) -> u64 {
        ((self.head_width + 3 * self.heads * BATCH_TOKENS) * F32_BYTES) as u64
    }

    /// Bytes of the weights once loaded, and of the largest tensor while it is converted.
    ///
    /// Counted from the shape, before a single tensor is read.
    pub(crate) fn weight_bytes(&self, gguf: &Gguf) -> u64 {
        let matrix = |rows: usize, columns: usize| (rows * columns) as u64 / 32 * 34;
        let (width, inner, kv) = (self.width, self.inner_width, self.kv_width());
        let layer = 2 * matrix(width, width)
            + 2 * matrix(kv, width)
            + 2 * matrix(inner, width)
            + matrix(width, inner)
            + (2 * width * F32_BYTES) as u64;
        let is_apart = gguf.has_tensor("output.weight") || is_repacked(self.width);
        let vocabularies = 1 + u64::from(is_apart);
        let largest = width * inner.max(self.vocabulary);
        self.layers as u64 * layer + vocabularies * matrix(self.vocabulary, width) + (2 * largest * F32_BYTES) as u64
    }
}

/// The weights of a model.
pub(crate) struct Transformer {
    config: Config,
    embedding: Arc<QTensor>,
    layers: Vec<Layer>,
    norm: Tensor,
    output: Matrix,
    /// Cosine and sine of each position and pair of a head's numbers.
    rope: (Tensor, Tensor),
}

struct Layer {
    attention_norm: Tensor,
    query: Matrix,
    key: Matrix,
    value: Matrix,
    attention_output: Matrix,
    inner_norm: Tensor,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

impl Transformer {
    /// Loads the weights for contexts of up to `context_tokens`.
    pub(crate) fn load(
        config: Config,
        gguf: &Gguf,
        file: &mut (impl Read + Seek),
        context_tokens: usize,
    ) -> Result<Self, LlamaError> {
        let mut loader = Loader { gguf, file };
        let (width, vocabulary) = (config.width, config.vocabulary);
        let embedding = Arc::new(loader.matrix("token_embd.weight", vocabulary, width)?);
        // Small models read and write the vocabulary with one matrix.
        let output = match gguf.has_tensor("output.weight") {
            true => Arc::new(loader.matrix("output.weight", vocabulary, width)?),
            false => Arc::clone(&embedding),
        };
        let layers = (0..config.layers).map(|index| loader.layer(index, &config)).collect::<Result<Vec<_>, _>>()?;
        Ok(Transformer {
            norm: loader.vector("output_norm.weight", width)?,
            output: Matrix::new(output)?,
            rope: rope_tables(&config, context_tokens)?,
            embedding,
            layers,
            config,
        })
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Appends the tokens to the cache and returns the logits after the last one.
    ///
    /// The caller reserves the room ([`Cache::reserve`]), passes at least one and at most
    /// [`BATCH_TOKENS`] tokens, and drops the cache after an error.
    pub(crate) fn forward(&self, tokens: &[u32], cache: &mut Cache) -> Result<Vec<f32>, LlamaError> {
        let (start, count) = (cache.tokens, tokens.len());
        let ids = Tensor::new(tokens, &Device::Cpu)?;
        let rope = (self.rope.0.narrow(0, start, count)?, self.rope.1.narrow(0, start, count)?);
        let mask = mask(start, count)?;
        let mut hidden = self.embedding.embedding(&ids)?;
        for (layer, room) in self.layers.iter().zip(&cache.layers) {
            let attended = self.attend(layer, &hidden, room, start, &rope, mask.as_ref())?;
            hidden = (hidden + attended)?;
            hidden = (&hidden + self.think(layer, &hidden)?)?;
        }
        cache.tokens += count;
        let last = self.normalise(&hidden.narrow(0, count - 1, 1)?, &self.norm)?;
        Ok(self.output.forward(&last)?.squeeze(0)?.to_vec1()?)
    }

    fn attend(
        &self,
        layer: &Layer,
        hidden: &Tensor,
        room: &(Tensor, Tensor),
        start: usize,
        (cosine, sine): &(Tensor, Tensor),
        mask: Option<&Tensor>,
    ) -> Result<Tensor, LlamaError> {
        let config = &self.config;
        let (count, _) = hidden.dims2()?;
        let input = self.normalise(hidden, &layer.attention_norm)?;
        // A projection as [1, heads, tokens, head width].
        let split = |matrix: &Matrix, heads: usize| {
            matrix.forward(&input)?.reshape((1, count, heads, config.head_width))?.transpose(1, 2)?.contiguous()
        };
        let query = rope_i(&split(&layer.query, config.heads)?, cosine, sine)?;
        let key = rope_i(&split(&layer.key, config.kv_heads)?, cosine, sine)?;
        let value = split(&layer.value, config.kv_heads)?;
        room.0.slice_set(&key.squeeze(0)?, 1, start)?;
        room.1.slice_set(&value.squeeze(0)?, 1, start)?;
        let keys = room.0.narrow(1, 0, start + count)?;
        let values = room.1.narrow(1, 0, start + count)?;

        // The heads that share a key are neighbours, so they are more rows of one product.
        let rows = config.heads / config.kv_heads * count;
        let query = query.reshape((config.kv_heads, rows, config.head_width))?;
        let query = (query * (1.0 / (config.head_width as f64).sqrt()))?;
        let mut scores = query.matmul(&keys.transpose(1, 2)?)?;
        if let Some(mask) = mask {
            let by_head = scores.reshape((config.heads, count, start + count))?;
            scores = by_head.broadcast_add(mask)?;
            scores = scores.reshape((config.kv_heads, rows, start + count))?;
        }
        let mixed = softmax_last_dim(&scores)?
            .matmul(&values)?
            .reshape((config.heads, count, config.head_width))?
            .transpose(0, 1)?
            .reshape((count, config.width))?;
        Ok(layer.attention_output.forward(&mixed)?)
    }

    fn think(&self, layer: &Layer, hidden: &Tensor) -> Result<Tensor, LlamaError> {
        let input = self.normalise(hidden, &layer.inner_norm)?;
        let gate = silu(&layer.gate.forward(&input)?)?;
        let product = (gate * layer.up.forward(&input)?)?;
        Ok(layer.down.forward(&product)?)
    }

    fn normalise(&self, hidden: &Tensor, weight: &Tensor) -> Result<Tensor, LlamaError> {
        #[expect(clippy::cast_possible_truncation, reason = "the file has it as a single-precision number")]
        let epsilon = self.config.norm_epsilon as f32;
        Ok(rms_norm(&hidden.contiguous()?, weight, epsilon)?)
    }
}

/// A matrix that computes the same on every CPU.
///
/// Where the rows are multiples of 256 and the CPU has the instructions for it, the tensor library
/// switches to a product that rounds its input more coarsely, and keeps a second copy of the
/// weights. The same seed would then give one text here and another there, so such a matrix is
/// cut into two of other widths, whose products are added.
struct Matrix {
    /// Neighbouring stretches of columns, with their numbers.
    parts: Vec<(QMatMul, usize)>,
}

impl Matrix {
    /// Makes the matrix of a Q8_0 tensor.
    fn new(whole: Arc<QTensor>) -> Result<Self, LlamaError> {
        let (rows, columns) = whole.shape().dims2()?;
        if !is_repacked(columns) {
            let parts = vec![(QMatMul::from_arc(whole)?, columns)];
            return Ok(Matrix { parts });
        }
        let left = columns / 2 / 256 * 256 + 32;
        let bytes = whole.data()?;
        let row_bytes = bytes.len() / rows;
        let left_bytes = left / GgmlDType::Q8_0.block_size() * GgmlDType::Q8_0.type_size();
        let part = |range: Range<usize>, columns: usize| {
            let rows_of_part = bytes.chunks_exact(row_bytes).map(|row| &row[range.clone()]);
            let picked = rows_of_part.collect::<Vec<_>>().concat();
            let storage = QStorage::from_data(picked.into(), &Device::Cpu, GgmlDType::Q8_0)?;
            let tensor = QTensor::new(storage, (rows, columns))?;
            Ok::<_, LlamaError>((QMatMul::from_qtensor(tensor)?, columns))
        };
        let parts = vec![part(0..left_bytes, left)?, part(left_bytes..row_bytes, columns - left)?];
        Ok(Matrix { parts })
    }

    /// The product with each row of `input`.
    fn forward(&self, input: &Tensor) -> candle_core::Result<Tensor> {
        let mut sum: Option<Tensor> = None;
        let mut start = 0;
        for (part, columns) in &self.parts {
            let product = part.forward(&input.narrow(1, start, *columns)?.contiguous()?)?;
            sum = Some(match sum {
                None => product,
                Some(sum) => (sum + product)?,
            });
            start += columns;
        }
        sum.ok_or_else(|| candle_core::Error::msg("a matrix without columns"))
    }
}

/// True for rows of a length for which the tensor library has a second kind of product.
fn is_repacked(columns: usize) -> bool {
    columns.is_multiple_of(256)
}

/// Keys and values of the tokens that were computed, a pair for each layer.
pub(crate) struct Cache {
    /// Each is [heads, room, head width].
    layers: Vec<(Tensor, Tensor)>,
    tokens: usize,
    room: usize,
}

impl Cache {
    pub(crate) fn new() -> Self {
        Cache { layers: Vec::new(), tokens: 0, room: 0 }
    }

    /// Number of computed tokens.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Forgets all but the first `tokens`; those that come later overwrite what is behind them.
    pub(crate) fn truncate(&mut self, tokens: usize) {
        self.tokens = self.tokens.min(tokens);
    }

    /// Number of allocated bytes.
    pub(crate) fn bytes(&self, config: &Config) -> u64 {
        self.room as u64 * config.cache_token_bytes()
    }

    /// The room that [`Cache::reserve`] makes for `tokens`: doubled, but never past `max`.
    pub(crate) fn room_for(&self, tokens: usize, max: usize) -> usize {
        if tokens <= self.room {
            return self.room;
        }
        tokens.next_power_of_two().max(CACHE_TOKENS_MIN).min(max.max(tokens))
    }

    /// Makes room for `tokens` in all, one layer after the other, so that only one is there twice.
    pub(crate) fn reserve(&mut self, tokens: usize, max: usize, config: &Config) -> Result<(), LlamaError> {
        let room = self.room_for(tokens, max);
        if room == self.room {
            return Ok(());
        }
        let grow = |old: Option<&Tensor>| -> Result<Tensor, LlamaError> {
            let shape = (config.kv_heads, room, config.head_width);
            let new = Tensor::zeros(shape, DType::F32, &Device::Cpu)?;
            if let Some(old) = old.filter(|_| self.tokens > 0) {
                new.slice_set(&old.narrow(1, 0, self.tokens)?.contiguous()?, 1, 0)?;
            }
            Ok(new)
        };
        if self.layers.is_empty() {
            self.layers =
                (0..config.layers).map(|_| Ok((grow(None)?, grow(None)?))).collect::<Result<_, LlamaError>>()?;
        } else {
            for index in 0..self.layers.len() {
                let (keys, values) = &self.layers[index];
                let grown = (grow(Some(keys))?, grow(Some(values))?);
                self.layers[index] = grown;
            }
        }
        self.room = room;
        Ok(())
    }
}

/// Reads tensors and brings them into the form that the forward pass uses.
struct Loader<'g, F> {
    gguf: &'g Gguf,
    file: &'g mut F,
}

impl<F: Read + Seek> Loader<'_, F> {
    fn layer(&mut self, index: usize, config: &Config) -> Result<Layer, LlamaError> {
        let (width, inner, kv) = (config.width, config.inner_width, config.kv_width());
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        Ok(Layer {
            attention_norm: self.vector(&name("attn_norm"), width)?,
            query: self.product(&name("attn_q"), width, width)?,
            key: self.product(&name("attn_k"), kv, width)?,
            value: self.product(&name("attn_v"), kv, width)?,
            attention_output: self.product(&name("attn_output"), width, width)?,
            inner_norm: self.vector(&name("ffn_norm"), width)?,
            gate: self.product(&name("ffn_gate"), inner, width)?,
            up: self.product(&name("ffn_up"), inner, width)?,
            down: self.product(&name("ffn_down"), width, inner)?,
        })
    }

    fn product(&mut self, name: &str, rows: usize, columns: usize) -> Result<Matrix, LlamaError> {
        Matrix::new(Arc::new(self.matrix(name, rows, columns)?))
    }

    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<QTensor, LlamaError> {
        let tensor = self.tensor(name, &[rows, columns])?;
        match tensor.dtype() {
            GgmlDType::Q8_0 => Ok(tensor),
            _ => {
                let plain = tensor.dequantize(&Device::Cpu)?;
                Ok(QTensor::quantize(&plain, GgmlDType::Q8_0)?)
            }
        }
    }

    fn vector(&mut self, name: &str, width: usize) -> Result<Tensor, LlamaError> {
        Ok(self.tensor(name, &[width])?.dequantize(&Device::Cpu)?)
    }

    /// The tensor as the file has it, if it has the expected shape.
    fn tensor(&mut self, name: &str, dims: &[usize]) -> Result<QTensor, LlamaError> {
        let info: &TensorInfo = self.gguf.tensor(name)?;
        if info.dims != dims {
            let found = &info.dims;
            let reason = format!("tensor `{name}` is {found:?} instead of {dims:?}");
            return Err(LlamaError::bad_file(reason));
        }
        let bytes = info.read(self.file)?;
        let storage = QStorage::from_data(bytes.into(), &Device::Cpu, info.dtype)?;
        Ok(QTensor::new(storage, dims)?)
    }
}

/// Things that a Llama file may ask for and this forward pass lacks; ignoring one of them would
/// give fluent nonsense.
fn refuse_extensions(gguf: &Gguf) -> Result<(), LlamaError> {
    if gguf.has_tensor("rope_freqs.weight") || gguf.has("llama.rope.scaling.type") {
        return Err(LlamaError::unsupported("rope scaling"));
    }
    if gguf.has("llama.expert_count") {
        return Err(LlamaError::unsupported("a mixture of experts"));
    }
    if gguf.has_tensor("blk.0.attn_q.bias") {
        return Err(LlamaError::unsupported("biases in its attention"));
    }
    Ok(())
}

fn rope_tables(config: &Config, tokens: usize) -> Result<(Tensor, Tensor), LlamaError> {
    let half = config.head_width / 2;
    let angle = |position: usize, pair: usize| {
        let exponent = -2.0 * pair as f64 / config.head_width as f64;
        position as f64 * config.rope_base.powf(exponent)
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the angle is computed in double precision, its cosine fits a single"
    )]
    let table = |function: fn(f64) -> f64| {
        let numbers: Vec<f32> =
            (0..tokens * half).map(|index| function(angle(index / half, index % half)) as f32).collect();
        Tensor::from_vec(numbers, (tokens, half), &Device::Cpu)
    };
    Ok((table(f64::cos)?, table(f64::sin)?))
}

/// The mask that hides later tokens from earlier ones of the same batch. A single token needs none.
fn mask(start: usize, count: usize) -> Result<Option<Tensor>, LlamaError> {
    if count == 1 {
        return Ok(None);
    }
    let total = start + count;
    let hidden = |index: usize| index % total > start + index / total;
    let numbers: Vec<f32> =
        (0..count * total).map(|index| if hidden(index) { f32::NEG_INFINITY } else { 0.0 }).collect();
    let mask = Tensor::from_vec(numbers, (1, count, total), &Device::Cpu)?;
    Ok(Some(mask))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_model;

    fn forward(model: &Transformer, batches: &[&[u32]]) -> (Vec<f32>, Cache) {
        let mut cache = Cache::new();
        let mut logits = Vec::new();
        for batch in batches {
            cache.reserve(cache.tokens() + batch.len(), 64, model.config()).expect("reserve");
            logits = model.forward(batch, &mut cache).expect("forward");
        }
        (logits, cache)
    }

    #[track_caller]
    fn check_close(left: &[f32], right: &[f32]) {
        let largest = left.iter().zip(right).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(left.len() == right.len() && largest < 1e-3, "differ by {largest}");
    }

    #[test]
    fn tokens_one_by_one_give_the_same_as_tokens_at_once() {
        let model = test_model::transformer();
        let (whole, _) = forward(&model, &[&[5, 9, 2, 70, 33]]);
        let (steps, cache) = forward(&model, &[&[5], &[9, 2], &[70], &[33]]);
        check_close(&whole, &steps);
        assert_eq!(cache.tokens(), 5);
        let (other, _) = forward(&model, &[&[5, 9, 3, 70, 33]]);
        assert_ne!(whole, other);
    }

    #[test]
    fn a_cache_that_was_cut_back_forgets_what_was_behind() {
        let model = test_model::transformer();
        let (_, mut cache) = forward(&model, &[&[5, 9, 200, 201, 202]]);
        cache.truncate(2);
        cache.truncate(4);
        assert_eq!(cache.tokens(), 2);
        let again = model.forward(&[2, 70, 33], &mut cache).expect("forward");
        let (whole, _) = forward(&model, &[&[5, 9, 2, 70, 33]]);
        check_close(&whole, &again);
    }

    #[test]
    fn a_cache_grows_by_doubling_and_keeps_what_it_has() {
        let model = test_model::transformer();
        let config = model.config();
        let (_, mut cache) = forward(&model, &[&[5, 9]]);
        assert_eq!(cache.room, 64);
        assert_eq!(cache.room_for(64, 4096), 64);
        assert_eq!(cache.room_for(65, 4096), 512);
        assert_eq!(cache.room_for(600, 4096), 1024);
        assert_eq!(cache.room_for(600, 700), 700);
        cache.reserve(65, 4096, config).expect("reserve");
        assert_eq!(cache.bytes(config), 512 * config.cache_token_bytes());
        let grown = model.forward(&[2, 70, 33], &mut cache).expect("forward");
        check_close(&forward(&model, &[&[5, 9, 2, 70, 33]]).0, &grown);
    }

    #[test]
    fn a_matrix_in_two_parts_gives_the_product_of_the_whole() {
        let numbers: Vec<f32> = (0_u8..=250).cycle().take(3 * 512).map(f32::from).collect();
        let plain = Tensor::from_vec(numbers, (3, 512), &Device::Cpu).expect("tensor");
        let whole = QTensor::quantize(&plain, GgmlDType::Q8_0).expect("quantize");
        let exact = whole.dequantize(&Device::Cpu).expect("dequantize");
        let matrix = Matrix::new(Arc::new(whole)).expect("matrix");
        assert!(matrix.parts.len() == 2 && !matrix.parts.iter().any(|part| is_repacked(part.1)));
        let input = Tensor::ones((1, 512), DType::F32, &Device::Cpu).expect("input");
        let row = |tensor: Tensor| -> Vec<f32> {
            let row = tensor.squeeze(0).and_then(|row| row.to_vec1());
            row.expect("row")
        };
        let product = row(matrix.forward(&input).expect("product"));
        let expected = exact.t().and_then(|exact| input.matmul(&exact));
        for (product, expected) in product.iter().zip(row(expected.expect("product"))) {
            assert!((product / expected - 1.0).abs() < 1e-3, "{product} {expected}");
        }
    }

    #[test]
    fn the_mask_hides_only_what_comes_later() {
        let mask = mask(1, 2).expect("mask").expect("two tokens need one");
        let rows: Vec<Vec<f32>> = mask.squeeze(0).and_then(|m| m.to_vec2()).expect("rows");
        assert_eq!(rows, [[0.0, 0.0, f32::NEG_INFINITY], [0.0, 0.0, 0.0]]);
        assert!(super::mask(9, 1).expect("mask").is_none());
    }
}
