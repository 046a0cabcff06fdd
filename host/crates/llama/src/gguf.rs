//! The GGUF container: metadata, the table of tensors, and a tensor's bytes.
//!
//! Everything in the file is hostile. Before a count or a length leads to an allocation it is compared with the rest of
//! the file, so that a header of forty bytes cannot cause an allocation of a terabyte. This module refuses files of
//! version 1, big-endian files, nested arrays and split files.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};

use candle_core::quantized::GgmlDType;

use crate::LlamaError;

/// Metadata entries of one file; real ones have under a hundred.
const ENTRIES_MAX: u64 = 4_096;
/// Tensors of one file; real ones have nine a layer.
const TENSORS_MAX: u64 = 16_384;
/// Elements of all metadata arrays together. A vocabulary has three arrays of up to 260,000.
const ARRAY_ELEMENTS_MAX: u64 = 1 << 21;
/// Longest single string. The chat template is the longest, at some kilobytes.
const STRING_BYTES_MAX: u64 = 1 << 20;

/// The parsed header of a file.
#[derive(Debug)]
pub(crate) struct Gguf {
    metadata: HashMap<String, Value>,
    tensors: HashMap<String, TensorInfo>,
}

/// A metadata value. Numbers are widened: the file's writer chose their width freely.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Integer(i128),
    Float(f64),
    Bool(bool),
    String(String),
    Integers(Vec<i64>),
    Floats(Vec<f32>),
    Strings(Vec<String>),
}

/// The place of a tensor. Offset and length are known to be inside the file.
#[derive(Debug, Clone)]
pub(crate) struct TensorInfo {
    /// Outermost dimension first, as the tensor library counts; the file counts the other way.
    pub(crate) dims: Vec<usize>,
    pub(crate) dtype: GgmlDType,
    offset: u64,
    bytes: u64,
}

impl Gguf {
    /// Reads the header of a file that is `file_bytes` long.
    pub(crate) fn read(file: impl Read, file_bytes: u64) -> Result<Self, LlamaError> {
        let mut reader = Bounded { inner: file, left: file_bytes, array_elements_left: ARRAY_ELEMENTS_MAX };
        if &reader.array::<4>()? != b"GGUF" {
            return Err(LlamaError::bad_file("it does not start with `GGUF`"));
        }
        let version = reader.u32()?;
        if !(2..=3).contains(&version) {
            let what = format!("version 2 or 3 of GGUF, and has {version}");
            return Err(LlamaError::unsupported(what));
        }
        let tensor_count = at_most(reader.u64()?, TENSORS_MAX, "tensors")?;
        let entry_count = at_most(reader.u64()?, ENTRIES_MAX, "metadata entries")?;
        let metadata = read_metadata(&mut reader, entry_count)?;
        let raw = (0..tensor_count).map(|_| read_tensor_entry(&mut reader)).collect::<Result<Vec<_>, _>>()?;
        let alignment = alignment(&metadata)?;
        let data_start = (file_bytes - reader.left).next_multiple_of(alignment);
        let tensors = place_tensors(raw, data_start, file_bytes)?;
        Ok(Gguf { metadata, tensors })
    }

    /// The tensor of that name.
    pub(crate) fn tensor(&self, name: &str) -> Result<&TensorInfo, LlamaError> {
        self.tensors.get(name).ok_or_else(|| LlamaError::bad_file(format!("tensor `{name}` is missing")))
    }

    pub(crate) fn has_tensor(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.metadata.contains_key(key)
    }

    /// A whole number from 1 to `max`, or `default` when the key is absent.
    pub(crate) fn count(&self, key: &str, default: Option<usize>, max: usize) -> Result<usize, LlamaError> {
        let number = match (self.metadata.get(key), default) {
            (Some(Value::Integer(number)), _) => *number,
            (None, Some(default)) => return Ok(default),
            (other, _) => return Err(wrong_type(key, "a whole number", other)),
        };
        usize::try_from(number)
            .ok()
            .filter(|count| (1..=max).contains(count))
            .ok_or_else(|| LlamaError::bad_file(format!("`{key}` is {number}, not from 1 to {max}")))
    }

    /// A token id below `vocabulary`, if the key is there.
    pub(crate) fn token_id(&self, key: &str, vocabulary: usize) -> Result<Option<u32>, LlamaError> {
        match self.metadata.get(key) {
            None => Ok(None),
            Some(Value::Integer(id)) => u32::try_from(*id)
                .ok()
                .filter(|id| (*id as usize) < vocabulary)
                .map(Some)
                .ok_or_else(|| LlamaError::bad_file(format!("`{key}` is {id}, of {vocabulary} tokens"))),
            other => Err(wrong_type(key, "a token id", other)),
        }
    }

