//! A real PgBouncer before a server on this machine.
//!
//! The installed one is used, from Debian's directory or from PATH; else Debian's, which is unpacked into the cache of
//! build tools and not installed. It ends with its value.

use crate::server::{programs, wait};
use longhaul_build::debian_packages;
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Dependencies that the program itself does without.
const LEFT_OUT: [&str; 4] = ["lsb-base", "postgresql-client-common", "postgresql-common", "sysvinit-utils"];

/// Connections to the server that it has at most: more than two stores need.
const POOL: u32 = 40;

pub struct PgBouncer {
    pub port: u16,
    child: Child,
    /// Removed with it.
    _place: TempDir,
}

impl PgBouncer {
    /// Starts one for the database of tests, with settings such as `pool_mode = transaction`.
    pub fn start(server: u16, settings: &str) -> Self {
        let place = programs::place();
        let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
        let users = place.path().join("users.txt");
        fs::write(&users, "\"longhaul\" \"\"\n").expect("ours");
        let file = place.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\npostgres = host=127.0.0.1 port={server} dbname=postgres\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\n\
             auth_file = {}\ndefault_pool_size = {POOL}\n{settings}\n",
            users.display()
        );
        fs::write(&file, text).expect("ours");
        let log = place.path().join("log");
        let mut command = command(place.path());
        let written = File::create(&log).expect("ours");
        command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(written);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        wait("PgBouncer listens", || {
            let ended = child.try_wait().expect("ours");
            assert!(ended.is_none(), "pgbouncer: {ended:?}: {}", fs::read_to_string(&log).unwrap_or_default());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self { port, child, _place: place }
    }
}

/// It does not panic, since a test may be doing that already.
impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program, as the user of the server: it refuses to run as root.
fn command(place: &Path) -> Command {
    let mut command = match installed() {
        Some(program) => Command::new(program),
        None => {
            let unpacked = programs::within_reach(&fetched(), place);
            let mut command = Command::new(unpacked.join("usr/sbin/pgbouncer"));
            command.env(programs::LIBRARIES, programs::libraries_in(&unpacked));
            command
        }
    };
    command.current_dir(place);
    programs::as_server_user(&mut command);
    command
}

fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join("pgbouncer")).find(|program| program.is_file())
}

fn fetched() -> PathBuf {
    debian_packages::unpacked_without(&programs::cache(), "pgbouncer", &LEFT_OUT)
        .unwrap_or_else(|error| panic!("install PgBouncer; {error}"))
}
