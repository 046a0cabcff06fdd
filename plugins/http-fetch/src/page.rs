//! A web page as text.
//!
//! The text has the words of the page, with headings, lists, tables and addresses of links. Scripts are never run. Pages
//! that nest deeper than people write them are refused, because their layout takes a stack as deep.

use std::collections::BTreeMap;

/// Columns of the text.
const WIDTH: usize = 100;

/// Elements within each other. Real pages have tens.
const DEPTH_MAX: usize = 256;

/// The number of nodes that a parser adds around all elements and their text: the document, `html`, `body` and text.
const WRAPPERS: usize = 4;

/// Elements that have no end.
const VOID: [&str; 14] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"];

/// The text of a page, or why there is none.
pub(crate) fn read(bytes: &[u8]) -> Result<String, String> {
    let depth = depth(bytes);
    if depth > DEPTH_MAX {
        return Err(format!("the page has {depth} elements within each other, more than {DEPTH_MAX}; take it `raw`"));
    }
    let unread = |error: html2text::Error| format!("the page cannot be read: {error}; take it `raw`");
    let config = html2text::config::plain().allow_width_overflow();
    let dom = config.parse_html(bytes).map_err(unread)?;
    // Marks that cross each other nest deeper than they are written.
    if is_deeper(&dom, DEPTH_MAX + WRAPPERS) {
        return Err(format!("the page has more than {DEPTH_MAX} elements within each other; take it `raw`"));
    }
    config.dom_to_render_tree(&dom).and_then(|tree| config.render_to_string(tree, WIDTH)).map_err(unread)
}

/// True when nodes are within each other more than `max` times. Takes no stack.
fn is_deeper(dom: &html2text::RcDom, max: usize) -> bool {
    let mut level = vec![dom.document.clone()];
    for _ in 0..=max {
        level = level.iter().flat_map(|node| node.children.borrow().clone()).collect();
    }
    !level.is_empty()
}

/// About how deep elements are nested: those that are never closed count, too. Cheap, so that what is far too deep is
/// not even parsed, which takes time by the depth at each mark.
fn depth(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut open: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
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
            // An end tag without an open or counted element ends nothing.
            if let Some(count) = open.get_mut(&name).filter(|count| **count > 0) {
                *count -= 1;
                depth -= 1;
            }
        } else if !matches!(name.as_slice(), b"p" | b"li" | b"td" | b"th" | b"tr" | b"option" | b"dt" | b"dd") {
            // Browsers close those by themselves where the next one begins.
            *open.entry(name).or_default() += 1;
            depth += 1;
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
        for (name, turn) in [
            ("a paragraph is closed that did not count", "<div><p></p>"),
            ("what is not open is closed", "<div></span>"),
            ("marks cross each other", "<span><div></span></div>"),
            ("lists within items", "<li><ul></li></li>"),
        ] {
            let page = turn.repeat(1_000);
            assert!(read(page.as_bytes()).expect_err(name).contains("within each other"), "{name}");
        }
        let flat = "<div><p>x</p><ul><li>y</li></ul></div>".repeat(1_000);
        assert!(read(flat.as_bytes()).expect("a page").len() > 2_000);
        let nested = |count| read(format!("{}x{}", "<div>".repeat(count), "</div>".repeat(count)).as_bytes());
        assert!(nested(DEPTH_MAX).is_ok() && nested(DEPTH_MAX + 1).is_err());
        let long = "<p>x".repeat(2_000);
        assert!(read(long.as_bytes()).expect("a page").len() > 2_000);
    }
}
