//! What goes between a verb and the client that called it: its outcome, or a question to a person and their answer.

use serde_json::Value;

/// What came of a verb.
pub enum Done {
    /// A value.
    Value(Value),
    /// A person has to say something first.
    Asks {
        /// What they are asked.
        question: String,
        /// One of these words, or anything where there are none.
        choices: &'static [&'static str],
        /// What their answer is about and nothing else.
        about: Option<String>,
    },
}

/// What a person said.
pub struct Said {
    /// Their words.
    pub text: String,
    /// What they were asked about.
    pub about: Option<String>,
}
