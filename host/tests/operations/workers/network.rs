//! The way from one server to the database, which can be cut in each direction: a proxy holds bytes back, or, in a
//! network namespace of the test alone, the kernel drops packets.

use crate::proxy::{Cut, Proxy};
use std::process::{Command, Stdio};

/// The way of one server.
pub struct Link {
    proxy: Proxy,
    means: Means,
}

/// The means by which a way is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Nothing of what was sent is lost: it comes late.
    HoldsBytes,
    /// Packets are lost, and the machines send them again. Needs [`enter_namespace`].
    LosesPackets,
}

/// The rule of the kernel for each direction: its preference, and the port by which it knows a packet.
const RULES: [(&str, &str, Cut); 2] = [("10", "dport", Cut::ToServer), ("11", "sport", Cut::ToClient)];

/// The commands that make the rules of a new namespace, which come before the one for addresses of this machine.
const BEGIN: &str = "ip link set lo up && ip rule add pref 100 lookup local && ip rule del pref 0";

impl Link {
    /// A way to a database on this machine.
    pub fn to(port: u16, means: Means) -> Self {
        Self { proxy: Proxy::to(port), means }
    }

    /// An address of the database by this way.
    pub fn url(&self, url: &str, port: u16) -> String {
        self.proxy.url(url, port)
    }

    /// Cuts the way in these directions, and heals it in the others. With [`Means::LosesPackets`] one way is cut at a
    /// time.
    pub fn cut(&self, cut: Cut) {
        if self.means == Means::HoldsBytes {
            return self.proxy.cut(cut);
        }
        let port = self.proxy.port.to_string();
        for (preference, side, direction) in RULES {
            // There is none unless this direction was cut before.
            ip(&["rule", "del", "pref", preference]);
            if cut == direction || cut == Cut::Both {
                let rule = ["rule", "add", "pref", preference, "ipproto", "tcp", side, &port, "blackhole"];
                assert!(ip(&rule), "ip {rule:?}");
            }
        }
    }
}

/// True where this process may make a namespace in which packets get lost.
pub fn can_lose_packets() -> bool {
    // The database is started as another user, for which root of a user namespace has no number.
    rustix::process::geteuid().is_root()
        && succeeds(
            Command::new("unshare")
                .args(["--net", "sh", "-c"])
                .arg(format!("{BEGIN} && ip rule add pref 10 ipproto tcp dport 1 blackhole")),
        )
}

/// Makes the namespace of this process ready, into which `unshare --net` has put it.
pub fn enter_namespace() {
    assert!(succeeds(Command::new("sh").args(["-c", BEGIN])), "{BEGIN}");
}

fn ip(args: &[&str]) -> bool {
    succeeds(Command::new("ip").args(args))
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
