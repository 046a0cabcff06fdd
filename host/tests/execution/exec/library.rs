//! The standard library of the sandboxed Python: which modules there are, and what of a machine it does without one.

use super::{expect, folder, python, run, seeing, within};
use crate::common::repository;
use longhaul_core::grant::Access;
use std::fs;

/// The job that imports every module; it prints a row of the book's table for each.
const MODULES: &str = include_str!("library/modules.py");

/// Where the table is, between two lines that only the page's source shows.
const PAGE: &str = "docs/book/src/guides/python-library.md";
const BEGIN: &str = "<!-- made by host/tests/execution/exec/library/modules.py -->\n";
const END: &str = "<!-- to here -->\n";

#[tokio::test]
async fn the_book_lists_every_module_that_can_be_imported_and_why_others_cannot() {
    let report = run(python(MODULES)).await;
    assert_eq!(report.exit_code, Some(0), "{report:#?}");
    let path = repository().join(PAGE);
    let page = fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("it begins");
    let (table, after) = rest.split_once(END).expect("it ends");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, format!("{before}{BEGIN}\n{}\n{END}{after}", report.stdout)).expect("written");
        return;
    }
    assert_eq!(table.trim(), report.stdout.trim(), "write it anew with UPDATE_EXPECT=1");
}

#[tokio::test]
async fn the_library_works_without_a_machine() {
    for (source, stdout) in [
        (
            "import datetime, zoneinfo
print(datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).utcoffset())
print(len(zoneinfo.available_timezones()) > 500)",
            "2:00:00\nTrue\n",
        ),
        (
            "import sqlite3
one = sqlite3.connect('/tmp/a.db')
one.execute('create table t (x)')
one.execute('insert into t values (3)')
one.commit()
print(sqlite3.connect('/tmp/a.db').execute('select x from t').fetchall())",
            "[(3,)]\n",
        ),
        (
            "import bz2, gzip, zlib
packed = '425a68393141592653591931653d00000081000244a000219a68334d07338bb9229c28480c98b29e80'
print(bz2.decompress(bytes.fromhex(packed)), gzip.decompress(gzip.compress(b'a')), zlib.crc32(b'a'))
try:
    bz2.compress(b'a')
except OSError as error:
    print(error)",
            "b'hello' b'a' 3904355907\nbzip2 is read and not written here; use `gzip` or `zlib`\n",
        ),
        (
            "import hashlib
print(hashlib.pbkdf2_hmac('sha256', b'password', b'salt', 2).hex())",
            "ae4d0c95af6b46d32d0adff928f06dd02a303f8ef3c251dfd6e2d85a95474c43\n",
        ),
        (
            "import ast, http.cookiejar, importlib.metadata, tomllib, xml.dom.minidom
print(ast.unparse(ast.parse('x=[1,2]')), tomllib.loads('a = 1'))
print(xml.dom.minidom.parseString('<a/>').documentElement.tagName, list(importlib.metadata.distributions()))",
            "x = [1, 2] {'a': 1}\na []\n",
        ),
        ("import importlib.util; print(importlib.util.find_spec('lzma'))", "None\n"),
    ] {
        expect(&run(python(source)).await, stdout, Some(0), None);
    }
}

#[tokio::test]
async fn a_module_that_is_not_there_says_why_and_what_to_use() {
    let report = run(python("import lzma")).await;
    let expected = "No module named 'lzma': the library that it stands on is not in this interpreter; use `gzip` or \
                    `zlib`\n";
    assert!(report.stderr.ends_with(expected), "{report:#?}");
}

#[tokio::test]
async fn there_is_a_place_for_temporary_files_and_it_is_bounded() {
    let source = "import os, pathlib, shutil, tarfile, tempfile, zipfile
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, 'a', 'b.txt')
    path.parent.mkdir()
    path.write_text('one\\n')
    with open(path, 'a') as file: file.write('two\\n')
    with zipfile.ZipFile(folder + '/z', 'w') as archive: archive.write(path, 'b')
    with tarfile.open(folder + '/t', 'w:gz') as archive: archive.add(path.parent, 'a')
    with tarfile.open(folder + '/t') as archive: archive.extractall(folder + '/out', filter='data')
    shutil.move(folder + '/out/a/b.txt', folder + '/c')
    print(open(folder + '/c').readlines(), zipfile.ZipFile(folder + '/z').namelist(), sorted(os.listdir(folder)))
