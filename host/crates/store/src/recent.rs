//! The rows that are durable in a log and not in the database yet, sorted as its tables are.
//!
//! There are two layers. The upper one takes the rows of each committed group. The lower one is being written into the
//! database and changes no more, so that it makes no difference to a reader when exactly the database has it. A reader
//! takes the layers and a transaction of the database at one moment, see `read.rs`.

use crate::tables::Place;
use redb::WriteTransaction;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A key, and its new value; none when it was removed.
pub(crate) type Change = (Vec<u8>, Option<Vec<u8>>);

/// The layers, which the writer changes and readers see.
#[derive(Default)]
pub(crate) struct Recent(RwLock<Layers>);

#[derive(Default)]
pub(crate) struct Layers {
    upper: Layer,
    lower: Arc<Layer>,
}

/// The last value of each key that was changed.
#[derive(Default)]
pub(crate) struct Layer(BTreeMap<Place, BTreeMap<Vec<u8>, Option<Vec<u8>>>>);

impl Recent {
    pub(crate) fn new(upper: Layer, lower: Layer) -> Self {
        Self(RwLock::new(Layers { upper, lower: Arc::new(lower) }))
    }

    /// The layers at this moment. The writer waits meanwhile.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Layers> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds changes of a group, all at one moment.
    pub(crate) fn add(&self, changes: impl Iterator<Item = (Place, Change)>) {
        let mut layers = self.write();
        for (place, (key, value)) in changes {
            layers.upper.put(place, key, value);
        }
    }

    /// Makes the upper layer the lower one, which must be empty.
    pub(crate) fn freeze(&self) {
        let mut layers = self.write();
        debug_assert!(layers.lower.is_empty(), "the lower layer is not in the database yet");
        layers.lower = Arc::new(std::mem::take(&mut layers.upper));
    }

    /// The lower layer.
    pub(crate) fn lower(&self) -> Arc<Layer> {
        Arc::clone(&self.read().lower)
    }

    /// Forgets the lower layer, all of which is in the database.
    pub(crate) fn drop_lower(&self) {
        let lower = std::mem::take(&mut self.write().lower);
        // Thousands of rows are freed here, when readers no longer wait.
        drop(lower);
    }

