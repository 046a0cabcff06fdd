//! gVisor's `runsc`: a kernel in user space answers the program's system calls, so that it reaches the machine's own
//! kernel by few of them.
//!
//! It is started without rights, as the user that the program would be, with a bundle of the OCI runtime specification.
//! Refused to the program are a network beyond its own loopback, capabilities, new rights by a program, and changes
//! outside of what it may change.

use super::{Backend, Place, Start, find_in_path};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// gVisor's OCI runtime.
pub(crate) struct Runsc;

/// Its name for the one program of a start.
const CONTAINER: &str = "program";

/// Bytes of the shared memory of a program, as at the other levels.
const SHM: &str = "size=268435456";

const SETFCAP: [&str; 1] = ["CAP_SETFCAP"];

impl Backend for Runsc {
    fn find(&self) -> Result<PathBuf, String> {
        find_in_path("runsc")
    }

    fn describe(&self, place: &Place<'_>) -> Start {
        let state = place.state.display();
        let args = [
            // A namespace of users in which it is root, of one user that is not root outside.
            "--rootless".to_owned(),
            // Nobody hands it a group; limits are the innermost process's, and of whoever watches all children.
            "--ignore-cgroups".to_owned(),
            "--network=none".to_owned(),
            // Sockets that were granted can be connected to.
            "--host-uds=open".to_owned(),
            // Others change granted files meanwhile, and what the program changes is to be seen by others.
            "--file-access=shared".to_owned(),
            "--overlay2=none".to_owned(),
            format!("--root={state}/state"),
            "run".to_owned(),
            format!("--bundle={state}"),
            CONTAINER.to_owned(),
        ];
        Start { args: args.into(), files: vec![("config.json", config(place).to_string())] }
    }

    /// Itself twice, since it starts itself anew to be root of its namespace; the server of files; the kernel; the
    /// first of those that stand for processes of the program; and some that it keeps for the next ones. The kernel in
    /// it holds the program to the very number.
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
            // Whose files the program's are, as `runsc` sees them; the innermost process becomes another.
            "user": { "uid": 0, "gid": 0 },
            "args": place.argv,
            "env": env,
            "cwd": "/",
            // To become another it maps root, for which it asks this right. It gives it up.
            "capabilities": { "bounding": SETFCAP, "effective": SETFCAP, "permitted": SETFCAP },
            "noNewPrivileges": true,
        },
        "root": { "path": place.root, "readonly": true },
        "hostname": "localhost",
        "mounts": mounts,
        "linux": { "namespaces": namespaces },
    })
}
