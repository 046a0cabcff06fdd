//! The report of a native job, in the fields that every job has.
//!
//! It trusts what the job says of itself where that concerns the job alone: its outputs, its lack of memory.

use super::child::ENDED_FOR_MEMORY;
use super::left_behind::LeftBehind;
use crate::job::JobLimits;
use crate::report::{JobReport, words};
use longhaul_core::LimitHit;
use longhaul_sandbox::ProgramReport;
use std::time::Duration;

/// The report of a native job. A limit that the sandbox does not know by the job's name is told by that.
pub(super) fn report(ran: ProgramReport, left: LeftBehind, duration: Duration, limits: &JobLimits) -> JobReport {
    let LeftBehind { outputs, lacked_memory, memory_bytes_peak } = left;
    let memory = || LimitHit::new("memory_bytes_max", limits.memory_bytes_max, limits.memory_bytes_max);
    let hit = match ran.hit {
        Some(hit) if hit.name == "max_memory_mb" => Some(memory()),
        Some(hit) => Some(hit),
        None => (lacked_memory && ran.exit_code != 0).then(memory),
    };
    // Ended by a limit, or by the child that watches its memory.
    let exit_code = Some(ran.exit_code).filter(|code| *code >= 0 && !(lacked_memory && *code == ENDED_FOR_MEMORY));
    let error_message = match &hit {
        Some(hit) => Some(words(hit, limits)),
        None => (ran.exit_code != 0).then(|| format!("it ended with exit code {}", ran.exit_code)),
    };
    JobReport {
        success: exit_code == Some(0) && hit.is_none(),
        stdout: ran.stdout,
        stderr: ran.stderr,
        exit_code,
        duration_seconds: duration.as_secs_f64(),
        error_message,
        fuel_used: 0,
        memory_bytes_peak,
        limit: hit.map(|hit| if hit.name == "wall_ms_max" { "timeout_ms".to_owned() } else { hit.name }),
        truncated: ran.truncated || outputs.dropped > 0,
        outputs: outputs.kept,
        sandbox: Some(ran.level.to_string()),
        session: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_sandbox::Level;

    #[track_caller]
    fn check(exit_code: i32, hit: Option<&str>, lacked_memory: bool, expected: (Option<i32>, Option<&str>)) {
        let ran = ProgramReport {
            exit_code,
            hit: hit.map(|name| LimitHit::new(name, 1, 1)),
            stdout: String::new(),
            stderr: String::new(),
            truncated: false,
            level: Level::Full,
            wall_ms: 1,
        };
        let left = LeftBehind { lacked_memory, ..LeftBehind::default() };
        let report = report(ran, left, Duration::from_millis(1), &JobLimits::native());
        assert_eq!((report.exit_code, report.limit.as_deref()), expected, "{report:?}");
        assert_eq!(report.success, report.error_message.is_none(), "{report:?}");
        assert_eq!(report.sandbox.as_deref(), Some("full"));
    }

    #[test]
    fn a_native_job_ends_by_the_limits_of_every_job() {
        check(0, None, false, (Some(0), None));
        check(3, None, false, (Some(3), None));
        check(-1, Some("wall_ms_max"), false, (None, Some("timeout_ms")));
        check(-1, Some("max_memory_mb"), false, (None, Some("memory_bytes_max")));
        check(-1, Some("processes_max"), false, (None, Some("processes_max")));
        // The interpreter made an error of it, or the child ended the job.
        check(1, None, true, (Some(1), Some("memory_bytes_max")));
        check(ENDED_FOR_MEMORY, None, true, (None, Some("memory_bytes_max")));
        check(ENDED_FOR_MEMORY, None, false, (Some(ENDED_FOR_MEMORY), None));
        check(0, None, true, (Some(0), None));
    }
}
