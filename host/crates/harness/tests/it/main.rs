//! The session strategy as its driver and its operator meet it.

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
