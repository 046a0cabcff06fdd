//! The custom sections of a component, at its outermost level: its manifest, and texts about its producers.
//!
//! All of it is the author's own claim. Nothing within the component's modules is read, so a component of
//! 30 MB costs as little as a small one.

use crate::error::LoadError;
use longhaul_core::section::{MANIFEST, MANIFEST_BYTES_MAX};
use longhaul_core::text::truncate;
use std::collections::BTreeMap;
use wasmparser::{BinaryReader, Chunk, CustomSectionReader, Parser, Payload, ProducersSectionReader};

/// Sections that WebAssembly tools write, each a text.
const TEXTS: [&str; 7] = ["authors", "description", "homepage", "licenses", "revision", "source", "version"];

/// Longest of those texts that is shown, in bytes.
const TEXT_BYTES_MAX: usize = 1_000;

/// Most producers that are shown.
const PRODUCERS_MAX: usize = 50;

/// Most texts and kinds of producers that are kept: a file may have any number of sections.
const METADATA_MAX: usize = 100;

/// The result of [`sections`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sections {
    /// The text of its `plugin.toml`.
    pub manifest: Option<String>,
    /// The usual texts of custom sections, by their names; `producers` of a kind are joined by commas.
    pub metadata: BTreeMap<String, String>,
}

/// Reads the sections of the component `name`.
///
/// [`LoadError::NotAComponent`] if the bytes are corrupt or truncated, [`LoadError::Manifest`] if a manifest is
/// doubled, too long or no text.
pub fn sections(name: &str, bytes: &[u8]) -> Result<Sections, LoadError> {
    let mut found = Sections::default();
    match found.read(bytes) {
        Ok(()) => Ok(found),
        Err(Wrong::Format(reason)) => Err(LoadError::NotAComponent { name: name.to_owned(), reason }),
        Err(Wrong::Manifest(reason)) => Err(LoadError::Manifest { name: name.to_owned(), reason }),
    }
}

enum Wrong {
    Format(String),
    Manifest(String),
}

impl Sections {
    fn read(&mut self, bytes: &[u8]) -> Result<(), Wrong> {
        let corrupt =
            |error: wasmparser::BinaryReaderError| Wrong::Format(format!("it is corrupt or cut off: {error}"));
        let cut_off = || Wrong::Format("it is cut off".to_owned());
        let (mut parser, mut rest) = (Parser::new(0), bytes);
        while !rest.is_empty() {
            let Chunk::Parsed { consumed, payload } = parser.parse(rest, true).map_err(corrupt)? else {
                return Err(cut_off());
            };
            rest = &rest[consumed..];
            match payload {
                Payload::ModuleSection { unchecked_range, .. } | Payload::ComponentSection { unchecked_range, .. } => {
                    rest = rest.get(unchecked_range.len()..).ok_or_else(cut_off)?;
                }
                Payload::CustomSection(section) => self.take(&section)?,
                Payload::End(_) => break,
                _ => {}
            }
        }
        Ok(())
    }

    fn take(&mut self, section: &CustomSectionReader<'_>) -> Result<(), Wrong> {
        let text = || std::str::from_utf8(section.data());
        let wrong = |reason: &str| Wrong::Manifest(reason.to_owned());
        match section.name() {
            MANIFEST if self.manifest.is_some() => return Err(wrong("there are two")),
            MANIFEST if section.data().len() > MANIFEST_BYTES_MAX => {
                return Err(Wrong::Manifest(format!("it is longer than {MANIFEST_BYTES_MAX} bytes")));
            }
            MANIFEST => self.manifest = Some(text().map_err(|_| wrong("it is not UTF-8"))?.to_owned()),
            "producers" => self.producers(section),
            name if TEXTS.contains(&name) => {
                if let Ok(text) = text() {
                    self.keep(name.to_owned(), truncate(text, TEXT_BYTES_MAX));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Tools and their versions. Unreadable ones are left out: nothing depends on them.
    fn producers(&mut self, section: &CustomSectionReader<'_>) {
        let Ok(fields) = ProducersSectionReader::new(BinaryReader::new(section.data(), section.data_offset())) else {
            return;
        };
        for field in fields.into_iter().flatten().take(PRODUCERS_MAX) {
            let values = field.values.into_iter().flatten().take(PRODUCERS_MAX);
            let values: Vec<String> = values.map(|value| format!("{} {}", value.name, value.version)).collect();
            let text = truncate(values.join(", ").trim(), TEXT_BYTES_MAX);
            self.keep(truncate(field.name, TEXT_BYTES_MAX), text);
        }
    }

    fn keep(&mut self, name: String, text: String) {
        if self.metadata.len() < METADATA_MAX || self.metadata.contains_key(&name) {
            self.metadata.insert(name, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A component with these custom sections.
    fn component(sections: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
        // LEB128 in three bytes.
        let seven = |length: usize| u8::try_from(length & 127).unwrap();
        for (name, data) in sections {
            let length = 1 + name.len() + data.len();
            bytes.push(0);
            bytes.extend([seven(length) | 128, seven(length >> 7) | 128, seven(length >> 14)]);
            bytes.push(u8::try_from(name.len()).unwrap());
            bytes.extend(name.as_bytes());
            bytes.extend(*data);
        }
        bytes
    }

    #[test]
    fn a_manifest_is_found_once_or_refused() {
        let found = sections("a", &component(&[("other", b"x"), (MANIFEST, b"name = \"a\""), ("version", b"1.2")]));
        let found = found.unwrap();
        assert_eq!(found.manifest.as_deref(), Some("name = \"a\""));
        assert_eq!(found.metadata["version"], "1.2");
        assert_eq!(sections("a", &component(&[])).unwrap(), Sections::default());
        let refused = |bytes: &[u8]| sections("a", bytes).unwrap_err().to_string();
        assert!(refused(&component(&[(MANIFEST, b""), (MANIFEST, b"")])).ends_with("there are two"));
        assert!(refused(&component(&[(MANIFEST, b"\xff")])).ends_with("it is not UTF-8"));
        let long = vec![b'x'; MANIFEST_BYTES_MAX + 1];
        assert!(refused(&component(&[(MANIFEST, &long)])).ends_with("longer than 65536 bytes"));
        let whole = component(&[(MANIFEST, b"name = \"a\"")]);
        assert!(refused(&whole[..whole.len() - 3]).contains("cut off"));
    }

    #[test]
    fn what_lies_within_modules_does_not_count() {
        let mut inner = b"\0asm\x01\0\0\0".to_vec();
        inner.extend(&component(&[(MANIFEST, b"name = \"inner\"")])[8..]);
        let mut bytes = component(&[]);
        bytes.extend([1, u8::try_from(inner.len()).unwrap()]);
        bytes.extend(&inner);
        bytes.extend(&component(&[(MANIFEST, b"name = \"outer\"")])[8..]);
        assert_eq!(sections("a", &bytes).unwrap().manifest.as_deref(), Some("name = \"outer\""));
    }
}
