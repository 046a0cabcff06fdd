//! A tiny model made in memory: a whole GGUF file of some hundred kilobytes with random weights.
//!
//! It says nothing sensible, but everything around the weights can be tested with it, without a
//! download. It also writes the format independently of the reader.

use std::io::Cursor;

use crate::gguf::Gguf;
use crate::model::{LoadOptions, LoadedModel};
use crate::tokenizer::Tokenizer;
use crate::transformer::{Config, Transformer};

pub(crate) const TEMPLATE: &str = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// Bytes at the start in which damage is tried: all of the metadata's numbers and the first
/// tensors' entries are below.
pub(crate) const HEADER_BYTES_PROBED: usize = 9_000;

const WIDTH: u64 = 32;
const KV_WIDTH: u64 = 16;
const INNER: u64 = 64;
const LAYERS: u32 = 2;
const SPECIALS: [&str; 3] = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
const MERGES: [&str; 4] = ["Ġ h", "l l", "e ll", "h ell"];

pub(crate) fn model() -> LoadedModel {
    let bytes = bytes();
    let length = bytes.len() as u64;
    LoadedModel::read(Cursor::new(bytes), length, &LoadOptions::default()).expect("the made model")
}

pub(crate) fn tokenizer() -> Tokenizer {
    Tokenizer::read(&gguf(&bytes())).expect("the made tokenizer")
}

pub(crate) fn transformer() -> Transformer {
    let bytes = bytes();
    let gguf = gguf(&bytes);
    let config = Config::read(&gguf, vocabulary().len()).expect("the made shape");
    Transformer::load(config, &gguf, &mut Cursor::new(&bytes), 1_024).expect("the made weights")
}

/// The whole file.
pub(crate) fn bytes() -> Vec<u8> {
    let mut file = Writer::default();
    file.bytes.extend(b"GGUF\x03\0\0\0");
    let tensors = tensors();
    file.u64(tensors.len() as u64);
    file.metadata();
    let mut offset = 0_u64;
    for (name, dims) in &tensors {
        file.string(name);
        file.u32(u32::try_from(dims.len()).expect("rank"));
        dims.iter().for_each(|dim| file.u64(*dim));
        file.u32(0);
        file.u64(offset);
        offset += (dims.iter().product::<u64>() * 4).next_multiple_of(32);
    }
    file.align();
    let mut seed = 1_u32;
    for (name, dims) in &tensors {
        for _ in 0..dims.iter().product::<u64>() {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let random = f32::from(u16::try_from(seed >> 16).expect("16 bits")) / 65_536.0 - 0.5;
            let weight = if name.contains("norm") { 1.0 } else { random };
            file.bytes.extend(weight.to_le_bytes());
        }
        file.align();
    }
    file.bytes
}

fn gguf(bytes: &[u8]) -> Gguf {
    Gguf::read(bytes, bytes.len() as u64).expect("the made file")
}

fn vocabulary() -> Vec<String> {
    let bytes = (0..=255_u8).map(|byte| match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        0..=0x20 => char::from_u32(0x100 + u32::from(byte)).expect("a character"),
        0x7f..=0xa0 => char::from_u32(0xa2 + u32::from(byte)).expect("a character"),
        0xad => '\u{143}',
    });
    let merged = MERGES.iter().map(|merge| merge.replace(' ', ""));
    SPECIALS.iter().map(ToString::to_string).chain(bytes.map(String::from)).chain(merged).collect()
}

fn tensors() -> Vec<(String, Vec<u64>)> {
    let words = vocabulary().len() as u64;
    let mut tensors =
        vec![("token_embd.weight".to_owned(), vec![WIDTH, words]), ("output_norm.weight".to_owned(), vec![WIDTH])];
    for layer in 0..LAYERS {
        for (part, dims) in [
            ("attn_norm", vec![WIDTH]),
            ("attn_q", vec![WIDTH, WIDTH]),
            ("attn_k", vec![WIDTH, KV_WIDTH]),
            ("attn_v", vec![WIDTH, KV_WIDTH]),
            ("attn_output", vec![WIDTH, WIDTH]),
            ("ffn_norm", vec![WIDTH]),
            ("ffn_gate", vec![WIDTH, INNER]),
            ("ffn_up", vec![WIDTH, INNER]),
            ("ffn_down", vec![INNER, WIDTH]),
        ] {
            tensors.push((format!("blk.{layer}.{part}.weight"), dims));
        }
    }
    tensors
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn metadata(&mut self) {
        self.u64(16);
        self.text("general.architecture", "llama");
        self.text("general.name", "tiny");
        self.number("llama.block_count", LAYERS);
        self.number("llama.context_length", 1_024);
        self.number("llama.embedding_length", 32);
        self.number("llama.feed_forward_length", 64);
        self.number("llama.attention.head_count", 4);
        self.number("llama.attention.head_count_kv", 2);
        self.key("llama.attention.layer_norm_rms_epsilon", 6);
        self.bytes.extend(1e-5_f32.to_le_bytes());
        self.text("tokenizer.ggml.model", "gpt2");
        self.text("tokenizer.ggml.pre", "smollm");
        self.number("tokenizer.ggml.eos_token_id", 2);
        self.text("tokenizer.chat_template", TEMPLATE);
        let words = vocabulary();
        self.list("tokenizer.ggml.tokens", 8, words.len());
        words.iter().for_each(|word| self.string(word));
        self.list("tokenizer.ggml.token_type", 5, words.len());
        for index in 0..words.len() {
            self.u32(if index < SPECIALS.len() { 3 } else { 1 });
        }
        self.list("tokenizer.ggml.merges", 8, MERGES.len());
        MERGES.iter().for_each(|merge| self.string(merge));
    }

    fn text(&mut self, key: &str, value: &str) {
        self.key(key, 8);
        self.string(value);
    }

    fn number(&mut self, key: &str, value: u32) {
        self.key(key, 4);
        self.u32(value);
    }

    fn list(&mut self, key: &str, kind: u32, length: usize) {
        self.key(key, 9);
        self.u32(kind);
        self.u64(length as u64);
    }

    fn key(&mut self, key: &str, kind: u32) {
        self.string(key);
        self.u32(kind);
    }

    fn string(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    fn u32(&mut self, number: u32) {
        self.bytes.extend(number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.bytes.extend(number.to_le_bytes());
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(32), 0);
    }
}
