//! The values that a file may have, and the errors for others.

use super::*;

#[test]
fn a_file_may_leave_everything_out_and_a_wrong_word_is_refused() {
    let nothing = Written::parse("").unwrap();
    assert_eq!((nothing.server, nothing.notify.is_none()), (ServerSettings::default(), true));
    assert_eq!(Written::parse("[server]\nhosts = ['a.example']").unwrap().server.hosts, ["a.example"]);
    let url = Written::parse("[server]\nurl = 'http://10.0.0.2:7717/'").unwrap().server.server_url();
    assert_eq!(url.map(|url| url.to_string()).as_deref(), Some("http://10.0.0.2:7717"));
    assert!(Written::parse("[notify]\ncommand = ['true']").unwrap().notify.is_some());
    assert!(Written::parse("[store]\nurl = 'postgres://me@db.example/work'").unwrap().store.is_some());
    assert_eq!(Written::parse("[server]\n").unwrap().scheduler, SchedulerSettings::default());
    let edge = "[scheduler]\nqueue_max = 1\ninterruption_backoff_ms_first = 5\ninterruption_backoff_ms_max = 5";
    assert_eq!(Written::parse(edge).unwrap().scheduler.interruption_backoff_ms_max, 5);
    for wrong in [
        "[server]\nlisten = '0.0.0.0:1'\ntokens = false",
        "[server]\nrequests_per_second = 0",
        "[server]\nurl = ''",
        "[server]\nurl = '10.0.0.2:7717'",
        "[server]\nurl = 'http://me:secret@10.0.0.2:7717'",
        "[server]\nurl = 'http://10.0.0.2:7717'\ntokens = false",
        "[server]\nbody_bytes_max = 17000000",
        "[server]\nno_such = 1",
        "[sever]\n",
        "[scheduler]\nqueue_max = 0",
        "[scheduler]\nqueue_max = 100001",
        "[scheduler]\ninterruption_backoff_ms_first = 0",
        "[scheduler]\ninterruption_backoff_ms_max = 999",
        "[scheduler]\ninterruption_backoff_ms_max = 86400001",
        "[scheduler]\nno_such = 1",
        "[notify]\n",
        "[notify]\ncommand = ['true']\nno_such = 1",
        "[store]\n",
        "[store]\nurl = 'redis://h/0'",
        "[store]\nurl = 'postgres://me@h/db'\nlease_ms = 1999",
        "[store]\nurl = 'postgres://me@h/db'\n[store.content]\nurl = 's3://bucket'",
        "[store]\nurl = 'postgres://me@h/db'\n[store.content]\nurl = 'file:///srv/content'\nsecret_key = 'x'",
        "[server]\nworker = {}",
    ] {
        assert!(Written::parse(wrong).is_err(), "{wrong}");
    }
}

/// The parser's own error has five lines.
#[test]
fn a_wrong_key_is_told_in_one_line_with_its_place_and_the_keys_that_are_meant() {
    let told = |text: &str| Written::parse(text).expect_err("wrong").to_string();
    assert_eq!(
        told("listen = '127.0.0.1:1'"),
        "line 1: unknown field `listen`; there are `server`, `scheduler`, `notify`, `store`, `worker`"
    );
    assert_eq!(
        told("[scheduler]\nqueue_mx = 1"),
        "line 2: [scheduler] unknown field `queue_mx`; did you mean `queue_max`?"
    );
}

#[test]
fn the_store_is_found_beside_faults_of_other_tables_and_its_own_are_told_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let read = |text: &str| {
        std::fs::write(folder.path().join(FILE), text).unwrap();
        store(folder.path())
    };
    assert_eq!(read("[server]\nno_such = 1\n").unwrap(), None);
    let found = read("[sever]\n[store]\nurl = 'postgres://me@h/db'\nca_file = '/ca.pem'\n").unwrap().unwrap();
    assert_eq!((found.schema.as_str(), found.ca_file), ("longhaul", Some("/ca.pem".into())));
    let told = |text: &str| format!("{:#}", read(text).unwrap_err());
    let path = folder.path().join(FILE);
    assert_eq!(
        told("[store]\nurl = 'postgres://me:hunter2@h/db'"),
        format!(
            "`{}`: [store] url holds a password; remove it, and name a variable of the environment with password_env",
            path.display()
        )
    );
    let slip = told("[store]\nurl = 'postgres://me@h/db'\nlease = 1");
    assert!(slip.contains("line 3: [store] unknown field `lease`") && slip.lines().count() == 1, "{slip}");
}

