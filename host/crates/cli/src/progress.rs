//! The progress of a run for a person: a line for each completed event, and a label of the current work.
//!
//! Lines come from durable events alone, so every reader sees the same ones. Words of a model are part of the display
//! until their reply is an event. The label names only components at work. This file does not draw.

use super::speech::{self, Speech};
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::model::Usage;
use longhaul_core::stream::{StreamToken, invocation};
use longhaul_core::text::printable;
use longhaul_core::work::FeatureStatus;
use longhaul_core::{InvocationId, RunId};
use longhaul_report::messages;
use std::collections::{BTreeMap, BTreeSet};

/// Longest instruction of one agent to another that is shown, in bytes.
const INSTRUCTION_BYTES_MAX: usize = 100;

/// The state of a run as far as its events tell.
#[derive(Default)]
pub struct Progress {
    /// Usage of invocations that have ended.
    spent: Usage,
    features: BTreeMap<String, FeatureStatus>,
    working: BTreeMap<InvocationId, Working>,
    /// The invocation whose model sent the last words.
    speaker: Option<InvocationId>,
    /// Questions to a person since the run began, each with the line that names its command.
    asked: Vec<(String, String)>,
}

/// A component at work.
#[derive(Default)]
struct Working {
    /// The work, for example `sum, round 2: react`.
    what: String,
    /// The call of a tool in progress.
    call: Option<String>,
    speech: Speech,
    /// Usage of the replies so far.
    spent: Usage,
}

impl Progress {
    /// Takes an event, and returns its text for a person, of one line or several.
    pub fn see(&mut self, event: &RunEvent) -> Option<String> {
        let text = self.text(&event.event).or_else(|| messages::line(event));
        let text = text.filter(|text| !text.is_empty());
        let text = text.map(|text| self.marked(&event.event, text));
        self.note(&event.event);
        if let (Event::Parked { question, .. }, Some(text)) = (&event.event, &text) {
            self.asked.retain(|(asked, _)| asked != question);
            self.asked.push((question.clone(), text.clone()));
        }
        text
    }

    /// Takes a part of the words of a model.
    pub fn hear(&mut self, token: &StreamToken) {
        let working = self.working.entry(token.invocation.clone()).or_default();
        if token.whole {
            working.speech = Speech::default();
        }
        working.speech.push(&token.text);
        self.speaker = Some(token.invocation.clone());
    }

    /// The open questions, with the commands that answer them. `why` holds the questions that the run waits for.
    pub fn open_questions(&self, why: &str) -> Vec<&str> {
        self.asked.iter().filter(|(question, _)| why.contains(question)).map(|(_, text)| text.as_str()).collect()
    }

    /// The current work in one line of at most `chars_max` characters.
    pub fn label(&self, run: &RunId, chars_max: usize) -> String {
        let mut named = self.working.values().filter(|working| !working.what.is_empty());
        let what = match (named.next(), named.next()) {
            (None, _) => format!("run {run}"),
            (Some(one), None) => match &one.call {
                Some(call) => format!("{}: {call}", one.what),
                None => one.what.clone(),
            },
            (Some(one), Some(two)) => {
                let others = named.map(|working| working.what.as_str());
                let all: Vec<&str> = [one.what.as_str(), two.what.as_str()].into_iter().chain(others).collect();
                format!("{} at work: {}", all.len(), all.join("; "))
            }
        };
        let passing = self.features.values().filter(|status| **status == FeatureStatus::Passing).count();
        let kept = self.features.values().filter(|status| **status != FeatureStatus::Dropped).count();
        let mut rest = String::new();
        if kept > 0 {
            rest.push_str(&format!(" | {passing} of {kept} pass"));
        }
        let spent = messages::spent_words(&self.spent_by_now());
        if !spent.is_empty() {
            rest.push_str(&format!(" | {spent}"));
        }
        // The usage is never cut off.
        format!("{}{rest}", cut(&what, chars_max.saturating_sub(rest.chars().count())))
    }

