//! The texts of the demo, as lines for people.

use crate::context::Context;

/// Prints lines of the host. With `--json` they go to standard error.
pub(super) fn say(context: &Context, text: &str) {
    for line in text.split('\n') {
        match context.json {
            true => errln!("{line}"),
            false => outln!("{line}"),
        }
    }
}
