//! Tests of the journal's promises, over a fake store.

mod crash;
mod damage;
mod effects;
mod fakes;
mod hand_over;
mod lease;
mod limits;
mod replay;
mod share;
mod together;