    pub(crate) fn has_upper(&self) -> bool {
        !self.read().upper.is_empty()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Layers> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Layers {
    /// The last change of a key: its value, or nothing where it was removed.
    pub(crate) fn find(&self, place: Place, key: &[u8]) -> Option<Option<&[u8]>> {
        self.upper.find(place, key).or_else(|| self.lower.find(place, key))
    }

    /// Changes from `start` on, up to the first key without the prefix, and up to `limit` that have a value.
    pub(crate) fn forward(&self, place: Place, start: Bound<&[u8]>, prefix: &[u8], limit: usize) -> Vec<Change> {
        let rows = |layer| rows(layer, place, start, Bound::Unbounded).take_while(|(key, _)| key.starts_with(prefix));
        joined(rows(&self.upper), rows(self.lower.as_ref()), limit, |one, other| one <= other)
    }

    /// The last changes between two keys, the last one first, up to `limit` that have a value.
    pub(crate) fn backward(&self, place: Place, start: Bound<&[u8]>, end: Bound<&[u8]>, limit: usize) -> Vec<Change> {
        let rows = |layer| rows(layer, place, start, end).rev();
        joined(rows(&self.upper), rows(self.lower.as_ref()), limit, |one, other| one >= other)
    }
}

impl Layer {
    pub(crate) fn put(&mut self, place: Place, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.0.entry(place).or_default().insert(key, value);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes the layer into the database's tables. To do it twice makes no difference.
    pub(crate) fn write(&self, transaction: &WriteTransaction) -> Result<(), redb::Error> {
        for (place, rows) in &self.0 {
            let mut table = transaction.open_table(place.definition())?;
            for (key, value) in rows {
                match value {
                    Some(value) => drop(table.insert(key.as_slice(), value.as_slice())?),
                    None => drop(table.remove(key.as_slice())?),
                }
            }
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn keys(&self, place: Place) -> Vec<String> {
        self.0.get(&place).into_iter().flatten().map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect()
    }

    pub(crate) fn find(&self, place: Place, key: &[u8]) -> Option<Option<&[u8]>> {
        self.0.get(&place)?.get(key).map(Option::as_deref)
    }
}

type Borrowed<'a> = (&'a Vec<u8>, &'a Option<Vec<u8>>);

fn rows<'a>(
    layer: &'a Layer,
    place: Place,
    start: Bound<&[u8]>,
    end: Bound<&[u8]>,
) -> impl DoubleEndedIterator<Item = Borrowed<'a>> + use<'a> {
    layer.0.get(&place).map(|rows| rows.range::<[u8], _>((start, end))).into_iter().flatten()
}

/// Two sorted lists as one, in which the upper one decides about keys of both.
fn joined<'a>(
    upper: impl Iterator<Item = Borrowed<'a>>,
    lower: impl Iterator<Item = Borrowed<'a>>,
    limit: usize,
    in_order: impl Fn(&[u8], &[u8]) -> bool,
) -> Vec<Change> {
    let (mut upper, mut lower) = (upper.peekable(), lower.peekable());
    let (mut found, mut with_value) = (Vec::new(), 0);
    while with_value < limit {
        let Some((key, value)) = first(&mut upper, &mut lower, &in_order) else {
            break;
        };
        with_value += usize::from(value.is_some());
        found.push((key.clone(), value.clone()));
    }
    found
}

fn first<'a>(
    upper: &mut Peekable<impl Iterator<Item = Borrowed<'a>>>,
    lower: &mut Peekable<impl Iterator<Item = Borrowed<'a>>>,
    in_order: &impl Fn(&[u8], &[u8]) -> bool,
) -> Option<Borrowed<'a>> {
    match (upper.peek(), lower.peek()) {
        (Some((above, _)), Some((below, _))) if !in_order(above, below) => lower.next(),
        (Some((above, _)), Some((below, _))) => {
            if above == below {
                lower.next();
            }
            upper.next()
        }
        (Some(_), None) => upper.next(),
        (None, _) => lower.next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::store::Table;

    const PLACE: Place = Place::Table(Table::Events);

    fn layer(rows: &[(&str, Option<&str>)]) -> Layer {
        let mut layer = Layer::default();
        for (key, value) in rows {
            layer.put(PLACE, key.as_bytes().to_vec(), value.map(|value| value.as_bytes().to_vec()));
        }
        layer
    }

    fn shown(changes: Vec<Change>) -> String {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let shown = changes.into_iter().map(|(key, value)| format!("{}={}", text(key), value.map_or("-".into(), text)));
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_upper_layer_decides_and_removed_keys_do_not_count_for_the_limit() {
        let upper = layer(&[("a2", None), ("a3", Some("new")), ("a5", Some("5"))]);
        let lower =
            layer(&[("a1", Some("1")), ("a2", Some("2")), ("a3", Some("old")), ("a4", None), ("b1", Some("b"))]);
        let layers = Layers { upper, lower: Arc::new(lower) };
        let forward = |from: &str, limit| shown(layers.forward(PLACE, Bound::Excluded(from.as_bytes()), b"a", limit));
        assert_eq!(forward("a", 9), "a1=1 a2=- a3=new a4=- a5=5");
        assert_eq!(forward("a1", 1), "a2=- a3=new");
        assert_eq!(forward("a", 0), "");
        let backward = |limit| shown(layers.backward(PLACE, Bound::Included(b"a"), Bound::Excluded(b"b"), limit));
        assert_eq!(backward(9), "a5=5 a4=- a3=new a2=- a1=1");
        assert_eq!(backward(2), "a5=5 a4=- a3=new");
        assert_eq!(layers.find(PLACE, b"a2"), Some(None));
        assert_eq!(layers.find(PLACE, b"a3"), Some(Some(&b"new"[..])));
        assert_eq!(layers.find(PLACE, b"a9"), None);
    }
}
