//! Batches as conditions on the stored values and last values of keys, and those that go into one statement.
//!
//! The parts of a statement see the same rows, and none of another part's. So what earlier changes of a batch decide
//! about its later conditions is decided here, and a key is written once.
//!
//! Other seats change keys at the same time, and the server tells that of the keys that a statement writes. Each key
//! with a condition is one of them: an insertion and a swap write it, and a later change of the same batch writes it,
//! too. A removal that finds no row writes nothing: then the key was to have no value, and has none after it, so the
//! value that another seat gives it meanwhile comes after this batch. A batch that contradicts itself writes nothing
//! and fails in any case.

use crate::append::Work;
use crate::blob;
use crate::outside::{Before, OBJECTS_NO, ObjectChange};
use crate::schema::{KEY_BYTES_MAX, table_no};
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Op, StoreError, Table};
use std::collections::{BTreeMap, BTreeSet};

/// The size of the batches of one statement together, in bytes. A larger batch goes alone.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// A key in its table.
pub(crate) type Cell = (Table, Vec<u8>);

/// A condition on a stored value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) cell: Cell,
    /// The digest of the stored value; none: there must be no value.
    pub(crate) expected: Option<Digest>,
}

/// A batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Folded {
    /// The conditions, in the order of their changes.
    pub(crate) conditions: Vec<Condition>,
    /// The last value of each key; none where it is removed.
    pub(crate) writes: BTreeMap<Cell, Option<Vec<u8>>>,
    /// Encoded content.
    pub(crate) blobs: BTreeMap<Digest, Vec<u8>>,
    /// Content to remove, for the store itself.
    pub(crate) dead: Vec<Digest>,
    /// Changes of the rows of objects, for the store itself. Each key is that of one upload, which no other batch changes
    /// at the same time.
    pub(crate) objects: Vec<ObjectChange>,
    /// The condition that the batch's own changes break, if those before it hold.
    pub(crate) contradiction: Option<Cell>,
    pub(crate) bytes: usize,
}

impl Folded {
    /// Folds a batch whose content is encoded.
    ///
    /// # Errors
    /// [`StoreError::KeyTooLong`].
    pub(crate) fn of(batch: Batch) -> Result<Self, StoreError> {
        let mut folded = Self::default();
        for op in batch.ops {
            let cell = cell_of(&op)?;
            let Some(cell) = cell else {
                if let Op::Blob(digest, bytes) = op {
                    folded.bytes += bytes.len() + digest.as_bytes().len();
                    folded.blobs.insert(digest, bytes);
                }
                continue;
            };
            if !folded.permits(&op, &cell) {
                folded.contradiction = Some(cell);
                return Ok(folded);
            }
            folded.apply(op, cell);
        }
        Ok(folded)
    }

    /// A batch of the store itself, which removes content.
    pub(crate) fn removal(dead: Vec<Digest>, condemned: Vec<ObjectChange>) -> Self {
        let bytes = dead.len() * 32;
        Self { dead, bytes, ..Self::default() }.with_objects(condemned)
    }

    /// The same batch with changes of the rows of objects.
    pub(crate) fn with_objects(mut self, changes: Vec<ObjectChange>) -> Self {
        self.bytes += changes.iter().map(ObjectChange::bytes).sum::<usize>();
        self.objects.extend(changes);
        self
    }

    /// False when the batch's own changes break the condition of a change. A condition on a stored value is added.
    fn permits(&mut self, op: &Op, cell: &Cell) -> bool {
        let expected = match op {
            Op::Insert(..) => None,
            Op::Swap(_, _, old, _) => Some(*old),
            Op::Put(..) | Op::Delete(..) | Op::Blob(..) => return true,
        };
        match self.writes.get(cell) {
            Some(own) => own.as_deref().map(Digest::of) == expected,
            None => {
                self.bytes += cell.1.len() + 34;
                self.conditions.push(Condition { cell: cell.clone(), expected });
                true
            }
        }
    }

    fn apply(&mut self, op: Op, cell: Cell) {
        let value = match op {
            Op::Put(_, _, value) | Op::Insert(_, _, value) | Op::Swap(_, _, _, value) => Some(value),
            Op::Delete(..) | Op::Blob(..) => None,
        };
        self.bytes += cell.1.len() + value.as_ref().map_or(0, Vec::len) + 2;
        self.writes.insert(cell, value);
    }
}

/// The number of batches at the head of a queue that go into one statement: up to the first one whose conditions an
/// earlier one decides, since the parts of a statement do not see each other. One that contradicts itself goes alone.
pub(crate) fn group<'a>(waiting: impl Iterator<Item = &'a Folded>) -> usize {
    let (mut written, mut bytes, mut count) = (BTreeSet::<&Cell>::new(), 0_usize, 0);
    for folded in waiting {
        let is_decided = folded.conditions.iter().any(|condition| written.contains(&condition.cell));
        let is_alone = folded.contradiction.is_some();
        bytes = bytes.saturating_add(folded.bytes);
        if count > 0 && (is_decided || is_alone || bytes > GROUP_BYTES_MAX) {
            break;
        }
        count += 1;
        if is_alone {
            break;
        }
        written.extend(folded.writes.keys());
    }
    count
}

