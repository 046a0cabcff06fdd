//! The crate as its users see it.

mod cases;
mod graphs;
mod hostile;
mod many;
mod oracle;
mod patches;
mod python;
mod random;
mod shown;
