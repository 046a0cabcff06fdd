//! The session strategy, as its driver and its operator use it.

mod ask;
mod bench;
mod cases;
mod evidence;
mod parallel;
mod pipeline;
mod plans;
mod reverts;
mod rules;
mod simulation;