#[test]
fn a_worker_has_a_database_and_a_wrong_value_of_it_is_told_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let read = |text: &str| {
        std::fs::write(folder.path().join(FILE), text).unwrap();
        ServerSettings::read(folder.path())
    };
    let store = "[store]\nurl = 'postgres://me@h/db'\n";
    assert_eq!(read(store).unwrap().worker(), None);
    assert_eq!(read(&format!("{store}[worker]")).unwrap().worker(), Some(&WorkerSettings::default()));
    let all = format!("{store}[worker]\nlabels = ['gpu', 'eu']\nruns_max = 10000");
    let expected = WorkerSettings { labels: vec!["gpu".into(), "eu".into()], runs_max: Some(10_000) };
    assert_eq!(read(&all).unwrap().worker(), Some(&expected));
    for (text, told) in [
        ("[worker]", "[worker] shares the runs of a database with other servers; add [store]"),
        ("STORE[worker]\nruns_max = 0", "[worker] runs_max is 0; write a number from 1 to 10000"),
        ("STORE[worker]\nruns_max = 10001", "[worker] runs_max is 10001; write a number from 1 to 10000"),
        ("STORE[worker]\nruns_max = -1", "line 4: [worker] invalid value: integer `-1`"),
        ("STORE[worker]\nlabels = ['GPU']", "[worker] labels has `GPU`; a label has 1 to 63"),
        ("STORE[worker]\nlabels = ['a', 'a']", "[worker] labels has `a` twice"),
        ("STORE[worker]\nlabels = 'a'", "line 4: [worker] invalid type: string \"a\", expected a sequence"),
        ("STORE[worker]\nlabel = ['a']", "line 4: [worker] unknown field `label`; did you mean `labels`?"),
    ] {
        let said = format!("{:#}", read(&text.replace("STORE", store)).expect_err(text));
        assert!(said.contains(told) && said.lines().count() == 1, "{text}: {said}");
    }
}

#[test]
fn a_name_that_was_not_allowed_is_no_name_of_ours() {
    let local = ServerSettings { hosts: vec!["longhaul.example".into()], ..ServerSettings::default() };
    for ours in ["localhost", "LOCALHOST", "127.0.0.1", "[::1]", "longhaul.example"] {
        assert!(local.answers_to(ours), "{ours}");
    }
    for other in ["", "evil.example", "localhost.evil.example", "127.0.0.2", "0.0.0.0", "longhaul.example.evil"] {
        assert!(!local.answers_to(other), "{other}");
    }
    let wide = ServerSettings { listen: "192.0.2.1:80".parse().unwrap(), ..ServerSettings::default() };
    assert!(wide.answers_to("192.0.2.1") && !wide.answers_to("localhost"));
    let at = |url: &str| ServerSettings { url: Some(url.to_owned()), ..wide.clone() };
    assert!(at("https://alpha.example").answers_to("Alpha.example"));
    assert!(at("http://[fd00::2]:1").answers_to("[fd00::2]"));
    assert!(!at("https://alpha.example").answers_to("beta.example"));
}

#[test]
fn a_reload_takes_what_it_can_and_names_the_rest() {
    let before = ServerSettings::default();
    let url = Some("http://10.0.0.2:7717".to_owned());
    let after = ServerSettings { streams_max: 1, connections_max: 1, url, ..ServerSettings::default() };
    let (now, kept) = before.reloaded(after);
    assert_eq!((now.streams_max, now.connections_max, now.url), (1, 512, None));
    assert_eq!(kept, ["url", "connections_max"]);
}

#[test]
fn a_reload_takes_new_labels_and_leaves_it_to_a_start_which_server_is_a_worker() {
    let with = |worker| ServerSettings { worker, ..ServerSettings::default() };
    let one = WorkerSettings { labels: vec!["gpu".into()], runs_max: Some(2) };
    let other = WorkerSettings::default();
    for (before, after, now, kept) in [
        (Some(&one), Some(&other), Some(&other), &[][..]),
        (Some(&one), None, Some(&one), &["[worker]"][..]),
        (None, Some(&one), None, &["[worker]"][..]),
        (None, None, None, &[][..]),
    ] {
        let (taken, restarts) = with(before.cloned()).reloaded(with(after.cloned()));
        assert_eq!((taken.worker(), restarts.as_slice()), (now, kept));
    }
}
