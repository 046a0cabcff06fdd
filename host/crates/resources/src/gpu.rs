//! Memory of graphics cards, if the system reports it.
//!
//! AMD's driver writes it into `/sys`; NVIDIA's reports it to its own program, `nvidia-smi`, which runs only if that
//! driver is loaded. A card that shares the machine's memory does not count. Refuses to load a driver's library into
//! this process, and to wait for a program longer than some seconds.

use crate::numbers::mb;
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The timeout of `nvidia-smi`. It wakes a sleeping card.
const SMI_MAX: Duration = Duration::from_secs(5);

/// The most bytes of its output that are read: a line a card.
const SMI_BYTES_MAX: u64 = 64 << 10;

/// A card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpuUsage {
    /// Name of the card in the driver.
    pub name: String,
    /// Total memory of the card, in MB.
    pub memory_total_mb: f64,
    /// Used memory of the card, in MB.
    pub memory_used_mb: f64,
}

impl GpuUsage {
    /// Free memory of the card, in MB.
    #[must_use]
    pub fn memory_free_mb(&self) -> f64 {
        (self.memory_total_mb - self.memory_used_mb).max(0.0)
    }
}

/// All cards with readable memory. May take a second if a program has to run.
#[must_use]
pub fn read() -> Vec<GpuUsage> {
    let mut cards = in_sysfs(Path::new("/sys/class/drm"));
    if Path::new("/proc/driver/nvidia/gpus").read_dir().is_ok_and(|mut dir| dir.next().is_some()) {
        cards.extend(asked().map(|text| in_smi(&text)).unwrap_or_default());
    }
    cards
}

/// True when there is any card with readable memory, without a query.
#[must_use]
pub fn is_there() -> bool {
    Path::new("/proc/driver/nvidia/gpus").exists() || !in_sysfs(Path::new("/sys/class/drm")).is_empty()
}

fn in_sysfs(drm: &Path) -> Vec<GpuUsage> {
    let mut names: Vec<_> = drm.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    let cards = names.into_iter().filter_map(|name| {
        let name = name.into_string().ok()?;
        // `card0` is a card, `card0-HDMI-A-1` is a connector of it.
        if !name.strip_prefix("card")?.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let device = drm.join(&name).join("device");
        let bytes = |file: &str| std::fs::read_to_string(device.join(file)).ok()?.trim().parse::<u64>().ok();
        let (total, used) = (bytes("mem_info_vram_total")?, bytes("mem_info_vram_used")?);
        Some(GpuUsage { name, memory_total_mb: mb(total), memory_used_mb: mb(used) })
    });
    cards.collect()
}

fn asked() -> Option<String> {
    let mut command = Command::new("nvidia-smi");
    command.args(["--query-gpu=name,memory.total,memory.used", "--format=csv,noheader,nounits"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let since = Instant::now();
    // Its output fits the pipe, so it ends without a reader.
    while child.try_wait().ok()?.is_none() {
        if since.elapsed() > SMI_MAX {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut text = String::new();
    child.stdout.take()?.take(SMI_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

fn in_smi(text: &str) -> Vec<GpuUsage> {
    let card = |line: &str| {
        // A name may hold commas, numbers do not.
        let mut fields = line.rsplitn(3, ',').map(str::trim);
        let (used, total, name) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?, fields.next()?);
        Some(GpuUsage { name: name.to_owned(), memory_total_mb: total, memory_used_mb: used })
    };
    text.lines().filter_map(card).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_of_amd_is_read_and_what_is_no_card_is_passed_over() {
        let drm = tempfile::tempdir().unwrap();
        for (card, total) in
            [("card0", "8589934592\n"), ("card0-HDMI-A-1", "1\n"), ("card1", "much\n"), ("version", "")]
        {
            let device = drm.path().join(card).join("device");
            std::fs::create_dir_all(&device).unwrap();
            std::fs::write(device.join("mem_info_vram_total"), total).unwrap();
            std::fs::write(device.join("mem_info_vram_used"), "1073741824\n").unwrap();
        }
        let found = in_sysfs(drm.path());
        assert_eq!(found, [GpuUsage { name: "card0".into(), memory_total_mb: 8192.0, memory_used_mb: 1024.0 }]);
        assert!((found[0].memory_free_mb() - 7168.0).abs() < f64::EPSILON);
        assert!(in_sysfs(Path::new("/nowhere")).is_empty(), "none is no error");
    }

    #[test]
    fn what_nvidia_says_is_read_line_by_line() {
        let found = in_smi("NVIDIA A100-SXM4, 80GB, 81920, 1024\nbroken\nNVIDIA T4, 15360, [N/A]\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].name.as_str(), found[0].memory_total_mb), ("NVIDIA A100-SXM4, 80GB", 81920.0));
    }
}
