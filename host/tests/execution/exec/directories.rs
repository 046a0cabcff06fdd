//! Directories that code was granted, and the files of the machine that it does not see.

use super::{expect, folder, python, run, seeing, stays_healthy};
use longhaul::exec::{Job, JobLimits};
use longhaul_core::grant::Access;
use std::fs;

#[tokio::test]
async fn nothing_of_the_host_is_seen() {
    for source in [
        "import os; assert not os.environ, os.environ",
        "import os; os.fork()",
        "import os\nwhile True: os.fork()",
        "import os; os.system('ls')",
        "import os; os.execv('/bin/ls', ['ls'])",
        "import os; os.posix_spawn('/bin/ls', ['ls'], {})",
        "import os; os.kill(1, 9)",
        "import subprocess; subprocess.run(['ls'])",
        "import subprocess\nwhile True: subprocess.Popen(['python3'])",
        "import multiprocessing; multiprocessing.Process(target=print).start()",
        "import ctypes; ctypes.CDLL(None)",
        "import asyncio; asyncio.run(asyncio.create_subprocess_shell('ls'))",
        "import socket; socket.create_connection(('127.0.0.1', 80), 1)",
        "open('/etc/passwd')",
        "open('../../etc/passwd')",
        "import _thread\nwhile True: _thread.start_new_thread(print, ())",
    ] {
        let report = run(python(source)).await;
        let is_fine = source.contains("environ");
        assert_eq!(report.success, is_fine, "{source}: {report:#?}");
        assert!(is_fine || report.exit_code == Some(1), "an exception and no trap: {source}: {report:#?}");
    }
    stays_healthy().await;
}

#[tokio::test]
async fn a_read_only_directory_cannot_be_changed() {
    let (_directory, inside) = folder();
    for source in [
        "open('/data/a.txt', 'w')",
        "open('/data/a.txt', 'r+').truncate(0)",
        "open('/data/new', 'x')",
        "import os; os.truncate('/data/a.txt', 0)",
        "import os; os.rename('/data/a.txt', '/data/b.txt')",
        "import os; os.link('/data/a.txt', '/data/b.txt')",
        "import os; os.symlink('a.txt', '/data/b.txt')",
        "import os; os.unlink('/data/a.txt')",
        "import os; os.mkdir('/data/d')",
        "import os; os.utime('/data/a.txt', (0, 0))",
    ] {
        let report = run(seeing(python(source), &inside, Access::Read)).await;
        assert_eq!(report.exit_code, Some(1), "{source}: {report:#?}");
    }
    let report = run(seeing(python("print(open('/data/a.txt').read())"), &inside, Access::Read)).await;
    expect(&report, "kept\n", Some(0), None);
    let mut names: Vec<_> =
        fs::read_dir(&inside).expect("ours").map(|entry| entry.expect("ours").file_name()).collect();
    names.sort();
    assert_eq!(names, ["a.txt", "out"]);
    assert_eq!(fs::read_to_string(inside.join("a.txt")).expect("ours"), "kept");
}

#[tokio::test]
async fn code_writes_no_more_than_its_limit_and_the_report_names_it() {
    let writes = async |source: &str| {
        let (_directory, inside) = folder();
        let limits = JobLimits { disk_bytes_max: 1 << 20, ..JobLimits::default() };
        let report = run(Job { limits, ..seeing(python(source), &inside, Access::Write) }).await;
        let length = |entry: fs::DirEntry| entry.metadata().expect("ours").len();
        let bytes: u64 = fs::read_dir(&inside).expect("ours").map(|entry| length(entry.expect("ours"))).sum();
        let entries = fs::read_dir(&inside).expect("ours").count();
        (report, bytes, entries)
    };
    for source in [
        "open('/data/large', 'wb').write(b'x' * (2 << 20))",
        "for number in range(100):\n with open('/data/again', 'wb') as file: file.write(b'x' * (64 << 10))",
        "open('/data/a.txt', 'ab').write(b'x' * (2 << 20))",
        "import os; os.truncate('/data/a.txt', 2 << 20)",
        "import os; file = os.open('/data/b', os.O_CREAT | os.O_WRONLY); [os.write(file, bytes(9_000)) for _ in range(999)]",
        "for number in range(1_000): open(f'/data/{number}', 'w')",
        "import os\nfor number in range(1_000): os.mkdir(f'/data/{number}')",
        "import os\nfor number in range(1_000): os.symlink('a.txt', f'/data/{number}')",
    ] {
        let (report, bytes, entries) = writes(source).await;
        assert_eq!(report.exit_code, Some(1), "{source}: {report:#?}");
        assert_eq!(report.limit.as_deref(), Some("disk_bytes_max"), "{source}: {report:#?}");
        assert!(report.error_message.as_deref().is_some_and(|text| text.contains("1048576 bytes")), "{report:#?}");
        assert!(bytes <= 1 << 21 && entries < 300, "{source}: {bytes} bytes, {entries} entries");
    }
    // A full disk is an error that code may handle. The C library of the guest has one code for all errors of a stream.
    for (write, code) in [
        ("import os; os.truncate('/data/a.txt', 2 << 20)", "ENOSPC\n"),
        ("open('/data/large', 'wb').write(bytes(2 << 20))", "EIO\n"),
    ] {
        let handled =
            format!("import errno\ntry:\n {write}\nexcept OSError as error:\n print(errno.errorcode[error.errno])");
        let (report, ..) = writes(&handled).await;
        expect(&report, code, Some(0), None);
    }
    let (report, bytes, _) = writes("open('/data/small', 'wb').write(bytes(900_000))").await;
    expect(&report, "", Some(0), None);
    assert!(bytes >= 900_000, "what fits is written");
}

#[tokio::test]
async fn no_path_leads_out_of_a_directory() {
    let (directory, inside) = folder();
    for source in [
        "open('/data/out').read()",
        "open('/data/../secret.txt').read()",
        "open('/secret.txt').read()",
        "open('/data/../../../../../../etc/passwd').read()",
        "import os; os.chdir('/data'); open('../../etc/passwd').read()",
        "import os; os.symlink('../secret.txt', '/data/own'); open('/data/own').read()",
        "import os; os.rename('/data/a.txt', '/data/../a.txt')",
    ] {
        let report = run(seeing(python(source), &inside, Access::Write)).await;
        assert_eq!(report.exit_code, Some(1), "{source}: {report:#?}");
        assert!(!report.stdout.contains("secret"), "{report:#?}");
    }
    let report = run(seeing(python("open('/data/new.txt', 'w').write('made')"), &inside, Access::Write)).await;
    expect(&report, "", Some(0), None);
    assert_eq!(fs::read_to_string(inside.join("new.txt")).expect("ours"), "made");
    assert!(!directory.path().join("a.txt").exists());
}