/// Batches as the parts of one statement, and the conditions of it, each with the place of its batch; none for one of
/// the row of an object.
pub(crate) fn merge<'a>(batches: &[&'a Folded]) -> (Work<'a>, Vec<(usize, Option<&'a Condition>)>) {
    let mut work = Work::default();
    let mut owners = Vec::new();
    let mut writes: BTreeMap<&Cell, Option<&[u8]>> = BTreeMap::new();
    let mut blobs: BTreeMap<&Digest, &[u8]> = BTreeMap::new();
    for (at, folded) in batches.iter().enumerate() {
        for condition in &folded.conditions {
            let (table, key) = &condition.cell;
            let expected = condition.expected.as_ref().map(|digest| &digest.as_bytes()[..]);
            work.expect(table_no(*table), key, expected);
            owners.push((at, Some(condition)));
        }
        // A batch that contradicts itself writes nothing.
        if folded.contradiction.is_none() {
            writes.extend(folded.writes.iter().map(|(cell, value)| (cell, value.as_deref())));
            blobs.extend(folded.blobs.iter().map(|(digest, bytes)| (digest, bytes.as_slice())));
            folded.dead.iter().for_each(|digest| work.remove_blob(digest.as_bytes()));
            for change in &folded.objects {
                if add_object(&mut work, change) {
                    owners.push((at, None));
                }
            }
        }
    }
    for ((table, key), value) in writes {
        match value {
            Some(value) => work.put(table_no(*table), key, value),
            None => work.delete(table_no(*table), key),
        }
    }
    // Markers first: what goes before a statement that is too large is taken from the end.
    let is_marker = |(_, bytes): &(&Digest, &[u8])| blob::marker(bytes).is_some();
    let (markers, others): (Vec<_>, Vec<_>) = blobs.into_iter().partition(is_marker);
    for (digest, bytes) in markers.into_iter().chain(others) {
        work.put_blob(digest.as_bytes(), bytes);
    }
    (work, owners)
}

/// Adds the change of an object's row; true: with a condition.
fn add_object<'a>(work: &mut Work<'a>, change: &'a ObjectChange) -> bool {
    match &change.after {
        Some(value) => work.put(OBJECTS_NO, &change.key, value),
        None => work.delete(OBJECTS_NO, &change.key),
    }
    match &change.before {
        Before::Absent => work.expect(OBJECTS_NO, &change.key, None),
        Before::Is(digest) => work.expect(OBJECTS_NO, &change.key, Some(&digest.as_bytes()[..])),
        Before::Any => return false,
    }
    true
}

/// The error for a condition that does not hold.
pub(crate) fn conflict((table, key): &Cell) -> StoreError {
    StoreError::conflict(*table, key)
}

/// The key that a change is about; none for content.
fn cell_of(op: &Op) -> Result<Option<Cell>, StoreError> {
    let (Op::Put(table, key, _) | Op::Insert(table, key, _) | Op::Swap(table, key, _, _) | Op::Delete(table, key)) = op
    else {
        return Ok(None);
    };
    Ok(Some((*table, checked(*table, key)?.to_vec())))
}

