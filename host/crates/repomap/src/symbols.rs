//! The definitions of files, the most relevant first, as far as the budget allows.

use crate::definitions::Definition;
use crate::input::SourceFile;
use crate::rank::Ranks;
use crate::text::{plain, tokens};

/// Definitions of one file that are shown; the rest are counted.
const SHOWN_MAX: usize = 24;

/// The heading.
const HEAD: &str = "\nWhat files define, those first that matter most here:\n";

/// The text, with the number of its files.
pub(crate) fn text(
    files: &[&SourceFile],
    defined: &[Vec<Definition>],
    ranks: &Ranks,
    tokens_max: usize,
) -> (String, usize) {
    let mut room = tokens_max.saturating_sub(tokens(HEAD));
    let (mut text, mut count) = (String::new(), 0);
    for at in &ranks.order {
        let definitions = &defined[*at];
        if definitions.is_empty() {
            continue;
        }
        let Some(block) = block(&plain(&files[*at].path), definitions, room) else { break };
        room = room.saturating_sub(tokens(&block));
        text.push_str(&block);
        count += 1;
    }
    if count == 0 { (String::new(), 0) } else { (format!("{HEAD}{text}"), count) }
}

/// A file with as many of its definitions as fit; none when not even one does.
fn block(path: &str, definitions: &[Definition], room: usize) -> Option<String> {
    let line = |one: &Definition| format!("{}{}\n", "  ".repeat(one.depth + 1), one.signature);
    let more = |left: usize| if left == 0 { String::new() } else { format!("  … {left} more\n") };
    let mut text = format!("{path}\n");
    let mut shown = 0;
    for one in definitions.iter().take(SHOWN_MAX) {
        let next = line(one);
        let left = definitions.len() - shown - 1;
        if tokens(&text) + tokens(&next) + tokens(&more(left)) > room {
            break;
        }
        text.push_str(&next);
        shown += 1;
    }
    text.push_str(&more(definitions.len() - shown));
    (shown > 0).then_some(text)
}
