//! The calls that `a` allows for the rest of a run. A rule is no approval: people can read, list and revoke it.
//!
//! For a tool that runs commands it covers one form of the reviewed table (see [`crate::forms`]): a program, its
//! subcommand and the options that the table has for it. A command outside of the table is covered in exactly its
//! words. All other arguments must stay unchanged. For any other tool it covers the function, whatever the arguments
//! are, but no call with an argument that is a command. A rule for an agent that heard untrusted text covers those
//! sources as well. It is bound to the tool's component.

use crate::approval::{Approval, ApprovalKind, ApprovalSubject};
use crate::arguments::{Arguments, NotArguments};
use crate::forms::{form, form_of};
use crate::shell::{NotPlain, check_plain, plain_list, plain_words};
use longhaul_core::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Names of tools and functions that run commands, in any context.
const COMMAND_NAMES: &[&str] = &[
    "bash",
    "cli",
    "cmd",
    "command",
    "commands",
    "console",
    "dash",
    "eval",
    "evaluate",
    "exec",
    "execute",
    "fish",
    "ksh",
    "popen",
    "powershell",
    "process",
    "pwsh",
    "run",
    "script",
    "sh",
    "shell",
    "spawn",
    "subprocess",
    "sudo",
    "system",
    "terminal",
    "zsh",
];

/// Arguments that hold a command, for any tool: letters alone, in lower case.
const COMMAND_ARGUMENTS: &[&str] = &["cmd", "command", "commandline"];

/// A rule of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRule {
    /// `r-` and the digits of the approval that it came from.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The function.
    pub function: String,
    /// The tool's component, as in [`ApprovalSubject::component`].
    pub component: String,
    /// The program, for a tool that runs commands.
    pub program: Option<String>,
    /// The covered commands. A rule of an earlier version has only a program, and covers none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Commands>,
    /// The digest of the arguments beside the command, for such a tool.
    pub beside: Option<Digest>,
    /// Sources of untrusted text that its calls may follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<String>,
    /// The time of its creation, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The time of its revocation.
    pub revoked_ms: Option<u64>,
}

/// The commands that a rule covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Commands {
    /// Those of a form of the reviewed table, such as `git log`.
    Form {
        /// Its program and subcommand.
        command: String,
        /// Its further words, if the form is only for the same words, such as the targets of `make`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operands: Option<Vec<String>>,
    },
    /// The command of exactly these words.
    Words(Vec<String>),
}

/// The reason why a call gets no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRule {
    /// The arguments cannot be read.
    #[error(transparent)]
    Arguments(#[from] NotArguments),
    /// The command is not plain.
    #[error("the command is not plain: {0}")]
    NotPlain(NotPlain),
    /// There is no command, or several.
    #[error("which command it runs cannot be told from its arguments")]
    WhichCommand,
    /// The approval is for a change, and not for a call.
    #[error("a change of protected files is looked at each time")]
    Change,
}

// The text has the reason, and a source would tell it again.
impl From<NotPlain> for NoRule {
    fn from(reason: NotPlain) -> Self {
        Self::NotPlain(reason)
    }
}

impl RunRule {
    /// The rule that `a` makes of an approval.
    ///
    /// # Errors
    /// Every [`NoRule`]: then each such call is asked about.
    pub fn of(approval: &Approval, at_ms: u64) -> Result<Self, NoRule> {
        if approval.asks == ApprovalKind::Change {
            return Err(NoRule::Change);
        }
        let ApprovalSubject { tool, function, component, arguments, .. } = &approval.subject;
        let arguments = Arguments::read(arguments)?;
        let (words, beside) = if approval.runs_commands || has_command(&arguments) {
            let (words, beside) = command(&arguments)?;
            (Some(words), Some(beside))
        } else {
            (None, None)
        };
        Ok(Self {
            id: format!("r-{}", approval.id.trim_start_matches("a-")),
            tool: tool.clone(),
            function: function.clone(),
            component: component.clone(),
            program: words.as_ref().and_then(|words| words.first().cloned()),
            commands: words.map(Commands::like).transpose()?,
            beside,
            heard: approval.heard.clone(),
            at_ms,
            revoked_ms: None,
        })
    }

    /// True when a call passes by this rule. In doubt it does not, and is asked about.
    #[must_use]
    pub fn covers(&self, subject: &ApprovalSubject, runs_commands: bool) -> bool {
        let same = self.revoked_ms.is_none()
            && (&self.tool, &self.function, &self.component) == (&subject.tool, &subject.function, &subject.component);
        if !same {
            return false;
        }
        let Ok(arguments) = Arguments::read(&subject.arguments) else { return false };
        match (&self.program, runs_commands || has_command(&arguments)) {
            (None, false) => true,
            (Some(_), true) => command(&arguments).is_ok_and(|(words, beside)| {
                self.commands.as_ref().is_some_and(|commands| commands.cover(&words)) && Some(beside) == self.beside
            }),
            _ => false,
        }
    }

