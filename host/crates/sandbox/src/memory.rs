//! The private memory of the processes that a program sees, read from `/proc`.
//!
//! Called inside of the sandbox by the child that holds a program and its own children to one limit together. It ends
//! nothing. The caller knows whether this `/proc` shows the processes of its sandbox alone.

use std::path::Path;

/// The private memory of all processes that `proc` shows, in bytes; 0 where it cannot be read.
#[must_use]
pub fn private_bytes(proc: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(proc) else { return 0 };
    let processes = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit));
    let statuses = processes.filter_map(|process| std::fs::read_to_string(process.path().join("status")).ok());
    statuses.map(|status| private_bytes_of(&status)).sum()
}

/// `RssAnon` and `RssShmem` of a status, which are in KiB.
fn private_bytes_of(status: &str) -> u64 {
    let lines = status.lines().filter(|line| line.starts_with("RssAnon:") || line.starts_with("RssShmem:"));
    lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).map(|kib| kib << 10).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_processes_have_for_themselves() {
        let status = "Name:\tx\nVmRSS:\t  900 kB\nRssAnon:\t  100 kB\nRssFile:\t 700 kB\nRssShmem:\t  10 kB\n";
        assert_eq!(private_bytes_of(status), 110 << 10);
        assert!(private_bytes(Path::new("/proc")) > 0, "this test has some");
        assert_eq!(private_bytes(Path::new("/nowhere")), 0);
    }
}