    /// The last lines of a model's words, each of at most `chars_max` characters.
    pub fn saying(&self, lines_max: usize, chars_max: usize) -> Vec<String> {
        let speech = self.speaker.as_ref().and_then(|speaker| self.working.get(speaker)).map(|one| one.speech.shown());
        let lines = speech.unwrap_or_default().trim_end().lines().filter(|line| !line.trim().is_empty());
        let wrapped: Vec<String> = lines.flat_map(|line| wrapped(line, chars_max)).collect();
        wrapped[wrapped.len().saturating_sub(lines_max)..].to_vec()
    }

    /// Usage of the run since the first event that was seen.
    fn spent_by_now(&self) -> Usage {
        self.working.values().fold(self.spent, |sum, working| sum.plus(working.spent))
    }

    /// The text of a step of a component.
    fn text(&self, event: &Event) -> Option<String> {
        Some(match event {
            Event::Thought { text, .. } => {
                // Behind a bar, so that no words of a model look like a line of the host.
                let lines =
                    speech::lines(text).into_iter().map(|line| format!("    | {}", printable(&line, usize::MAX)));
                lines.collect::<Vec<_>>().join("\n")
            }
            // Shown once there is an outcome.
            Event::Action { .. } => String::new(),
            Event::Observation { line, tool, function, ok, .. } if line.is_empty() => {
                let call = printable(&format!("{tool}.{function}"), usize::MAX);
                format!("    {call}{}", if *ok { "" } else { "  failed" })
            }
            Event::Observation { line, .. } => format!("    {}", printable(line, usize::MAX)),
            Event::Delegated { agent, instruction, .. } => {
                format!("    asks {agent}: {}", printable(instruction, INSTRUCTION_BYTES_MAX))
            }
            _ => return None,
        })
    }

    /// Adds the feature of a line, and an indent for delegated work, where the line could belong to several.
    fn marked(&self, event: &Event, text: String) -> String {
        let Some(of) = invocation(event) else { return text };
        let depth = of.depth().saturating_sub(u32::from(matches!(event, Event::Delegated { .. })));
        let mut mark = "  ".repeat(depth as usize);
        let beside: BTreeSet<Option<&str>> = self.working.keys().map(InvocationId::feature).collect();
        if beside.len() > 1
            && let Some(feature) = of.feature()
            && !matches!(event, Event::InvocationStarted { .. })
        {
            mark.push_str(&format!("[{feature}] "));
        }
        if mark.is_empty() {
            return text;
        }
        let line = |line: &str| {
            let indent = line.len() - line.trim_start().len();
            format!("{}{mark}{}", &line[..indent], &line[indent..])
        };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Planned { features, .. } | Event::Replanned { features, .. } => {
                for (id, _) in features {
                    self.features.entry(id.clone()).or_insert(FeatureStatus::NotStarted);
                }
            }
            Event::Feature { feature, status, .. } => {
                self.features.insert(feature.clone(), *status);
                if *status != FeatureStatus::InProgress {
                    self.working.retain(|of, _| of.feature() != Some(feature));
                }
            }
            Event::InvocationStarted { invocation, plugin, export, feature, round, .. } => {
                let what = messages::work_words(export, feature.as_deref(), *round, plugin);
                self.working.insert(invocation.clone(), Working { what, ..Working::default() });
            }
            Event::Delegated { invocation, agent, .. } => {
                let what = format!("{agent}, asked by another agent");
                self.working.insert(invocation.clone(), Working { what, ..Working::default() });
            }
            Event::Thought { invocation, usage, .. } => {
                let working = self.working.entry(invocation.clone()).or_default();
                working.spent = working.spent.plus(*usage);
                working.speech = Speech::default();
            }
            Event::Action { invocation, line, tool, function, .. } => {
                let call = if line.is_empty() { format!("{tool}.{function}") } else { line.clone() };
                self.working.entry(invocation.clone()).or_default().call = Some(call);
            }
            Event::Observation { invocation, .. } => {
                self.working.entry(invocation.clone()).or_default().call = None;
            }
            Event::InvocationEnded { invocation, used, .. } => self.ended(invocation, used.usage),
            Event::ApprovalAsked { invocation, .. } => {
                self.working.entry(invocation.clone()).or_default().call = Some("waits for a person".to_owned());
            }
            // All work has stopped. It starts again with new events.
            Event::RunResumed | Event::Paused | Event::RunEnded { .. } => self.working.clear(),
            _ => {}
        }
    }

    /// The usage of an invocation includes that of the invocations it delegated to.
    fn ended(&mut self, invocation: &InvocationId, used: Usage) {
        self.working.retain(|of, _| !of.as_str().starts_with(invocation.as_str()));
        match invocation.depth() {
            0 => self.spent = self.spent.plus(used),
            // Counted for the caller until the caller ends.
            _ => {
                let caller = invocation.as_str().rsplit_once('#').map_or("", |(caller, _)| caller);
                let caller = self.working.entry(InvocationId::from_text(caller)).or_default();
                caller.spent = caller.spent.plus(used);
            }
        }
    }
}

fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    text.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect()
}

/// Splits a line into pieces that fit, between words where possible.
fn wrapped(line: &str, chars_max: usize) -> Vec<String> {
    let (mut pieces, mut piece, mut room) = (Vec::new(), String::new(), chars_max);
    for word in line.split_inclusive(' ') {
        let length = word.chars().count();
        if length > room && room < chars_max {
            pieces.push(std::mem::take(&mut piece));
            room = chars_max;
        }
        piece.extend(word.chars().take(room));
        room = room.saturating_sub(length);
    }
    pieces.push(piece);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::event::WorkUsage;

    fn seen(progress: &mut Progress, event: Event) -> String {
        let event = RunEvent { run: RunId::from_text("r-1"), number: 1, at_ms: 0, event };
        progress.see(&event).unwrap_or_default()
    }

    fn id(key: &str) -> InvocationId {
        InvocationId::from_text(format!("r-1/{key}"))
    }

    fn started(key: &str, feature: &str, round: u32) -> Event {
        Event::InvocationStarted {
            invocation: id(key),
            plugin: "react".into(),
            export: "agent.run".into(),
            feature: Some(feature.into()),
            round,
            agent: "agents.code".into(),
        }
    }

    fn usage(tokens: u32) -> Usage {
        Usage { input_tokens: tokens, ..Usage::default() }
    }

    fn thought(key: &str, text: &str, tokens: u32) -> Event {
        Event::Thought {
            invocation: id(key),
            agent: "agents.code".into(),
            step: 1,
            text: text.into(),
            model: "m".into(),
            provider_model: "m".into(),
            usage: usage(tokens),
            took_ms: None,
            route: None,
            details: None,
        }
    }

    fn action(key: &str) -> Event {
        Event::Action {
            invocation: id(key),
            agent: "agents.code".into(),
            step: 2,
            tool: "files".into(),
            function: "edit".into(),
            arguments: "{}".into(),
            line: "files.edit a.py".into(),
        }
    }

    fn observation(key: &str, line: &str, ok: bool) -> Event {
        Event::Observation {
            invocation: id(key),
            agent: "agents.code".into(),
            step: 3,
            of: 2,
            tool: "files".into(),
            function: "edit".into(),
            ok,
            output: "{}".into(),
            line: line.into(),
            took_ms: None,
        }
    }

    fn ended(key: &str, tokens: u32) -> Event {
        let used = WorkUsage { usage: usage(tokens), ..WorkUsage::default() };
        Event::InvocationEnded { invocation: id(key), outcome: "did it".into(), ok: true, used, agent: String::new() }
    }

    fn token(key: &str, text: &str) -> StreamToken {
        StreamToken { invocation: id(key), after: 0, part: 0, text: text.into(), whole: false }
    }

    #[test]
    fn a_label_says_what_goes_on_now_and_nothing_that_is_over() {
        let (mut progress, run) = (Progress::default(), RunId::from_text("r-1"));
        let key = "f-sum/1/generate";
        let planned = Event::Planned {
            features: vec![("sum".into(), "t".into()), ("mul".into(), "t".into())],
            notes: String::new(),
            proposed: Vec::new(),
        };
        seen(&mut progress, planned);
        assert_eq!(progress.label(&run, 80), "run r-1 | 0 of 2 pass");
        seen(&mut progress, started(key, "sum", 2));
        assert_eq!(progress.label(&run, 80), "work on sum, round 2: react | 0 of 2 pass");
        progress.hear(&token(key, "{\"thought\": \"I look at the te"));
        progress.hear(&token(key, "st first\", \"action\": \"files.read\"}"));
        assert_eq!(progress.saying(3, 40), ["I look at the test first"]);
        assert_eq!(
            seen(&mut progress, thought(key, "I look at the test first", 1_200)),
            "    | I look at the test first"
        );
        assert!(progress.saying(3, 40).is_empty(), "the record has it now");
        assert_eq!(seen(&mut progress, action(key)), "");
        assert_eq!(
            progress.label(&run, 80),
            "work on sum, round 2: react: files.edit a.py | 0 of 2 pass | 1200 tokens"
        );
        assert_eq!(progress.label(&run, 50), "work on sum, round 2:… | 0 of 2 pass | 1200 tokens");
        assert_eq!(seen(&mut progress, observation(key, "files.edit a.py +1 -0", true)), "    files.edit a.py +1 -0");
        seen(&mut progress, ended(key, 1_300));
        let passes = Event::Feature { feature: "sum".into(), status: FeatureStatus::Passing, why: String::new() };
        seen(&mut progress, passes);
        assert_eq!(progress.label(&run, 80), "run r-1 | 1 of 2 pass | 1300 tokens");
    }

    #[test]
    fn lines_of_work_beside_other_work_say_whose_they_are() {
        let mut progress = Progress::default();
        seen(&mut progress, started("f-a/1/generate", "a", 1));
        assert_eq!(seen(&mut progress, observation("f-a/1/generate", "x.y", true)), "    x.y");
        assert_eq!(seen(&mut progress, started("f-b/1/generate", "b", 1)), "  work on b, round 1: react");
        assert_eq!(seen(&mut progress, observation("f-a/1/generate", "x.y", true)), "    [a] x.y");
        assert_eq!(seen(&mut progress, thought("f-b/1/generate", "one\ntwo", 1)), "    [b] | one\n    [b] | two");
        let delegated = Event::Delegated {
            invocation: id("f-b/1/generate#3"),
            agent: "agents.research".into(),
            plugin: "react".into(),
            instruction: "find\nit".into(),
        };
        assert_eq!(seen(&mut progress, delegated), "    [b] asks agents.research: find it");
        assert_eq!(seen(&mut progress, observation("f-b/1/generate#3", "x.y", true)), "      [b] x.y");
        assert_eq!(seen(&mut progress, ended("f-b/1/generate#3", 5)), "      [b] did it (5 tokens)");
        assert_eq!(progress.spent_by_now().tokens(), 6);
        seen(&mut progress, ended("f-b/1/generate", 20));
        assert_eq!(progress.spent_by_now().tokens(), 20, "what others used for it is in it");
        assert_eq!(progress.working.len(), 1);
    }

    #[test]
    fn what_is_open_is_repeated_with_its_command_and_what_was_answered_is_not() {
        let mut progress = Progress::default();
        for question in ["which port?", "which host?", "which port?"] {
            let parked =
                Event::Parked { question: question.into(), answer_with: "longhaul answer RUN --text X".into() };
            seen(&mut progress, parked);
        }
        let open = progress.open_questions("which port?");
        assert_eq!(open, ["waits: which port?\n  answer with: longhaul answer r-1 --text X"]);
        assert!(progress.open_questions("").is_empty());
    }

    #[test]
    fn a_step_of_an_older_run_is_a_line_too() {
        let mut progress = Progress::default();
        assert_eq!(seen(&mut progress, observation("f-a/1/generate", "", false)), "    files.edit  failed");
    }

    #[test]
    fn what_is_said_is_cut_between_words_and_its_end_is_shown() {
        let mut progress = Progress::default();
        progress.hear(&token("plan", "one two three four\n\nfive abcdefghijkl"));
        assert_eq!(progress.saying(3, 9), ["four", "five ", "abcdefghi"]);
    }
}
