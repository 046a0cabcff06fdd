//! The findings about the database of a data directory, for `longhaul doctor`: one line each, with a remedy where
//! something is not as it should be. Nothing is changed, and no process that works with the database is disturbed.

use longhaul_api::wire::doctor::{CheckResult, CheckState};
use longhaul_config::{ServerUrl, server};
use longhaul_core::store::StoreError;
use longhaul_home::{Home, variable};
use longhaul_postgres::{PostgresConfig, ServerReport, inspect, probe_content};
use std::time::Duration;

/// The difference of the clocks, in milliseconds, that people should know of. Nothing depends on it.
const SKEW_MS_MAX: u64 = 5_000;

/// The age of a snapshot, in seconds, from which it keeps the server from removing dead rows for long.
const SNAPSHOT_S_MAX: u64 = 600;

/// Connections that the server should have left: those of another process that takes over.
const CONNECTIONS_LEFT_MIN: u64 = 8;

/// Dead rows that need no word.
const DEAD_ROWS_FEW: u64 = 100_000;

/// The findings; none where files of the data directory hold the state.
pub(crate) fn all(home: &Home) -> Vec<CheckResult> {
    let config = match server::store(home.path()) {
        Ok(None) => return Vec::new(),
        Ok(Some(config)) => config,
        Err(error) => return vec![result("database", CheckState::Broken, format!("{error:#}"))],
    };
    let mut found = match inspect(&config, &variable) {
        Ok(report) => lines(&config, &report),
        Err(error) => vec![result("database", CheckState::Broken, error.to_string())],
    };
    found.extend(content(probe_content(&config, &variable)));
    found
}

/// The finding about content outside of the database, which was tried with a small object.
fn content(probed: Result<Option<(String, Duration)>, StoreError>) -> Option<CheckResult> {
    const WHAT: &str = "content";
    match probed {
        Ok(None) => None,
        Ok(Some((place, took))) => {
            let said = format!("{place} takes, gives and deletes an object, in {} ms", took.as_millis());
            Some(result(WHAT, CheckState::Fine, said))
        }
        Err(error) => Some(result(WHAT, CheckState::Broken, error.to_string())),
    }
}

fn lines(config: &PostgresConfig, report: &ServerReport) -> Vec<CheckResult> {
    vec![database(report), commits(report), load(report), clock(report), holder(config, report)]
}

fn database(report: &ServerReport) -> CheckResult {
    const WHAT: &str = "database";
    let ServerReport { path, version, format_expected, is_pooled, is_encrypted, .. } = report;
    if report.is_replica {
        let said = format!("{path} is a replica, which takes no writes; name the primary in [store] url");
        return result(WHAT, CheckState::Broken, said);
    }
    if let Some(found) = report.format_found.filter(|found| found > format_expected) {
        let said = format!(
            "{path} has tables of format {found}, this longhaul reads {format_expected}; use the newer longhaul"
        );
        return result(WHAT, CheckState::Broken, said);
    }
    let way = match (is_pooled, is_encrypted) {
        (true, true) => " over TLS and a pooler",
        (true, false) => " over a pooler",
        (false, true) => " over TLS",
        (false, false) => "",
    };
    let tables = if report.format_found.is_none() { ", without tables yet" } else { "" };
    result(WHAT, CheckState::Fine, format!("PostgreSQL {version} at {path}{way}{tables}"))
}

fn commits(report: &ServerReport) -> CheckResult {
    const WHAT: &str = "database commits";
    let ServerReport { synchronous_commit, fsync, isolation, .. } = report;
    let said = format!("synchronous_commit = {synchronous_commit}, fsync = {fsync}, isolation {isolation}");
    match (synchronous_commit.as_str(), fsync.as_str()) {
        ("off", _) => result(
            WHAT,
            CheckState::Broken,
            format!("{said}; acknowledged commits are lost: ALTER ROLE ... SET synchronous_commit = on"),
        ),
        (_, "off") => {
            result(WHAT, CheckState::Less, format!("{said}; the machine's end loses everything: set fsync = on"))
        }
        _ => result(WHAT, CheckState::Fine, said),
    }
}

fn load(report: &ServerReport) -> CheckResult {
    const WHAT: &str = "database load";
    let ServerReport { connections_used: used, connections_max: max, dead_rows, .. } = report;
    let snapshot = report.oldest_snapshot_s.unwrap_or(0);
    let said = format!(
        "{used} of {max} connections, {} MB, {dead_rows} dead rows, oldest snapshot {snapshot} s",
        report.size_bytes >> 20
    );
    let remedy = if used.saturating_add(CONNECTIONS_LEFT_MIN) > *max {
        "raise max_connections, or put a pooler between"
    } else if snapshot > SNAPSHOT_S_MAX {
        "end the transaction that holds it, and set idle_in_transaction_session_timeout"
    } else if *dead_rows > DEAD_ROWS_FEW {
        "see that autovacuum runs"
    } else {
        return result(WHAT, CheckState::Fine, said);
    };
    result(WHAT, CheckState::Less, format!("{said}; {remedy}"))
}

fn clock(report: &ServerReport) -> CheckResult {
    const WHAT: &str = "database clock";
    let skew = report.clock_skew_ms;
    if skew.unsigned_abs() > SKEW_MS_MAX {
        let said = format!("{skew} ms from that of this machine; set one of them, or times in lists will not fit");
        return result(WHAT, CheckState::Less, said);
    }
    result(WHAT, CheckState::Fine, format!("{skew} ms from that of this machine"))
}