print(os.listdir('/tmp'))
with tempfile.TemporaryDirectory() as folder:
    open(folder + '/a', 'w').close()
    os.utime(folder + '/a', (1, 2))
    shutil.copytree(folder, '/tmp/copy')
    print(os.stat('/tmp/copy/a').st_mtime_ns, os.stat('/tmp/copy/a').st_mtime)
    shutil.rmtree('/tmp/copy')
with tempfile.NamedTemporaryFile('w+') as file:
    file.write('x'); file.flush()
    print(os.path.getsize(file.name), open(file.name).read())
";
    let stdout = "['one\\n', 'two\\n'] ['b'] ['a', 'c', 'out', 't', 'z']\n[]\n2000000000 2.0\n1 x\n";
    expect(&run(python(source)).await, stdout, Some(0), None);
    for source in [
        "with open('/tmp/x', 'wb') as file:\n for _ in range(65): file.write(bytes(1 << 20))",
        "for n in range(10_001): open(f'/tmp/{n}', 'w').close()",
    ] {
        let report = run(python(source)).await;
        expect(&report, "", Some(1), None);
        assert!(report.stderr.contains("[Errno 51] /tmp holds at most"), "{report:#?}");
    }
    // Another instance has another one.
    expect(&run(python("import os; print(os.listdir('/tmp'))")).await, "[]\n", Some(0), None);
}

#[tokio::test]
async fn a_directory_that_is_granted_as_tmp_is_the_one_of_the_host() {
    let (_directory, inside) = folder();
    let mut job = seeing(python("open('/tmp/new', 'w').write('x')"), &inside, Access::Write);
    "/tmp".clone_into(&mut job.directories[0].guest);
    expect(&run(job).await, "", Some(0), None);
    assert_eq!(fs::read_to_string(inside.join("new")).expect("it is there"), "x");
}

#[tokio::test]
async fn threads_take_turns() {
    for (source, stdout) in [
        (
            "import threading, time
found = []
def work(n): time.sleep(0.001); found.append((n, threading.current_thread() is threading.main_thread()))
threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(found, threading.active_count())",
            "[(0, False), (1, False), (2, False)] 1\n",
        ),
        (
            "import queue, threading
work, done = queue.Queue(), queue.Queue()
def consume():
    while (item := work.get()) is not None: done.put(item * 2)
thread = threading.Thread(target=consume)
thread.start()
for item in (1, 2, None): work.put(item)
thread.join()
print(done.get(), done.get())",
            "2 4\n",
        ),
        ("from concurrent.futures import ThreadPoolExecutor as T\nprint(list(T().map(abs, [-1, 2])))", "[1, 2]\n"),
        (
            "import sys
from concurrent.futures import ThreadPoolExecutor as T
print(repr(T().submit(sys.exit, 3).exception()))",
            "SystemExit(3)\n",
        ),
        ("import asyncio\nprint(asyncio.run(asyncio.to_thread(sum, [1, 2])))", "3\n"),
        ("import threading\nthreading.Thread(target=print, args=('after the end',)).start()", "after the end\n"),
    ] {
        expect(&run(python(source)).await, stdout, Some(0), None);
    }
    let report = run(within(python("import threading; threading.Event().wait()"), |limits| limits.timeout_ms = 60_000));
    let report = report.await;
    expect(&report, "", Some(1), None);
    assert!(
        report.stderr.contains("RuntimeError: all threads wait for one another; threads take turns"),
        "{report:#?}"
    );
}

#[tokio::test]
async fn a_source_ends_as_one_of_cpython_does() {
    let report =
        run(python("import atexit\natexit.register(print, 'last')\natexit.register(lambda: 1 / 0)\n1 / 0")).await;
    expect(&report, "last\n", Some(1), None);
    let (error, at_exit) = report.stderr.split_once("Exception ignored in atexit callback").expect("both are shown");
    assert!(error.contains("ZeroDivisionError") && at_exit.contains("ZeroDivisionError"), "{report:#?}");
    // Standard output refuses what is no text, and standard error shows it.
    let report = run(python("import sys\nsys.stderr.write('\\udc80\\n')\nprint('\\udc80')")).await;
    expect(&report, "", Some(1), None);
    assert!(report.stderr.starts_with("\\udc80\n") && report.stderr.contains("UnicodeEncodeError"), "{report:#?}");
}
