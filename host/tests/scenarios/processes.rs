//! The process groups that a test started. They end with the test, whatever it left running.

use rustix::process::{Pid, Signal, kill_process_group};

/// Process groups, by the processes that lead them.
#[derive(Default)]
pub struct Processes(Vec<u32>);

impl Processes {
    /// Adds the group of a process that leads one.
    pub fn add(&mut self, leader: u32) {
        self.0.push(leader);
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let groups = self.0.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?));
        for group in groups {
            // Most are gone.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