fn holder(config: &PostgresConfig, report: &ServerReport) -> CheckResult {
    const WHAT: &str = "database holder";
    let commits = report.commits.unwrap_or(0);
    let at = match report.holder_url.as_deref().map(ServerUrl::parse) {
        None => String::new(),
        Some(Some(url)) => format!(", at {url},"),
        Some(None) => ", at an invalid address,".to_owned(),
    };
    let said = match (&report.holder, report.lease_left_ms.unwrap_or(0)) {
        (None, _) => format!("nobody works with schema `{}`; it has {commits} commits", config.schema),
        (Some(holder), left @ 1..) => {
            format!("{holder}{at} works with it, for {left} ms without renewal; it has {commits} commits")
        }
        (Some(holder), _) => format!("{holder} had it last, and its lease ran out; it has {commits} commits"),
    };
    result(WHAT, CheckState::Fine, said)
}

fn result(what: &str, state: CheckState, said: String) -> CheckResult {
    CheckResult { what: what.to_owned(), state, said }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> ServerReport {
        ServerReport {
            path: "postgres://me@h/db".to_owned(),
            version: "15.8".to_owned(),
            is_replica: false,
            synchronous_commit: "on".to_owned(),
            fsync: "on".to_owned(),
            isolation: "read committed".to_owned(),
            is_encrypted: true,
            is_pooled: false,
            connections_used: 9,
            connections_max: 100,
            clock_skew_ms: -3,
            timeline: Some(1),
            format_found: Some(1),
            format_expected: 1,
            holder: Some("process 5 on a with /d".to_owned()),
            holder_url: None,
            lease_left_ms: Some(7_000),
            commits: Some(12),
            epoch: Some(2),
            size_bytes: 3 << 20,
            dead_rows: 4,
            oldest_snapshot_s: None,
        }
    }

    #[test]
    fn a_database_in_order_has_a_line_for_each_finding() {
        let found = lines(&PostgresConfig::at("postgres://me@h/db"), &report());
        assert!(found.iter().all(|line| line.state == CheckState::Fine));
        assert_eq!(
            found.iter().map(|line| format!("{}: {}", line.what, line.said)).collect::<Vec<_>>(),
            [
                "database: PostgreSQL 15.8 at postgres://me@h/db over TLS",
                "database commits: synchronous_commit = on, fsync = on, isolation read committed",
                "database load: 9 of 100 connections, 3 MB, 4 dead rows, oldest snapshot 0 s",
                "database clock: -3 ms from that of this machine",
                "database holder: process 5 on a with /d works with it, for 7000 ms without renewal; it has 12 commits",
            ]
        );
    }

    #[test]
    fn content_outside_of_the_database_has_a_line_where_settings_name_a_place_for_it() {
        assert!(content(Ok(None)).is_none());
        let fine = content(Ok(Some(("s3://b/p".to_owned(), Duration::from_millis(41))))).expect("a line");
        assert_eq!(
            (fine.state, &*fine.said),
            (CheckState::Fine, "s3://b/p takes, gives and deletes an object, in 41 ms")
        );
        let away = StoreError::Unreachable { path: "s3://b/p".to_owned(), detail: "no answer within 60 s".to_owned() };
        let broken = content(Err(away)).expect("a line");
        assert!(broken.state == CheckState::Broken && broken.said.contains("s3://b/p"), "{broken:?}");
    }

    #[test]
    fn what_is_not_as_it_should_be_is_told_with_a_remedy() {
        let check = |change: &dyn Fn(&mut ServerReport), at: usize, state: CheckState, words: &str| {
            let mut report = report();
            change(&mut report);
            let found = lines(&PostgresConfig::at("postgres://me@h/db"), &report);
            assert!(found[at].state == state && found[at].said.contains(words), "{:?}", found[at]);
        };
        let (broken, less, fine) = (CheckState::Broken, CheckState::Less, CheckState::Fine);
        check(&|report| report.is_replica = true, 0, broken, "name the primary");
        check(&|report| report.format_found = Some(2), 0, broken, "use the newer longhaul");
        check(&|report| report.format_found = None, 0, fine, "without tables yet");
        check(&|report| report.synchronous_commit = "off".into(), 1, broken, "ALTER ROLE");
        check(&|report| report.fsync = "off".into(), 1, less, "set fsync = on");
        check(&|report| report.connections_used = 92, 2, fine, "92 of 100");
        check(&|report| report.connections_used = 93, 2, less, "raise max_connections");
        check(&|report| report.oldest_snapshot_s = Some(601), 2, less, "idle_in_transaction_session_timeout");
        check(&|report| report.dead_rows = 100_001, 2, less, "autovacuum");
        check(&|report| report.clock_skew_ms = -5_001, 3, less, "set one of them");
        check(&|report| report.holder = None, 4, fine, "nobody works with schema `longhaul`");
        check(&|report| report.lease_left_ms = Some(0), 4, fine, "its lease ran out");
        let at = |url: &'static str| move |report: &mut ServerReport| report.holder_url = Some(url.to_owned());
        check(&at("http://10.0.0.2:7717"), 4, fine, "with /d, at http://10.0.0.2:7717, works with it");
        check(&at("http://me@h/"), 4, fine, "at an invalid address, works");
    }
}
