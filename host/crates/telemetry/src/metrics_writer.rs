//! Prometheus' text format 0.0.4, line by line. It knows no metric, and escapes every value of a label.

use longhaul_core::store::DurationCounts;
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

    /// Writes a family that is a histogram of durations, in seconds. None: the family has no lines.
    pub fn durations(&mut self, name: &str, help: &str, of: Option<&DurationCounts>) {
        self.family(name, help, "histogram");
        let Some(of) = of else { return };
        let (bucket, mut within) = (format!("{name}_bucket"), 0_u64);
        for (bound_ms, count) in &of.within_ms {
            within = within.saturating_add(*count);
            self.line(&bucket, &[("le", &(f64::from(*bound_ms) / 1e3).to_string())], within);
        }
        self.line(&bucket, &[("le", "+Inf")], of.count());
        let (seconds, micros) = (of.total_micros / 1_000_000, of.total_micros % 1_000_000);
        self.line(&format!("{name}_sum"), &[], format!("{seconds}.{micros:06}"));
        self.line(&format!("{name}_count"), &[], of.count());
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
    fn a_bucket_of_durations_holds_those_of_the_buckets_before_it() {
        let mut writer = MetricsWriter::default();
        let of = DurationCounts { within_ms: vec![(1, 2), (2_500, 0), (30_000, 3)], above: 1, total_micros: 1_000_020 };
        writer.durations("longhaul_t_seconds", "Times.", Some(&of));
        assert_eq!(
            writer.finish(),
            "# HELP longhaul_t_seconds Times.\n# TYPE longhaul_t_seconds histogram\n\
             longhaul_t_seconds_bucket{le=\"0.001\"} 2\nlonghaul_t_seconds_bucket{le=\"2.5\"} 2\n\
             longhaul_t_seconds_bucket{le=\"30\"} 5\nlonghaul_t_seconds_bucket{le=\"+Inf\"} 6\n\
             longhaul_t_seconds_sum 1.000020\nlonghaul_t_seconds_count 6\n"
        );
    }

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
