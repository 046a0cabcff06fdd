//! Plots as SVG: of something that grows in steps over time, and of shares beside each other.

use super::escape::escaped;
use super::messages::moment;
use super::span;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// The drawing in its own units; the page scales it.
const WIDTH: u64 = 480;
const HEIGHT: u64 = 160;
/// Room for the numbers at the left and below.
const LEFT: u64 = 50;
const BELOW: u64 = 22;
const ABOVE: u64 = 8;

/// `points` are moments, in milliseconds, from which on a value holds; before the first it is 0. The scale goes up to
/// `top` at least.
pub(super) fn steps(title: &str, time: RangeInclusive<u64>, points: &[(u64, u64)], top: u64) -> String {
    let (from, until) = (*time.start(), (*time.end()).max(*time.start() + 1));
    let top = points.iter().map(|(_, value)| *value).max().unwrap_or(0).max(top).max(1);
    let x = |at: u64| LEFT + at.clamp(from, until).saturating_sub(from) * (WIDTH - LEFT) / (until - from);
    let y = |value: u64| ABOVE + (HEIGHT - ABOVE - BELOW).saturating_mul(top - value.min(top)) / top;
    let mut line = format!("M{} {}", x(from), y(0));
    for (at, value) in points {
        let _ = write!(line, "H{}V{}", x(*at), y(*value));
    }
    let _ = write!(line, "H{}", x(until));
    let last = points.last().map_or(0, |(_, value)| *value);
    let (title, base) = (escaped(title), y(0));
    format!(
        "<figure><figcaption>{title}: {last}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}, {last} at the end\">\
         <path class=\"axis\" d=\"M{LEFT} {ABOVE}V{base}H{WIDTH}\" fill=\"none\"/>\
         <text x=\"{number_x}\" y=\"{top_y}\" text-anchor=\"end\">{top}</text>\
         <text x=\"{number_x}\" y=\"{base}\" text-anchor=\"end\">0</text>\
         <text x=\"{LEFT}\" y=\"{below}\">{start}</text>\
         <text x=\"{WIDTH}\" y=\"{below}\" text-anchor=\"end\">after {took}</text>\
         <path class=\"mark\" d=\"{line}\"/></svg></figure>",
        number_x = LEFT - 6,
        top_y = ABOVE + 8,
        below = HEIGHT - 6,
        start = moment(from),
        took = span(until - from),
    )
}

/// Height of a bar with the room above it.
const BAR: u64 = 24;
/// Room for the names at the left and the numbers at the right.
const NAMES: u64 = 130;
const NUMBERS: u64 = 90;
/// Letters of a name that fit there.
const NAME_CHARS_MAX: usize = 20;

/// A bar for each name, as long as its value is beside the largest; the number is shown as a text where one is given.
pub(super) fn bars(title: &str, rows: Vec<(&str, u64, Option<String>)>) -> String {
    let top = rows.iter().map(|(_, value, _)| *value).max().unwrap_or(0).max(1);
    let height = ABOVE + BAR * rows.len() as u64 + ABOVE;
    let mut drawn = String::new();
    for ((name, value, shown), at) in rows.into_iter().zip(0..) {
        let y = ABOVE + BAR * at;
        // In 128 bits: a width times a number of tokens may be more than 64 hold.
        let width = u128::from(WIDTH - NAMES - NUMBERS) * u128::from(value) / u128::from(top);
        let name = escaped(&name.chars().take(NAME_CHARS_MAX).collect::<String>());
        let shown = escaped(&shown.unwrap_or_else(|| value.to_string()));
        let _ = write!(
            drawn,
            "<text x=\"{}\" y=\"{text_y}\" text-anchor=\"end\">{name}</text>\
             <rect class=\"bar\" x=\"{NAMES}\" y=\"{y}\" width=\"{width}\" height=\"{}\"/>\
             <text x=\"{WIDTH}\" y=\"{text_y}\" text-anchor=\"end\">{shown}</text>",
            NAMES - 6,
            BAR - 8,
            text_y = y + BAR - 12,
        );
    }
    let title = escaped(title);
    format!(
        "<figure><figcaption>{title}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">{drawn}</svg></figure>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_stays_within_its_frame_whatever_the_numbers_are() {
        let check = |points: &[(u64, u64)], expected: &str| {
            let drawn = steps("x", 1_000..=2_000, points, 0);
            assert!(drawn.contains(expected), "{drawn}");
        };
        check(&[], "d=\"M50 138H480\"");
        check(&[(1_500, 2), (1_750, 1)], "d=\"M50 138H265V8H372V73H480\"");
        // A clock that was set back, and more than was ever expected.
        check(&[(0, 5), (9_999, 10)], "d=\"M50 138H50V73H480V8H480\"");
        assert!(steps("x", 5..=5, &[(5, 1)], 0).contains("after 0 s"));
    }

    #[test]
    fn bars_are_as_long_as_their_share_of_the_largest() {
        let drawn =
            bars("By <agent>", vec![("agents.code", 200, None), ("a&b", 50, Some("$1".into())), ("none", 0, None)]);
        for expected in ["width=\"260\"", "width=\"65\"", "width=\"0\"", "By &lt;agent&gt;", "a&amp;b", ">$1<", ">200<"]
        {
            assert!(drawn.contains(expected), "{expected}: {drawn}");
        }
        assert!(bars("x", vec![("a", u64::MAX, None)]).contains("width=\"260\""));
        assert!(bars("x", Vec::new()).contains("<svg"));
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        let drawn = steps("x", 0..=u64::from(u32::MAX) * 1_000, &[(u64::from(u32::MAX) * 999, u64::from(u32::MAX))], 0);
        assert!(drawn.contains("<svg"), "{drawn}");
    }
}
