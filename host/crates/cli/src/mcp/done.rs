//! Messages between a verb and its caller: the outcome of the verb, or a question to a person and their answer.

use serde_json::Value;

/// The outcome of a verb.
pub enum VerbResult {
    /// The result.
    Value(Value),
    /// The verb needs an answer of a person first.
    Asks {
        /// The question.
        question: String,
        /// The possible answers; none where any text will do.
        choices: &'static [&'static str],
        /// The subject of the question, to which the answer is restricted.
        about: Option<String>,
    },
}

/// The answer of a person.
pub struct PersonAnswer {
    /// The answer in their words.
    pub text: String,
    /// The subject of the question.
    pub about: Option<String>,
}
