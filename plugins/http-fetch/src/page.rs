//! A web page as text.
//!
//! What is read are its words, with headings, lists, tables and addresses of links; what it would do is not.
//! Refuses pages that are nested deeper than people write them: laying those out takes a stack as deep.

/// Columns of the text.
const WIDTH: usize = 100;

/// Elements within each other. Real pages have tens.
const DEPTH_MAX: usize = 256;

/// Elements that have no end.
const VOID: [&str; 14] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"];

/// The text of a page, or why there is none.
pub(crate) fn read(bytes: &[u8]) -> Result<String, String> {
    let depth = depth(bytes);
    if depth > DEPTH_MAX {
        return Err(format!("the page has {depth} elements within each other, more than {DEPTH_MAX}; take it `raw`"));
    }
    let text = html2text::config::plain().allow_width_overflow().string_from_read(bytes, WIDTH);
    text.map_err(|error| format!("the page cannot be read: {error}; take it `raw`"))
}

/// At least how deep elements are nested: elements that are never closed count, too.
fn depth(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for piece in bytes.split(|byte| *byte == b'<').skip(1) {
        let is_end = piece.first() == Some(&b'/');
        let name: Vec<u8> = piece
            .iter()
            .skip(usize::from(is_end))
            .take_while(|byte| byte.is_ascii_alphanumeric())
            .map(u8::to_ascii_lowercase)
            .collect();
        if name.is_empty() || VOID.iter().any(|void| void.as_bytes() == name) {
            continue;
        }
        if is_end {
            depth = depth.saturating_sub(1);
        } else {
            depth += 1;
            // Browsers close these by themselves where the next one begins.
            if matches!(name.as_slice(), b"p" | b"li" | b"td" | b"th" | b"tr" | b"option" | b"dt" | b"dd") {
                depth -= 1;
            }
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_its_words() {
        let page = "<html><head><title>T</title><style>p{}</style><script>alert(1)</script></head><body>\
                    <h1>Head</h1><p>One <b>two</b> <a href='https://a.example/x'>three</a>.<ul><li>four</ul></body></html>";
        let text = read(page.as_bytes()).expect("a page");
        for word in ["Head", "One", "two", "three", "https://a.example/x", "four"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(!text.contains("alert") && !text.contains("p{}"), "{text}");
    }

    #[test]
    fn a_page_without_a_bottom_is_refused_and_one_with_many_lines_is_not() {
        let deep = "<div>".repeat(100_000);
        assert!(read(deep.as_bytes()).expect_err("deep").contains("within each other"));
        let long = "<p>x".repeat(2_000);
        assert!(read(long.as_bytes()).expect("a page").len() > 2_000);
    }
}
