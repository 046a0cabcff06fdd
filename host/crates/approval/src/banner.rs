//! The text that an approver reads. Every line of it starts with a bar that no argument can write, and foreign text is
//! escaped, so nothing in a call can look like a part of the banner.

use crate::approval::{Approval, ApprovalKind};
use crate::arguments::Arguments;
use crate::rule::RunRule;
use crate::visible::visible;
use longhaul_core::journal::EffectClass;
use serde_json::Value;

/// The most characters of one argument that are shown: its beginning and its end, since either may be important.
const SHOWN_CHARS_MAX: usize = 2_000;

/// The most lines of a patch that are shown.
const PATCH_LINES_MAX: usize = 200;

/// The question, in one line.
#[must_use]
pub fn question(approval: &Approval) -> String {
    let agent = visible(&approval.agent);
    match approval.asks {
        ApprovalKind::Question => format!("{agent} asks: {}", cut(&visible(&asked(approval)), 300)),
        ApprovalKind::Call => format!(
            "{agent} wants to call `{}.{}` {}{}{} (approval {})",
            visible(&approval.subject.tool),
            visible(&approval.subject.function),
            cut(&visible(&approval.subject.arguments), 160),
            after_hearing(approval),
            if approval.repeats { " as the run did that it was forked from" } else { "" },
            approval.id
        ),
        ApprovalKind::Change => {
            let arguments = Arguments::read(&approval.subject.arguments).unwrap_or_default();
            let feature = arguments.get("feature").and_then(Value::as_str).unwrap_or_default();
            let files = cut(&visible(&texts(arguments.get("files")).join("; ")), 300);
            format!("feature `{}` changes protected files: {files} (approval {})", visible(feature), approval.id)
        }
    }
}

/// The whole banner, several lines.
#[must_use]
pub fn banner(approval: &Approval) -> String {
    let subject = &approval.subject;
    let run = subject.invocation.run();
    let step = subject.invocation.as_str().strip_prefix(run.as_str()).unwrap_or_default().trim_start_matches('/');
    let mut text = format!(
        "┌─ {} {}\n",
        if approval.asks == ApprovalKind::Question { "question" } else { "approval" },
        approval.id
    );
    let mut line = |name: &str, value: &str| text.push_str(&format!("│ {name:<10} {value}\n"));
    if approval.asks == ApprovalKind::Change {
        changed(&subject.arguments).iter().for_each(|(name, value)| line(name, value));
    } else {
        line("tool", &format!("{}.{}", visible(&subject.tool), visible(&subject.function)));
        for (name, value) in shown(&subject.arguments) {
            line("argument", &format!("{name} = {value}"));
        }
    }
    if approval.repeats {
        line("repeats", "a call that the run which this one was forked from made later; it happens a second time");
    }
    for source in &approval.heard {
        line("heard", &format!("untrusted words from {}", cut(&visible(source), 300)));
    }
    line("effect", effect(approval.effect));
    line("agent", &format!("{} (plugin {})", visible(&approval.agent), visible(&approval.plugin)));
    line("step", &format!("{}, entry {}", visible(step), subject.entry));
    line("run", run.as_str());
    line("component", &visible(&subject.component));
    line("answer", &answers(approval));
    line("elsewhere", &format!("longhaul approvals answer {} ANSWER", approval.id));
    line("resume", &format!("longhaul resume {run}"));
    text.push_str("└─");
    text
}

fn answers(approval: &Approval) -> String {
    if approval.asks == ApprovalKind::Question {
        return "any text; the agent gets it".to_owned();
    }
    let rule = match RunRule::of(approval, 0) {
        Ok(rule) => format!("a = by rule, for this run: {}", rule.text()),
        Err(why) => format!("a is not possible: {why}"),
    };
    format!("y = once, n [reason] = no, anything else = what to do instead\n│            {rule}")
}

fn effect(class: EffectClass) -> &'static str {
    match class {
        EffectClass::ReadOnly => "read-only: changes nothing",
        EffectClass::Idempotent => "idempotent: done once, however often it is sent",
        EffectClass::Verifiable => "verifiable: changes something; can be verified",
        EffectClass::Acts => "acts: changes something; cannot be verified",
    }
}

/// The reason for the question about a call that would pass otherwise.
fn after_hearing(approval: &Approval) -> String {
    match &approval.heard[..] {
        [] => String::new(),
        sources => format!(" after untrusted words from {}", cut(&visible(&sources.join(", ")), 200)),
    }
}

/// A change of protected files, each file and each line of the patch on its own line.
fn changed(arguments: &str) -> Vec<(&'static str, String)> {
    let read = Arguments::read(arguments).unwrap_or_default();
    let files = texts(read.get("files")).into_iter().map(|file| ("protected", visible(&file)));
    let patch = read.get("patch").and_then(Value::as_str).unwrap_or_default();
    let lines = patch.lines().take(PATCH_LINES_MAX).map(|line| ("", cut(&visible(line), SHOWN_CHARS_MAX)));
    let more = patch.lines().count().saturating_sub(PATCH_LINES_MAX);
    let more = (more > 0).then(|| ("", format!("…[{more} lines are not shown; see `longhaul --json approvals show`]")));
    files.chain(lines).chain(more).collect()
}

/// The texts in a list.
fn texts(list: Option<&Value>) -> Vec<String> {
    let texts = list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// The arguments by name, each on its own line, with escapes.
fn shown(arguments: &str) -> Vec<(String, String)> {
    match Arguments::read(arguments) {
        Ok(read) => read.0.iter().map(|(name, value)| (visible(name), shown_value(value))).collect(),
        Err(why) => vec![(format!("unreadable ({why})"), cut(&visible(arguments), SHOWN_CHARS_MAX))],
    }
}

fn shown_value(value: &Value) -> String {
    let text = match value {
        Value::String(text) => format!("\"{}\"", visible(text).replace('"', "\\\"")),
        other => visible(&other.to_string()),
    };
    cut(&text, SHOWN_CHARS_MAX)
}

/// The beginning and the end of a text, with the number of characters between them.
fn cut(text: &str, chars_max: usize) -> String {
    let count = text.chars().count();
    if count <= chars_max {
        return text.to_owned();
    }
    let half = chars_max / 2;
    let start: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(count - half).collect();
    format!("{start} …[{} characters are not shown; see `longhaul --json approvals show`]… {end}", count - 2 * half)
}

/// The question of an agent.
fn asked(approval: &Approval) -> String {
    let arguments = Arguments::read(&approval.subject.arguments).unwrap_or_default();
    arguments.get("question").and_then(Value::as_str).unwrap_or(&approval.subject.arguments).to_owned()
}
