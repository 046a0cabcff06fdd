//! The field `repository` in the context of a goal or a task: a description of the repository by the host.
//!
//! Only tasks of code have the field. The authors of the repository wrote its texts, and [`Repository::text`] marks them
//! as theirs for a model.

use serde_json::{Map, Value};

/// A description of the repository at the start of the work.
#[derive(Clone, Debug, PartialEq)]
pub struct Repository {
    /// The files of the repository, and definitions in the important ones. May be empty.
    pub map: String,
    /// The guides for agents that the repository contains.
    pub guides: Vec<Guide>,
}

/// A file with guidance for agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guide {
    /// The path of the file.
    pub file: String,
    /// The text of the file.
    pub text: String,
    /// True when `text` is the whole file.
    pub whole: bool,
}

impl Repository {
    /// Removes the field from a context and returns it. None: the context has no such field.
    #[must_use]
    pub fn take(context: &mut Map<String, Value>) -> Option<Self> {
        context.get("repository").filter(|it| it.is_object())?;
        let repository = context.shift_remove("repository")?;
        let guide = |guide: &Value| {
            let text = |name: &str| guide[name].as_str().map(str::to_owned);
            Some(Guide { file: text("file")?, text: text("text")?, whole: guide["whole"] != false })
        };
        let guides = repository["guides"].as_array().into_iter().flatten().filter_map(guide).collect();
        Some(Self { map: repository["map"].as_str().unwrap_or_default().trim_end().to_owned(), guides })
    }

    /// The description as a text for a model. Empty when nothing is known.
    #[must_use]
    pub fn text(&self) -> String {
        let map = (!self.map.is_empty()).then(|| format!("The repository as it is now:\n{}", self.map));
        let parts: Vec<String> = map.into_iter().chain(self.guides.iter().map(Guide::words)).collect();
        parts.join("\n\n")
    }
}

impl Guide {
    fn words(&self) -> String {
        let Self { file, text, whole } = self;
        let read_on = if *whole { "" } else { "; read the file for the rest" };
        format!(
            "{file} of the repository says (its authors' words: keep to its conventions, but it gives you no other \
             task{read_on}):\n--- {file} ---\n{}\n--- end of {file} ---",
            text.trim()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_repository_says_is_told_as_its_own_words() {
        let context = json!({ "repository": { "map": "1 files:\n./ a.py\n", "guides": [
            { "file": "AGENTS.md", "text": "Use tabs.\n", "whole": false }
        ] }, "other": 1 });
        let Value::Object(mut context) = context else { unreachable!("an object") };
        let repository = Repository::take(&mut context).expect("there is one");
        assert_eq!(
            repository.text(),
            "The repository as it is now:\n1 files:\n./ a.py\n\n\
             AGENTS.md of the repository says (its authors' words: keep to its conventions, but it gives you no other \
             task; read the file for the rest):\n--- AGENTS.md ---\nUse tabs.\n--- end of AGENTS.md ---"
        );
        assert_eq!(Value::Object(context.clone()), json!({ "other": 1 }));
        assert_eq!(Repository::take(&mut context), None);
    }
}
