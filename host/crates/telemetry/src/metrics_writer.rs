//! Prometheus' text format 0.0.4, line by line. It knows no metric, and escapes every value of a label.

use std::fmt::{Display, Write as _};

/// Writes families of metrics and their lines.
#[derive(Debug, Default)]
pub struct MetricsWriter(String);

impl MetricsWriter {
    /// Begins a family of counters, which never go down while the process lives.
    pub fn counter(&mut self, name: &str, help: &str) {
        self.family(name, help, "counter");
    }

    /// Begins a family of gauges.
    pub fn gauge(&mut self, name: &str, help: &str) {
        self.family(name, help, "gauge");
    }

    /// Writes one value, with its labels by name.
    pub fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        // Writing into a string cannot fail.
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    /// The text so far.
    #[must_use]
    pub fn finish(self) -> String {
        self.0
    }

    fn family(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }
}

/// The value as the format writes a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_ends_where_its_quotes_end_whatever_is_in_it() {
        let mut writer = MetricsWriter::default();
        writer.gauge("longhaul_things", "Things, by kind.");
        writer.line("longhaul_things", &[("kind", "a\"} 9\nb\\"), ("of", "c")], 2);
        writer.line("longhaul_things", &[], 0.5);
        assert_eq!(
            writer.finish(),
            "# HELP longhaul_things Things, by kind.\n# TYPE longhaul_things gauge\n\
             longhaul_things{kind=\"a\\\"} 9\\nb\\\\\",of=\"c\"} 2\nlonghaul_things 0.5\n"
        );
    }
}
