//! The steps of one graph, by position.

use super::node::Node;
use super::places::{Place, slot};
use std::ops::Index;
use std::sync::Arc;

/// Positions are consecutive, so that they index a list; the entry of a removed step is empty. A copy of the graph,
/// which tests a patch, shares the steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    slots: Vec<Option<Arc<Node>>>,
    count: usize,
}

impl Nodes {
    /// The position that the next step gets.
    pub(super) fn next(&self) -> Place {
        self.slots.len() as Place
    }

    pub(super) fn reserve(&mut self, steps: usize) {
        self.slots.reserve(steps);
    }

    /// Adds a step whose position is [`Nodes::next`].
    pub(super) fn push(&mut self, node: Arc<Node>) {
        self.slots.push(Some(node));
        self.count += 1;
    }

    /// Replaces the step at its position, and returns the old one.
    pub(super) fn replace(&mut self, node: Arc<Node>) -> Arc<Node> {
        match self.slots.get_mut(slot(node.position)) {
            Some(Some(kept)) => std::mem::replace(kept, node),
            _ => node,
        }
    }

    pub(super) fn remove(&mut self, place: Place) {
        if self.slots.get_mut(slot(place)).and_then(Option::take).is_some() {
            self.count -= 1;
        }
    }

    pub(super) fn get(&self, place: Place) -> Option<&Node> {
        self.slots.get(slot(place))?.as_deref()
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The steps in insertion order.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Node> {
        self.slots.iter().filter_map(Option::as_deref)
    }

    /// The steps after a position.
    pub(super) fn after(&self, place: Place) -> impl Iterator<Item = &Node> {
        self.slots.get(slot(place) + 1..).unwrap_or_default().iter().filter_map(Option::as_deref)
    }

    /// The steps before a position, the nearest first.
    pub(super) fn before(&self, place: Place) -> impl Iterator<Item = &Node> {
        let slots = self.slots.get(..slot(place)).unwrap_or_default();
        slots.iter().rev().filter_map(Option::as_deref)
    }
}

/// The step at a position that has one.
impl Index<Place> for Nodes {
    type Output = Node;

    fn index(&self, place: Place) -> &Node {
        self.get(place).expect("places that are walked over have steps")
    }
}