    /// A description of the rule for people.
    #[must_use]
    pub fn text(&self) -> String {
        let call = format!("{}.{}", crate::visible(&self.tool), crate::visible(&self.function));
        let covered = match (&self.commands, &self.program) {
            (Some(commands), _) => format!("`{call}` may run {}", commands.text()),
            (None, Some(program)) => {
                format!("nothing: it was made for `{}` by an earlier version; answer anew", crate::visible(program))
            }
            (None, None) => format!("`{call}` may be called with any arguments that are no command"),
        };
        match &self.heard[..] {
            [] => covered,
            sources => format!("{covered}, also after untrusted words from {}", crate::visible(&sources.join(", "))),
        }
    }
}

impl Commands {
    /// The commands that are similar to the one of these words.
    fn like(words: Vec<String>) -> Result<Self, NoRule> {
        let Some(form) = form_of(&words) else {
            check_plain(&words)?;
            return Ok(Self::Words(words));
        };
        let operands = form.operands(&words).into_iter().map(str::to_owned).collect();
        Ok(Self::Form { command: form.command().to_owned(), operands: form.is_for_same_words().then_some(operands) })
    }

    fn cover(&self, words: &[String]) -> bool {
        match self {
            Self::Words(covered) => covered == words,
            Self::Form { command, operands } => form_of(words).is_some_and(|form| {
                let is_same = |operands: &Vec<String>| form.operands(words) == *operands;
                form.command() == command && (!form.is_for_same_words() || operands.as_ref().is_some_and(is_same))
            }),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Words(words) => {
                format!(
                    "`{}` in exactly these words, since no table knows its options",
                    crate::visible(&words.join(" "))
                )
            }
            Self::Form { command, operands } => {
                let words: Vec<&str> =
                    std::iter::once(command.as_str()).chain(operands.iter().flatten().map(String::as_str)).collect();
                let does = form(command).map_or("", |form| form.does);
                format!(
                    "plain commands of `{}` with the options of the reviewed table ({does})",
                    crate::visible(&words.join(" "))
                )
            }
        }
    }
}

/// True when a tool runs commands, by its names; the host adds the tools that it knows.
#[must_use]
pub fn runs_commands(tool: &str, function: &str, plugin: &str) -> bool {
    let names = [tool, function, plugin.trim_start_matches("builtin:")];
    names.iter().any(|name| {
        let whole = name.to_lowercase();
        let whole = whole.split(|c: char| !c.is_alphanumeric()).map(str::to_owned);
        whole.chain(name_parts(name)).any(|part| is_command_name(&part))
    })
}

/// The words of a name in lower case, in any spelling: `run_command`, `runCommand`, `RUNCommand2`.
fn name_parts(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut parts = vec![String::new()];
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| chars.get(at)).is_some_and(|c| c.is_uppercase());
        let after = chars.get(at + 1).is_some_and(|c| c.is_lowercase());
        if !c.is_alphabetic() || (c.is_uppercase() && (!before || after)) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| c.is_alphabetic()) {
            part.extend(c.to_lowercase());
        }
    }
    parts
}

/// One of the names, or two without anything between, as in `runcommand`.
fn is_command_name(part: &str) -> bool {
    let mut rests = COMMAND_NAMES.iter().filter_map(|name| part.strip_prefix(name));
    rests.any(|rest| rest.is_empty() || COMMAND_NAMES.contains(&rest))
}

/// True when an argument is a command by its name.
fn has_command(arguments: &Arguments) -> bool {
    let letters = |name: &String| name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    arguments.0.keys().any(|name| COMMAND_ARGUMENTS.contains(&letters(name).as_str()))
}

/// The one command in the arguments, and the digest of all other arguments.
fn command(arguments: &Arguments) -> Result<(Vec<String>, Digest), NoRule> {
    let mut beside = arguments.0.clone();
    let command = match take(&mut beside, &["program"])? {
        Some(Value::String(program)) => {
            let rest = take(&mut beside, &["args", "arguments", "argv"])?.unwrap_or(Value::Array(Vec::new()));
            plain_list(&[vec![program], words(&rest)?].concat())?
        }
        Some(_) => return Err(NoRule::WhichCommand),
        None => match take(&mut beside, &["cmd", "command", "command_line", "argv", "args"])? {
            Some(Value::String(line)) => plain_words(&line)?,
            Some(list) => plain_list(&words(&list)?)?,
            None => return Err(NoRule::WhichCommand),
        },
    };
    let is_command =
        |name: &String| ["cmd", "command", "command_line", "argv", "args", "program", "script"].contains(&&**name);
    if beside.keys().any(is_command) {
        return Err(NoRule::WhichCommand);
    }
    beside.sort_keys();
    Ok((command, Digest::of(Value::Object(beside).to_string().as_bytes())))
}

/// Removes and returns the one argument with one of these names; several are an error.
fn take(fields: &mut Map<String, Value>, names: &[&str]) -> Result<Option<Value>, NoRule> {
    let mut found = names.iter().filter(|name| fields.contains_key(**name));
    match (found.next(), found.next()) {
        (None, _) => Ok(None),
        (Some(name), None) => Ok(fields.shift_remove(*name)),
        (Some(_), Some(_)) => Err(NoRule::WhichCommand),
    }
}

fn words(list: &Value) -> Result<Vec<String>, NoRule> {
    let texts = list.as_array().ok_or(NoRule::WhichCommand)?.iter().map(|word| word.as_str().map(str::to_owned));
    texts.collect::<Option<Vec<_>>>().ok_or(NoRule::WhichCommand)
}