fn checked(table: Table, key: &Key) -> Result<&[u8], StoreError> {
    let bytes = key.as_bytes();
    if bytes.len() > KEY_BYTES_MAX {
        return Err(StoreError::KeyTooLong { table, bytes: bytes.len(), bytes_max: KEY_BYTES_MAX });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::Marker;
    use crate::outside::{Generation, ObjectKey, ObjectState};

    fn key(number: u64) -> Key {
        Key::of("k").number(number)
    }

    fn cell(number: u64) -> Cell {
        (Table::States, key(number).as_bytes().to_vec())
    }

    fn swap(number: u64, old: &str, new: &str) -> Op {
        Op::Swap(Table::States, key(number), Digest::of(old.as_bytes()), new.into())
    }

    fn folded(ops: Vec<Op>) -> Folded {
        Folded::of(Batch { ops }).expect("short keys")
    }

    #[test]
    fn a_condition_sees_the_earlier_changes_of_its_own_batch() {
        let put = |value: &str| Op::Put(Table::States, key(1), value.into());
        let insert = || Op::Insert(Table::States, key(1), "i".into());
        let delete = || Op::Delete(Table::States, key(1));
        let check = |ops: Vec<Op>, conditions: usize, last: Result<Option<&str>, ()>| {
            let shown = format!("{ops:?}");
            let folded = folded(ops);
            assert_eq!(folded.conditions.len(), conditions, "{shown}");
            assert_eq!(folded.contradiction.is_some(), last.is_err(), "{shown}");
            if let Ok(last) = last {
                assert_eq!(folded.writes[&cell(1)].as_deref(), last.map(str::as_bytes), "{shown}");
            }
        };
        check(vec![put("a"), put("b")], 0, Ok(Some("b")));
        check(vec![insert(), swap(1, "i", "b")], 1, Ok(Some("b")));
        check(vec![swap(1, "a", "b"), swap(1, "b", "c")], 1, Ok(Some("c")));
        check(vec![delete(), insert(), delete()], 0, Ok(None));
        check(vec![put("a"), insert()], 0, Err(()));
        check(vec![insert(), insert()], 1, Err(()));
        check(vec![delete(), swap(1, "a", "b")], 0, Err(()));
        check(vec![swap(1, "a", "b"), swap(1, "a", "c")], 1, Err(()));
    }

    #[test]
    fn batches_go_together_until_one_depends_on_another() {
        let put = |number| folded(vec![Op::Put(Table::States, key(number), "v".into())]);
        let append = |number| folded(vec![Op::Insert(Table::States, key(number), "v".into())]);
        let large = || folded(vec![Op::Put(Table::States, key(9), vec![0; GROUP_BYTES_MAX + 1])]);
        let check = |queue: &[Folded], expected: usize| assert_eq!(group(queue.iter()), expected);
        check(&[], 0);
        check(&[append(1), append(2), put(1)], 3);
        check(&[put(1), append(2), append(1), put(3)], 2);
        check(&[append(1), append(1)], 1);
        check(&[large(), put(1)], 1);
        check(&[put(1), large(), put(2)], 1);
        let contradiction = || folded(vec![swap(1, "a", "b"), swap(1, "a", "c")]);
        check(&[put(2), contradiction()], 1);
        check(&[contradiction(), put(2)], 1);
    }

    #[test]
    fn a_key_is_written_once_by_the_last_batch_and_a_contradiction_writes_nothing() {
        let (one, two) = (
            folded(vec![Op::Insert(Table::States, key(1), "a".into()), Op::Put(Table::States, key(2), "b".into())]),
            folded(vec![Op::Put(Table::States, key(1), "c".into()), Op::Delete(Table::States, key(2))]),
        );
        let (work, owners) = merge(&[&one, &two]);
        assert_eq!(owners, [(0, Some(&one.conditions[0]))]);
        assert_eq!((work.puts(), work.deletes(), work.conditions()), (1, 1, 1));
        let broken = folded(vec![swap(1, "a", "b"), swap(1, "a", "c")]);
        let (work, owners) = merge(&[&broken]);
        assert_eq!((owners.len(), work.puts(), work.conditions()), (1, 0, 1));
    }

    #[test]
    fn the_row_of_an_object_changes_with_the_marker_that_names_it_and_both_stay_in_the_statement() {
        let object = ObjectKey { digest: Digest::of(b"large"), generation: Generation([1; 16]) };
        let (begun, kept) = (ObjectState::Uploading(5), ObjectState::Kept);
        let marker = blob::encode_marker(&Marker { length: 9, stored: 9, generation: object.generation });
        let naming = Batch { ops: vec![Op::Blob(object.digest, marker), Op::Blob(Digest::of(b"b"), vec![0; 99])] };
        let naming =
            Folded::of(naming).expect("no keys").with_objects(vec![ObjectChange::from_to(object, begun, kept)]);
        let (mut work, owners) = merge(&[&naming]);
        assert_eq!((owners, work.puts(), work.conditions()), (vec![(0, None)], 1, 1));
        // Whichever digest is the greater one.
        assert_eq!(work.split_content(1).len(), 1, "the marker stays");
        let removal = Folded::removal(vec![object.digest], vec![ObjectChange::condemn(object, 7)]);
        let (work, owners) = merge(&[&removal]);
        assert_eq!((owners.len(), work.puts(), work.conditions()), (0, 1, 0), "the removal is sure of its row");
        let over = ObjectChange::forget(object, ObjectState::Condemned(7));
        let forgotten = Folded::default().with_objects(vec![over]);
        let (work, owners) = merge(&[&forgotten]);
        assert_eq!((owners.len(), work.deletes(), work.conditions()), (1, 1, 1));
    }

    #[test]
    fn a_key_that_no_index_takes_is_refused_with_its_length() {
        let long = |bytes: usize| Key::from_bytes(vec![7; bytes]);
        assert!(Folded::of(Batch::new().put(Table::Memory, long(KEY_BYTES_MAX), "v")).is_ok());
        let refused = Folded::of(Batch::new().put(Table::Memory, long(KEY_BYTES_MAX + 1), "v"));
        assert_eq!(refused, Err(StoreError::KeyTooLong { table: Table::Memory, bytes: 2_601, bytes_max: 2_600 }));
    }
}
