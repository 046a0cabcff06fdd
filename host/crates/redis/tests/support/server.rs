//! A real redis-server on a free loopback port, for one test.
//!
//! The one on PATH is used, else Debian's, which is unpacked into the cache of build tools and not installed.

#![allow(dead_code, reason = "each test uses its part")]

use longhaul_build::cache::Cache;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The timeout for an answer of the server, after which its test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server. It ends with the test.
pub struct RedisServer {
    child: Child,
    pub port: u16,
    /// Its working directory, removed with it.
    directory: TempDir,
}

impl RedisServer {
    /// A server without a password on this machine.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// A server with more arguments, for example `--requirepass x`.
    pub fn start_with(arguments: &[&str]) -> Self {
        let port = free_port();
        let port_text = port.to_string();
        Self::launch(port, &[&["--port", &port_text], arguments].concat())
    }

    /// A server that speaks only TLS, and its certificate.
    pub fn start_tls() -> (Self, PathBuf) {
        let certificates = tempfile::tempdir().expect("a folder").keep();
        let (key, certificate) = (certificates.join("key.pem"), certificates.join("certificate.pem"));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .expect("openssl is there (on Debian: apt install openssl)");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = free_port();
        let (port_text, key, cert) = (port.to_string(), shown(&key), shown(&certificate));
        let arguments = ["--port", "0", "--tls-port", &port_text, "--tls-auth-clients", "no"];
        let files = ["--tls-key-file", &key, "--tls-cert-file", &cert, "--tls-ca-cert-file", &cert];
        (Self::launch(port, &[&arguments[..], &files[..]].concat()), certificate)
    }

    fn launch(port: u16, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a folder");
        let child = program()
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"])
            .arg(directory.path())
            .args(arguments)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server starts");
        let server = Self { child, port, directory };
        let asked = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(asked.elapsed() < PATIENCE, "redis-server does not answer on port {port}");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Kills it and starts an empty one in its place.
    pub fn restart(&mut self) {
        self.kill();
        let port_text = self.port.to_string();
        let fresh = Self::launch(self.port, &["--port", &port_text]);
        *self = fresh;
    }

    /// Its answer to one command without a password, in the wire format.
    pub fn ask(&self, parts: &[&str]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let mut command = format!("*{}\r\n", parts.len());
        parts.iter().for_each(|part| command.push_str(&format!("${}\r\n{part}\r\n", part.len())));
        stream.write_all(format!("{command}*1\r\n$4\r\nQUIT\r\n").as_bytes()).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("answered");
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn shown(path: &Path) -> String {
    path.to_str().expect("text").to_owned()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port()
}

fn program() -> Command {
    static UNPACKED: OnceLock<Option<PathBuf>> = OnceLock::new();
    let on_path = || Command::new("redis-server").arg("--version").output().is_ok_and(|said| said.status.success());
    let fetched = UNPACKED.get_or_init(|| if on_path() { None } else { Some(fetched()) });
    let Some(folder) = fetched else { return Command::new("redis-server") };
    let mut command = Command::new(folder.join("redis-server"));
    let libraries = folder.join("usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    command.env("LD_LIBRARY_PATH", libraries);
    command
}

/// Debian's program selects its function by its own name.
fn fetched() -> PathBuf {
    let cache = Cache::open(|line| eprintln!("{line}")).unwrap_or_else(|error| panic!("{error}"));
    let folder =
        longhaul_build::debian_packages::unpacked(&cache, "redis-tools").unwrap_or_else(|error| panic!("{error}"));
    let link = folder.join("redis-server");
    // Tests of several processes need it at once; the first one makes it.
    let _ = std::os::unix::fs::symlink(folder.join("usr/bin/redis-check-rdb"), &link);
    assert!(link.exists(), "{} is not there", link.display());
    folder
}
