//! What a process can tell of itself.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Figures by name.
pub(crate) type Figures = BTreeMap<String, f64>;

/// The middle one, if there is one.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// A clock of the wall and of the processors.
pub(crate) struct Clock {
    wall: Instant,
    cpu: Duration,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { wall: Instant::now(), cpu: cpu() }
    }

    pub(crate) fn wall_ms(&self) -> f64 {
        self.wall.elapsed().as_secs_f64() * 1000.0
    }

    /// The time of all processors that this process has used since.
    pub(crate) fn cpu_ms(&self) -> f64 {
        cpu().saturating_sub(self.cpu).as_secs_f64() * 1000.0
    }
}

#[cfg(unix)]
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(not(unix))]
fn cpu() -> Duration {
    Duration::ZERO
}

/// The most memory that this process has had so far, where the system tells.
pub(crate) fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|it| it.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}

/// Figures from pairs.
pub(crate) fn figures<const N: usize>(pairs: [(&str, f64); N]) -> Figures {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
