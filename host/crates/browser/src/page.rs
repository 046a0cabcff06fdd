//! Requests to a page, and its bounded answers.

use serde::Deserialize;

/// The functions that run in the page, in a world of their own.
pub(crate) const FUNCTIONS: &str = include_str!("page.js");

/// Bytes of an address, as servers accept it.
pub(crate) const URL_BYTES_MAX: usize = 8_192;

/// The location of a page.
#[derive(Deserialize)]
pub(crate) struct About {
    pub(crate) url: String,
    pub(crate) title: String,
    pub(crate) status: Option<u16>,
    pub(crate) loaded: bool,
}

impl About {
    /// True when this may stay open. A document that a page generates has its own origin, and reads nothing else.
    pub(crate) fn is_of_the_web(&self) -> bool {
        ["http://", "https://", "blob:http"].iter().any(|start| self.url.starts_with(start)) || self.is_empty()
    }

    /// True for the browser's own page in the place of one that it could not open.
    pub(crate) fn is_error_page(&self) -> bool {
        self.url.starts_with("chrome-error:")
    }

    /// True when nothing is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.url.starts_with("about:")
    }
}

/// A part of its text. Counted in units of UTF-16, as pages do.
#[derive(Deserialize)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) chars: usize,
}

/// A place in the window, in pixels.
#[derive(Deserialize)]
pub(crate) struct Place {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// The page's answer when an element is filled without typing: `done` when the element accepted the text.
#[derive(Deserialize)]
pub(crate) struct Filled {
    pub(crate) done: bool,
}
