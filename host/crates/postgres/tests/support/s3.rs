//! A server that speaks S3 on a free loopback port: the one of moto, which pip installs into the cache of build tools, in
//! the versions of `s3-server.txt`. It takes any key, and keeps objects in memory.

use crate::server::programs::{self, run};
use crate::server::wait;
use longhaul_build::BuildError;
use longhaul_core::Digest;
use longhaul_postgres::ContentConfig;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The packages of the server.
const LIST: &str = include_str!("s3-server.txt");

/// The bucket.
pub const BUCKET: &str = "content";

/// The timeout for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with an empty bucket. It ends with its value.
pub struct S3Server {
    port: u16,
    child: Child,
}

impl S3Server {
    /// Starts a server.
    pub fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
        let mut server = Self { port, child: spawn(port) };
        wait("the server of S3 is ready", || {
            let ended = server.child.try_wait().expect("ours");
            assert!(ended.is_none(), "moto: {ended:?}");
            server.request("PUT", &format!("/{BUCKET}")).is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
        });
        server
    }

    /// Settings with the bucket, and all content in it that may be outside of the database.
    pub fn content(&self) -> ContentConfig {
        ContentConfig {
            endpoint: Some(format!("http://127.0.0.1:{}", self.port)),
            access_key_env: Some("S3_ID".into()),
            secret_key_env: Some("S3_KEY".into()),
            bytes_min: 4_096,
            ..ContentConfig::at(&format!("s3://{BUCKET}/of/longhaul"))
        }
    }

    /// The names of all objects, in order.
    pub fn names(&self) -> Vec<String> {
        let listed = self.request("GET", &format!("/{BUCKET}?list-type=2")).expect("it answers");
        let keys = listed.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>"));
        keys.map(|(name, _)| name.to_owned()).collect()
    }

    /// The answer to a request without a body, as text. Any signature will do.
    pub fn request(&self, method: &str, path: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let scope = "a/20260101/us-east-1/s3/aws4_request";
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: AWS4-HMAC-SHA256 Credential={scope}, \
             SignedHeaders=host, Signature=x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.port
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The variables of the key.
pub fn variable(name: &str) -> Option<String> {
    matches!(name, "S3_ID" | "S3_KEY").then(|| "of-tests".to_owned())
}

fn spawn(port: u16) -> Child {
    let mut command = python();
    command.env("PYTHONPATH", site()).args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
    // Away from the tree, whose files Python would import first.
    command.current_dir(std::env::temp_dir());
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silent.spawn().expect("python3 is installed")
}

/// The folder of the packages, which the first caller installs.
fn site() -> PathBuf {
    let name = format!("s3-server-{}", Digest::of(LIST.as_bytes()).short());
    let site = programs::cache().folder(&name, |folder| {
        let list = folder.join("list.txt");
        std::fs::write(&list, LIST).expect("room");
        let mut pip = python();
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"])
            .args(["--disable-pip-version-check", "--requirement"])
            .arg(&list)
            .arg("--target")
            .arg(folder.join("site"))
            .env("PIP_ROOT_USER_ACTION", "ignore");
        run(&mut pip);
        Ok::<_, BuildError>(())
    });
    site.unwrap_or_else(|error| panic!("{error}")).join("site")
}

/// Python without what a virtual environment would bring along, and without keys of whoever runs the tests.
fn python() -> Command {
    let mut python = Command::new("python3");
    for variable in ["VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH", "AWS_PROFILE", "AWS_ENDPOINT_URL"] {
        python.env_remove(variable);
    }
    python
}