    /// A finite positive number, or `default` when the key is absent.
    pub(crate) fn positive(&self, key: &str, default: Option<f64>) -> Result<f64, LlamaError> {
        let number = match (self.metadata.get(key), default) {
            (Some(Value::Float(number)), _) => *number,
            (None, Some(default)) => return Ok(default),
            (other, _) => return Err(wrong_type(key, "a fraction", other)),
        };
        if number.is_finite() && number > 0.0 {
            Ok(number)
        } else {
            let reason = format!("`{key}` is {number}, not above 0");
            Err(LlamaError::bad_file(reason))
        }
    }

    pub(crate) fn flag(&self, key: &str) -> Result<bool, LlamaError> {
        match self.metadata.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            other => Err(wrong_type(key, "true or false", other)),
        }
    }

    pub(crate) fn string(&self, key: &str) -> Result<&str, LlamaError> {
        match self.metadata.get(key) {
            Some(Value::String(text)) => Ok(text),
            other => Err(wrong_type(key, "a string", other)),
        }
    }

    pub(crate) fn strings(&self, key: &str) -> Result<&[String], LlamaError> {
        match self.metadata.get(key) {
            Some(Value::Strings(list)) => Ok(list),
            other => Err(wrong_type(key, "a list of strings", other)),
        }
    }

    pub(crate) fn integers(&self, key: &str) -> Result<&[i64], LlamaError> {
        match self.metadata.get(key) {
            Some(Value::Integers(list)) => Ok(list),
            other => Err(wrong_type(key, "a list of whole numbers", other)),
        }
    }
}

impl TensorInfo {
    /// The tensor's bytes as the file has them.
    pub(crate) fn read(&self, file: &mut (impl Read + Seek)) -> Result<Vec<u8>, LlamaError> {
        let length = usize::try_from(self.bytes)
            .map_err(|_| LlamaError::bad_file("a tensor is larger than the address space"))?;
        let mut bytes = vec![0; length];
        file.seek(SeekFrom::Start(self.offset)).and_then(|_| file.read_exact(&mut bytes)).map_err(read_error)?;
        Ok(bytes)
    }
}

/// A reader that knows how much of the file is left.
struct Bounded<R> {
    inner: R,
    left: u64,
    array_elements_left: u64,
}

impl<R: Read> Bounded<R> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], LlamaError> {
        let mut bytes = [0; N];
        self.reserve(N as u64)?;
        self.inner.read_exact(&mut bytes).map_err(read_error)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, LlamaError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, LlamaError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn string(&mut self) -> Result<String, LlamaError> {
        let length = at_most(self.u64()?, STRING_BYTES_MAX, "bytes in a string")?;
        self.reserve(length)?;
        // Bounded by STRING_BYTES_MAX, so it fits a usize.
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        self.inner.read_exact(&mut bytes).map_err(read_error)?;
        String::from_utf8(bytes).map_err(|_| LlamaError::bad_file("a string is not UTF-8"))
    }

    /// Takes `count` bytes off the rest of the file, or reports a truncated file.
    fn reserve(&mut self, count: u64) -> Result<(), LlamaError> {
        self.left =
            self.left.checked_sub(count).ok_or_else(|| LlamaError::bad_file("it ends in the middle of its header"))?;
        Ok(())
    }

    fn value(&mut self) -> Result<Value, LlamaError> {
        match self.u32()? {
            8 => Ok(Value::String(self.string()?)),
            9 => self.list(),
            kind => self.scalar(kind),
        }
    }

    fn scalar(&mut self, kind: u32) -> Result<Value, LlamaError> {
        Ok(match kind {
            0 => Value::Integer(u8::from_le_bytes(self.array()?).into()),
            1 => Value::Integer(i8::from_le_bytes(self.array()?).into()),
            2 => Value::Integer(u16::from_le_bytes(self.array()?).into()),
            3 => Value::Integer(i16::from_le_bytes(self.array()?).into()),
            4 => Value::Integer(u32::from_le_bytes(self.array()?).into()),
            5 => Value::Integer(i32::from_le_bytes(self.array()?).into()),
            6 => Value::Float(f32::from_le_bytes(self.array()?).into()),
            7 => Value::Bool(self.array::<1>()?[0] != 0),
            10 => Value::Integer(u64::from_le_bytes(self.array()?).into()),
            11 => Value::Integer(i64::from_le_bytes(self.array()?).into()),
            12 => Value::Float(f64::from_le_bytes(self.array()?)),
            other => {
                let reason = format!("metadata has the unknown type {other}");
                return Err(LlamaError::bad_file(reason));
            }
        })
    }

