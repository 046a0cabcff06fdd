//! Trajectories in the formats that training tools read. A format belongs to its tool; this module adds no field to it.

use crate::trajectories::{InvocationEnding, Trajectory};
use crate::wire::knowledge::TrajectoryView;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The format of an exported trajectory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrainingFormat {
    /// The whole trajectory.
    #[default]
    Full,
    /// TRL's conversational preference format. Only corrected trajectories have it.
    Preference,
    /// TRL's conversational unpaired preference format. Only trajectories that are rated 1, 2, 4 or 5 have it.
    Unpaired,
}

impl TrainingFormat {
    /// True when the annotation of a trajectory allows the format.
    #[must_use]
    pub fn takes(self, one: &Trajectory) -> bool {
        match self {
            Self::Full => true,
            Self::Preference => PreferenceExample::of(one).is_some(),
            Self::Unpaired => UnpairedExample::of(one).is_some(),
        }
    }

    /// The trajectory as a line of JSON. None: its annotation does not allow the format.
    ///
    /// # Errors
    /// A value of the trajectory cannot be written as JSON.
    pub fn line(self, one: Trajectory) -> serde_json::Result<Option<String>> {
        match self {
            Self::Full => line(Some(TrajectoryView::from(one))),
            Self::Preference => line(PreferenceExample::of(&one)),
            Self::Unpaired => line(UnpairedExample::of(&one)),
        }
    }
}

fn line(exported: Option<impl Serialize>) -> serde_json::Result<Option<String>> {
    exported.map(|exported| serde_json::to_string(&exported)).transpose()
}

/// A message of an example.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum ExampleMessage {
    /// A message of a conversation, in the form of chat endpoints.
    Recorded(Value),
    /// A text that is in no conversation.
    Text {
        /// The role of its author: `user` or `assistant`.
        role: &'static str,
        /// The text.
        content: String,
    },
}

impl ExampleMessage {
    fn user(content: &str) -> Self {
        Self::Text { role: "user", content: content.to_owned() }
    }

    fn assistant(content: &str) -> Self {
        Self::Text { role: "assistant", content: content.to_owned() }
    }
}

/// A corrected trajectory in TRL's conversational preference format.
#[derive(Clone, Debug, Serialize)]
pub struct PreferenceExample {
    /// The messages before the answer.
    pub prompt: Vec<ExampleMessage>,
    /// The correction.
    pub chosen: Vec<ExampleMessage>,
    /// The answer.
    pub rejected: Vec<ExampleMessage>,
}

impl PreferenceExample {
    /// The example of a trajectory. None: it has no correction, or it has not ended.
    pub fn of(one: &Trajectory) -> Option<Self> {
        let correction = one.annotation.correction.as_deref()?;
        let (prompt, rejected) = prompt_and_answer(one)?;
        Some(Self { prompt, chosen: vec![ExampleMessage::assistant(correction)], rejected })
    }
}

/// A rated trajectory in TRL's conversational unpaired preference format.
#[derive(Clone, Debug, Serialize)]
pub struct UnpairedExample {
    /// The messages before the answer.
    pub prompt: Vec<ExampleMessage>,
    /// The answer.
    pub completion: Vec<ExampleMessage>,
    /// True: it was rated 4 or 5. False: it was rated 1 or 2.
    pub label: bool,
}

impl UnpairedExample {
    /// The example of a trajectory. None: it was rated 3 or not at all, or it has not ended.
    pub fn of(one: &Trajectory) -> Option<Self> {
        let label = match one.annotation.rating? {
            4.. => true,
            3 => return None,
            _ => false,
        };
        let (prompt, completion) = prompt_and_answer(one)?;
        Some(Self { prompt, completion, label })
    }
}

