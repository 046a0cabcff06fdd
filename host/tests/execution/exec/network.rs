//! Hosts that code was granted, and exceptions of the language for all others.

use super::{expect, folder, javascript, python, run, server, stays_healthy};
use longhaul::exec::Job;
use longhaul_core::grant::{Access, DirectoryGrant, HostPattern};
use serde_json::json;
use std::fs;

/// A job that may ask these.
fn asking(job: Job, hosts: &[&str]) -> Job {
    let hosts = hosts.iter().map(|host| HostPattern::try_from((*host).to_owned()).expect("a pattern")).collect();
    Job { hosts, ..job }
}

#[tokio::test]
async fn python_asks_the_hosts_that_it_was_granted() {
    let (server, other, nobody) = (server::start(), server::start(), server::nobody());
    let opening =
        "import urllib.request as u, urllib.error as e, http.client as c\nat, other, nobody = CONTEXT['urls']\n";
    for (rest, stdout) in [
        ("r = u.urlopen(at + '/hello')\nprint(r.status, r.headers['x-kind'], r.read())", "200 plain b'hello'"),
        ("print(u.urlopen(u.Request(at + '/echo', b'body', {'X-Name': 'n'})).read())", "b'POST n 4 body'"),
        ("print(u.urlopen(at + '/echo', b'x' * 300_000).read())", "b'POST  300000 xxxxxxxxxxxxxxxxxxxx'"),
        ("print(u.urlopen(u.Request(at + '/echo', iter([b'two', b'parts']))).read())", "b'POST  8 twoparts'"),
        ("print(u.urlopen(u.Request(at + '/echo', method='DELETE')).read())", "b'DELETE  0 '"),
        ("print(u.urlopen(at + '/pieces').read(4), len(u.urlopen(at + '/pieces').read()))", "b'onet' 6"),
        ("try: u.urlopen(at + '/missing')\nexcept e.HTTPError as x: print(x.code, x.read())", "404 b'no such thing'"),
        ("print(u.urlopen(at + '/away?' + at + '/hello').read())", "b'hello'"),
        (
            "try: u.urlopen(at + '/away?' + other + '/hello')\nexcept e.URLError as x: print('--allow-host ' + other in str(x))",
            "True",
        ),
        ("try: u.urlopen(nobody)\nexcept e.URLError as x: print(type(x.reason).__name__)", "ConnectionRefusedError"),
        ("try: u.urlopen(at + '/broken').read()\nexcept OSError as x: print('broken')", "broken"),
        (
            "k = c.HTTPConnection(at[7:], timeout=5)\nfor _ in range(2):\n k.request('GET', '/hello'); print(k.getresponse().read())",
            "b'hello'\nb'hello'",
        ),
        (
            "k = c.HTTPConnection(at[7:])\ntry: k.request('GET', '/hello', headers={'Upgrade': 'x'}); k.getresponse()\nexcept ValueError: print('no')",
            "no",
        ),
    ] {
        let job = Job { context: json!({ "urls": [server, other, nobody] }), ..python(&format!("{opening}{rest}")) };
        expect(&run(asking(job, &[&server, &nobody])).await, &format!("{stdout}\n"), Some(0), None);
    }
}

