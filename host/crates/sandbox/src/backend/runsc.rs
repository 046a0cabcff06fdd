//! gVisor's `runsc`: a kernel in user space answers the program's system calls, so that few of them reach the machine's
//! own kernel.
//!
//! It is started without capabilities, as the user that the program would be, with a bundle of the OCI runtime
//! specification. It denies the program any network beyond its own loopback, capabilities, gaining new rights by a
//! program, and changes outside of its writable paths.

use super::{Backend, Place, Start, find_in_path};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// gVisor's OCI runtime.
pub(crate) struct Runsc;

/// The container's name of the program.
const CONTAINER: &str = "program";

/// Bytes of the program's shared memory, as at the other levels.
const SHM: &str = "size=268435456";

const SETFCAP: [&str; 1] = ["CAP_SETFCAP"];

impl Backend for Runsc {
    fn find(&self) -> Result<PathBuf, String> {
        find_in_path("runsc")
    }

    fn describe(&self, place: &Place<'_>) -> Start {
        let state = place.state.display();
        let args = [
            // A user namespace in which it is root, with one user that is not root outside.
            "--rootless".to_owned(),
            // It gets no control group; the innermost process and the monitor enforce limits.
            "--ignore-cgroups".to_owned(),
            "--network=none".to_owned(),
            // Granted sockets can be connected to.
            "--host-uds=open".to_owned(),
            // Others change granted files meanwhile, and must see the program's changes.
            "--file-access=shared".to_owned(),
            "--overlay2=none".to_owned(),
            format!("--root={state}/state"),
            "run".to_owned(),
            format!("--bundle={state}"),
            CONTAINER.to_owned(),
        ];
        Start { args: args.into(), files: vec![("config.json", config(place).to_string())] }
    }

    /// `runsc` itself twice, since it restarts itself to be root of its namespace; the file server; the kernel; the
    /// first of the processes that stand for those of the program; and some that it keeps for the next ones. Its kernel
    /// enforces the program's exact number.
    fn processes(&self) -> u64 {
        12
    }
}

fn config(place: &Place<'_>) -> Value {
    let env: Vec<String> = place.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut mounts = vec![
        json!({ "destination": "/proc", "type": "proc", "source": "proc" }),
        json!({ "destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "nodev", SHM] }),
    ];
    mounts.extend(place.writable.iter().map(|path| {
        let inside = Path::new("/").join(path.strip_prefix(place.root).unwrap_or(path));
        json!({ "destination": inside, "type": "bind", "source": path, "options": ["rbind", "nosuid", "nodev"] })
    }));
    let namespaces = ["pid", "network", "ipc", "uts", "mount"].map(|kind| json!({ "type": kind }));
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            // The owner of the program's files, as `runsc` sees them; the innermost process becomes another user.
            "user": { "uid": 0, "gid": 0 },
            "args": place.argv,
            "env": env,
            "cwd": "/",
            // To change its user it maps root, which needs this capability. It drops it afterwards.
            "capabilities": { "bounding": SETFCAP, "effective": SETFCAP, "permitted": SETFCAP },
            "noNewPrivileges": true,
        },
        "root": { "path": place.root, "readonly": true },
        "hostname": "localhost",
        "mounts": mounts,
        "linux": { "namespaces": namespaces },
    })
}