    fn list(&mut self) -> Result<Value, LlamaError> {
        let kind = self.u32()?;
        let count = at_most(self.u64()?, self.array_elements_left, "array elements")?;
        self.array_elements_left -= count;
        match kind {
            8 => Ok(Value::Strings(self.repeat(count, 8, Self::string)?)),
            9 => Err(LlamaError::unsupported("arrays of arrays in its metadata")),
            6 => Ok(Value::Floats(self.repeat(count, 4, |reader| Ok(f32::from_le_bytes(reader.array()?)))?)),
            kind => Ok(Value::Integers(self.repeat(count, 1, |reader| match reader.scalar(kind)? {
                Value::Integer(number) => {
                    i64::try_from(number).map_err(|_| LlamaError::bad_file("an array holds a number past 2^63"))
                }
                Value::Bool(flag) => Ok(flag.into()),
                _ => Err(LlamaError::unsupported("an array of doubles in its metadata")),
            })?)),
        }
    }

    /// Reads `count` elements of at least `element_bytes_min` each.
    fn repeat<T>(
        &mut self,
        count: u64,
        element_bytes_min: u64,
        read: impl Fn(&mut Self) -> Result<T, LlamaError>,
    ) -> Result<Vec<T>, LlamaError> {
        if count.saturating_mul(element_bytes_min) > self.left {
            let reason = format!("an array of {count} elements does not fit into the file");
            return Err(LlamaError::bad_file(reason));
        }
        (0..count).map(|_| read(self)).collect()
    }
}

/// A tensor's entry before its place is checked.
struct RawTensor {
    name: String,
    dims: Vec<u64>,
    dtype: GgmlDType,
    offset: u64,
}

fn read_metadata<R: Read>(reader: &mut Bounded<R>, count: u64) -> Result<HashMap<String, Value>, LlamaError> {
    let mut metadata = HashMap::new();
    for _ in 0..count {
        let key = reader.string()?;
        let value = reader.value()?;
        if metadata.insert(key.clone(), value).is_some() {
            let reason = format!("metadata has `{key}` twice");
            return Err(LlamaError::bad_file(reason));
        }
    }
    Ok(metadata)
}

fn read_tensor_entry<R: Read>(reader: &mut Bounded<R>) -> Result<RawTensor, LlamaError> {
    let name = reader.string()?;
    let rank = reader.u32()?;
    if !(1..=4).contains(&rank) {
        let reason = format!("tensor `{name}` has {rank} dimensions");
        return Err(LlamaError::bad_file(reason));
    }
    let mut dims = (0..rank).map(|_| reader.u64()).collect::<Result<Vec<_>, _>>()?;
    dims.reverse();
    let dtype = dtype(reader.u32()?, &name)?;
    let offset = reader.u64()?;
    Ok(RawTensor { name, dims, dtype, offset })
}

fn place_tensors(
    raw: Vec<RawTensor>,
    data_start: u64,
    file_bytes: u64,
) -> Result<HashMap<String, TensorInfo>, LlamaError> {
    let mut tensors = HashMap::new();
    for tensor in raw {
        let info = place_tensor(&tensor, data_start, file_bytes).ok_or_else(|| {
            let (name, dims) = (&tensor.name, &tensor.dims);
            LlamaError::bad_file(format!("tensor `{name}` {dims:?} does not lie in the file"))
        })?;
        if tensors.insert(tensor.name.clone(), info).is_some() {
            let reason = format!("tensor `{}` is there twice", tensor.name);
            return Err(LlamaError::bad_file(reason));
        }
    }
    Ok(tensors)
}

/// `None` when a product overflows or the bytes are not all inside the file.
fn place_tensor(tensor: &RawTensor, data_start: u64, file_bytes: u64) -> Option<TensorInfo> {
    let elements = tensor.dims.iter().try_fold(1_u64, |product, dim| product.checked_mul(*dim))?;
    let block_elements = tensor.dtype.block_size() as u64;
    let row_is_whole = tensor.dims.last()?.is_multiple_of(block_elements);
    let bytes = (elements / block_elements).checked_mul(tensor.dtype.type_size() as u64)?;
    let offset = data_start.checked_add(tensor.offset)?;
    let end = offset.checked_add(bytes)?;
    let dims = tensor.dims.iter().map(|dim| usize::try_from(*dim).ok()).collect::<Option<Vec<_>>>()?;
    (row_is_whole && elements > 0 && end <= file_bytes).then_some(TensorInfo {
        dims,
        dtype: tensor.dtype,
        offset,
        bytes,
    })
}

