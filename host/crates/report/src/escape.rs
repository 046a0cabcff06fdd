//! Words of plugins and models as text of a page, without markup.

use longhaul_core::text::is_hidden;

/// Text without markup, fit for an attribute too.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' => escaped.push('\n'),
            char if is_hidden(char) => escaped.push('�'),
            char => escaped.push(char),
        }
    }
    escaped
}
