//! Sums and units of measurements, in which zero has no sign.

/// The sum; of nothing it is 0, while the standard library returns -0, which is shown with its sign.
pub fn sum(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, |sum, number| sum + number)
}

/// Bytes as MB of 1,048,576.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "shown, and compared with limits of whole MB")]
pub fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn the_sum_of_nothing_has_no_sign() {
        assert_eq!(format!("{:.1} MB", sum(std::iter::empty())), "0.0 MB");
        assert_eq!(sum([1.5, 2.0].into_iter()), 3.5);
    }
}