fn dtype(number: u32, tensor: &str) -> Result<GgmlDType, LlamaError> {
    Ok(match number {
        0 => GgmlDType::F32,
        1 => GgmlDType::F16,
        2 => GgmlDType::Q4_0,
        3 => GgmlDType::Q4_1,
        6 => GgmlDType::Q5_0,
        7 => GgmlDType::Q5_1,
        8 => GgmlDType::Q8_0,
        10 => GgmlDType::Q2K,
        11 => GgmlDType::Q3K,
        12 => GgmlDType::Q4K,
        13 => GgmlDType::Q5K,
        14 => GgmlDType::Q6K,
        30 => GgmlDType::BF16,
        other => {
            let what = format!("the number format {other} for tensor `{tensor}`");
            return Err(LlamaError::unsupported(what));
        }
    })
}

fn alignment(metadata: &HashMap<String, Value>) -> Result<u64, LlamaError> {
    match metadata.get("general.alignment") {
        None => Ok(32),
        Some(Value::Integer(number)) => u64::try_from(*number)
            .ok()
            .filter(|alignment| alignment.is_power_of_two() && *alignment <= 1 << 16)
            .ok_or_else(|| LlamaError::bad_file(format!("its alignment is {number}"))),
        other => Err(wrong_type("general.alignment", "a whole number", other)),
    }
}

fn at_most(count: u64, max: u64, what: &str) -> Result<u64, LlamaError> {
    if count > max {
        let reason = format!("it claims {count} {what}, and {max} are allowed");
        return Err(LlamaError::bad_file(reason));
    }
    Ok(count)
}

fn wrong_type(key: &str, expected: &str, found: Option<&Value>) -> LlamaError {
    let state = if found.is_some() { "is not" } else { "is missing; it should be" };
    LlamaError::bad_file(format!("`{key}` {state} {expected}"))
}

fn read_error(source: std::io::Error) -> LlamaError {
    if source.kind() == std::io::ErrorKind::UnexpectedEof {
        return LlamaError::bad_file("it ends too early");
    }
    LlamaError::Io { what: "the model file".into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_model;

    fn read(bytes: &[u8]) -> Result<Gguf, LlamaError> {
        Gguf::read(bytes, bytes.len() as u64)
    }

    fn header(tensors: u64, entries: u64) -> Vec<u8> {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend(tensors.to_le_bytes());
        bytes.extend(entries.to_le_bytes());
        bytes
    }

    #[track_caller]
    fn check_refused(bytes: &[u8], expected: &str) {
        let message = read(bytes).expect_err("refuse the file").to_string();
        assert!(message.contains(expected), "{message}");
    }

    #[test]
    fn a_made_file_is_read_back() {
        let gguf = read(&test_model::bytes()).expect("read");
        assert_eq!(gguf.string("general.architecture").expect("key"), "llama");
        assert_eq!(gguf.tensor("output_norm.weight").expect("tensor").dims, [32]);
        assert!(gguf.tensor("nothing").is_err());
    }

    #[test]
    fn counts_past_the_file_are_refused_before_they_are_allocated() {
        check_refused(b"GGML", "does not start");
        check_refused(b"GGUF\x03", "middle of its header");
        check_refused(&header(u64::MAX, 0), "tensors");
        check_refused(&header(0, u64::MAX), "metadata entries");
        let mut long_key = header(0, 1);
        long_key.extend((STRING_BYTES_MAX + 1).to_le_bytes());
        check_refused(&long_key, "bytes in a string");
        let mut cut_key = header(0, 1);
        cut_key.extend(STRING_BYTES_MAX.to_le_bytes());
        check_refused(&cut_key, "middle of its header");
        let mut long_list = header(0, 1);
        long_list.extend([1, 0, 0, 0, 0, 0, 0, 0, b'k', 9, 0, 0, 0, 8, 0, 0, 0]);
        long_list.extend(ARRAY_ELEMENTS_MAX.to_le_bytes());
        check_refused(&long_list, "does not fit into the file");
    }

    #[test]
    fn a_tensor_outside_the_file_is_refused() {
        for (rows, offset) in [(u64::MAX, 0), (1 << 40, 0), (1, u64::MAX), (1, 1), (0, 0)] {
            let mut bytes = header(1, 0);
            bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, b't', 2, 0, 0, 0]);
            bytes.extend(32_u64.to_le_bytes());
            bytes.extend(rows.to_le_bytes());
            bytes.extend(8_u32.to_le_bytes());
            bytes.extend(offset.to_le_bytes());
            bytes.resize(bytes.len().next_multiple_of(32) + 34, 0);
            check_refused(&bytes, "does not lie in the file");
        }
    }

    #[test]
    fn a_file_cut_anywhere_gives_an_error_and_no_panic() {
        let bytes = test_model::bytes();
        for length in (0..bytes.len()).step_by(7) {
            assert!(read(&bytes[..length]).is_err(), "{length} of {}", bytes.len());
        }
    }
}