#[tokio::test]
async fn javascript_asks_the_hosts_that_it_was_granted() {
    let (server, other, nobody) = (server::start(), server::start(), server::nobody());
    let opening =
        "const [at, other, nobody] = CONTEXT.urls;\nconst text = async (...args) => (await fetch(...args)).text();\n";
    for (rest, stdout) in [
        (
            "const r = await fetch(at + '/hello'); console.log(r.status, r.headers.get('x-kind'), await r.text())",
            "200 plain hello",
        ),
        (
            "console.log(await text(at + '/echo', { method: 'POST', body: 'body', headers: { 'X-Name': 'n' } }))",
            "POST n 4 body",
        ),
        (
            "console.log(await text(at + '/echo', { method: 'PUT', body: 'x'.repeat(300_000) }))",
            "PUT  300000 xxxxxxxxxxxxxxxxxxxx",
        ),
        ("console.log(await text(at + '/echo', { method: 'DELETE' }))", "DELETE  0 "),
        ("console.log((await text(at + '/pieces')).length)", "6"),
        (
            "const r = await fetch(at + '/missing'); console.log(r.ok, r.status, await r.text())",
            "false 404 no such thing",
        ),
        (
            "const r = await fetch(at + '/away?' + at + '/hello'); console.log(r.redirected, await r.text())",
            "true hello",
        ),
        (
            "await fetch(at + '/away?' + other + '/hello').catch((e) => console.log(e.message.includes('--allow-host ' + other)))",
            "true",
        ),
        ("await fetch(nobody).catch((e) => console.log(e.name, e.cause.code))", "TypeError ECONNREFUSED"),
        ("await fetch(at + '/broken').then((r) => r.text()).catch((e) => console.log(e.name))", "TypeError"),
        ("await fetch(at, { signal: AbortSignal.abort() }).catch((e) => console.log(e.name))", "AbortError"),
    ] {
        let job =
            Job { context: json!({ "urls": [server, other, nobody] }), ..javascript(&format!("{opening}{rest}")) };
        expect(&run(asking(job, &[&server, &nobody])).await, &format!("{stdout}\n"), Some(0), None);
    }
}

#[tokio::test]
async fn a_host_that_was_not_granted_is_an_exception_of_the_language() {
    let server = server::start();
    let context = json!({ "at": server });
    for (source, says) in [
        ("import urllib.request as u; u.urlopen(CONTEXT['at'] + '/hello')", "URLError"),
        ("import urllib.request as u; u.urlopen(CONTEXT['at'], b'body')", "URLError"),
        ("import urllib.request as u; u.urlopen('https://example.com/')", "URLError"),
        (
            "import http.client as c; k = c.HTTPConnection(CONTEXT['at'][7:]); k.request('GET', '/'); k.getresponse()",
            "OSError",
        ),
    ] {
        let report = run(Job { context: context.clone(), ..python(source) }).await;
        expect(&report, "", Some(1), None);
        let told = report.stderr.contains(says) && report.stderr.contains("run it with --allow-host");
        assert!(told && report.stderr.contains("may not reach"), "{source}: {report:#?}");
        assert!(!report.stderr.contains("Exception ignored"), "{source}: {report:#?}");
    }
    // A response that was never made used to complain about its missing file when it was finalized.
    let caught =
        "import urllib.request as u\ntry: u.urlopen(CONTEXT['at'])\nexcept OSError as x: print(type(x).__name__)";
    let report = run(Job { context: context.clone(), ..python(caught) }).await;
    expect(&report, "URLError\n", Some(0), None);
    assert_eq!(report.stderr, "", "the refusal is all that is told");
    let asks = "fetch(CONTEXT.at).catch((error) => console.log(error.name, error.message))";
    let report = run(Job { context: context.clone(), ..javascript(asks) }).await;
    assert!(report.stdout.starts_with("TypeError fetch failed: "), "{report:#?}");
    assert!(report.stdout.contains("run it with --allow-host"), "{report:#?}");
    let report = run(Job { context: context.clone(), ..javascript("fetch(CONTEXT.at)") }).await;
    expect(&report, "", Some(1), None);
    stays_healthy().await;
}

#[tokio::test]
async fn work_may_have_a_module_of_the_runtime_s_name() {
    let (_directory, inside) = folder();
    fs::write(inside.join("app.py"), "name = 'the work'").expect("ours");
    let directories = vec![DirectoryGrant { guest: "/work".into(), host: inside, access: Access::Read }];
    let report = run(Job { directories, ..python("import app; print(app.name)") }).await;
    expect(&report, "the work\n", Some(0), None);
}