/// The messages before the last reply of the first conversation, and that reply. For an agent that asked no model, its
/// instruction and its answer. None: the trajectory has not ended.
fn prompt_and_answer(one: &Trajectory) -> Option<(Vec<ExampleMessage>, Vec<ExampleMessage>)> {
    if one.ending == InvocationEnding::Unfinished {
        return None;
    }
    let messages = one.conversations.first().map(Vec::as_slice).unwrap_or_default();
    Some(match messages.iter().rposition(|message| message["role"] == "assistant") {
        Some(last) => {
            let prompt = messages[..last].iter().cloned().map(ExampleMessage::Recorded).collect();
            (prompt, vec![ExampleMessage::Recorded(messages[last].clone())])
        }
        None => {
            let answer = one.answer.as_deref().unwrap_or(&one.summary);
            (vec![ExampleMessage::user(&one.instruction)], vec![ExampleMessage::assistant(answer)])
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectories::Annotation;
    use longhaul_core::model::Usage;
    use longhaul_core::{Digest, InvocationId, RunId};
    use serde_json::json;

    fn trajectory(rating: Option<u8>, correction: Option<&str>, conversations: &[Vec<Value>]) -> Trajectory {
        let run = RunId::from_text("r-1");
        Trajectory {
            id: InvocationId::of_action(&run, "f-one/1/generate"),
            run,
            project: "p".to_owned(),
            agent: "agents.code".to_owned(),
            plugin: "react".to_owned(),
            component: Digest::of(b""),
            task: "one".to_owned(),
            instruction: "do it".to_owned(),
            ending: InvocationEnding::Returned,
            answer: None,
            summary: "done".to_owned(),
            confidence: None,
            steps: Vec::new(),
            model_calls: 0,
            usage: Usage::default(),
            summarizations: 0,
            from_ms: 0,
            until_ms: None,
            annotation: Annotation { rating, correction: correction.map(str::to_owned), at_ms: 0 },
            conversations: conversations.to_vec(),
            incomplete: None,
        }
    }

    #[track_caller]
    fn check(example: Option<impl Serialize>, expected: Option<&str>) {
        let example = example.map(|example| serde_json::to_string(&example).unwrap());
        assert_eq!(example.as_deref(), expected);
    }

    #[test]
    fn a_correction_is_chosen_over_the_last_reply() {
        let replies = vec![
            json!({ "role": "user", "content": "a" }),
            json!({ "role": "assistant", "content": "b", "tool_calls": [] }),
            json!({ "role": "tool", "content": "c" }),
        ];
        check(
            PreferenceExample::of(&trajectory(None, Some("right"), &[replies])),
            Some(concat!(
                r#"{"prompt":[{"role":"user","content":"a"}],"chosen":[{"role":"assistant","content":"right"}],"#,
                r#""rejected":[{"role":"assistant","content":"b","tool_calls":[]}]}"#
            )),
        );
        check(PreferenceExample::of(&trajectory(Some(1), None, &[])), None);
    }

    #[test]
    fn a_format_takes_the_trajectories_that_have_a_line_in_it() {
        let formats = [TrainingFormat::Full, TrainingFormat::Preference, TrainingFormat::Unpaired];
        let taken = |rating, correction| {
            formats.map(|format| {
                let one = trajectory(rating, correction, &[]);
                let is_taken = format.takes(&one);
                assert_eq!(format.line(one).expect("JSON").is_some(), is_taken, "{format:?}");
                is_taken
            })
        };
        assert_eq!(taken(None, None), [true, false, false]);
        assert_eq!(taken(Some(3), Some("right")), [true, true, false]);
        assert_eq!(taken(Some(1), None), [true, false, true]);
        let full = TrainingFormat::Full.line(trajectory(None, None, &[])).expect("JSON").expect("each has it");
        assert!(full.starts_with(r#"{"id":"r-1/f-one/1/generate","run":"r-1""#) && !full.contains('\n'), "{full}");
    }

    #[test]
    fn a_rating_in_the_middle_is_no_example_of_either_label() {
        let labelled = |label: bool| {
            let prompt = r#"{"prompt":[{"role":"user","content":"do it"}]"#;
            format!(r#"{prompt},"completion":[{{"role":"assistant","content":"done"}}],"label":{label}}}"#)
        };
        for (rating, label) in [(1, Some(false)), (2, Some(false)), (3, None), (4, Some(true)), (5, Some(true))] {
            let expected = label.map(labelled);
            check(UnpairedExample::of(&trajectory(Some(rating), None, &[])), expected.as_deref());
        }
        check(UnpairedExample::of(&trajectory(None, None, &[])), None);
        let unfinished = Trajectory { ending: InvocationEnding::Unfinished, ..trajectory(Some(5), None, &[]) };
        check(UnpairedExample::of(&unfinished), None);
    }
}
