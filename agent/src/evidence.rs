//! Facts about the launch that are read once.

use std::fs;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::done::{LaunchContext, ResourceUsage};
use crate::procfs;

/// The kernel's boot id.
pub fn boot_id() -> Option<String> {
    trimmed("/proc/sys/kernel/random/boot_id")
}

/// What the command will inherit, read from the agent itself.
pub fn launch_context() -> LaunchContext {
    // By thread and not /proc/self: qemu-user makes up some of the latter.
    let pid = std::process::id();
    let status = fs::read(format!("/proc/self/task/{pid}/status")).unwrap_or_default();
    let stat = fs::read(format!("/proc/self/task/{pid}/stat")).unwrap_or_default();
    LaunchContext {
        uid: procfs::field(&status, "Uid").and_then(|ids| ids.split_ascii_whitespace().nth(1)?.parse().ok()),
        nice: procfs::parse_stat(&stat).map(|stat| stat.nice),
        affinity: procfs::field(&status, "Cpus_allowed_list").map(str::to_owned),
        cgroup: trimmed("/proc/self/cgroup"),
        cpuset: trimmed("/proc/self/cpuset"),
        oom_score_adj: trimmed("/proc/self/oom_score_adj").and_then(|text| text.parse().ok()),
        selinux: trimmed("/proc/self/attr/current"),
    }
}

fn trimmed(path: &str) -> Option<String> {
    let text = fs::read(path).ok()?;
    // Some kernels end the SELinux context with a NUL.
    let text = String::from_utf8_lossy(&text).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned();
    (!text.is_empty()).then_some(text)
}

/// What all processes used that were waited for.
pub fn children_usage() -> ResourceUsage {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return ResourceUsage::default() };
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    ResourceUsage {
        user_s: seconds(usage.user_time()),
        sys_s: seconds(usage.system_time()),
        max_rss_kb: count(usage.max_rss()),
        minor_faults: count(usage.minor_page_faults()),
        major_faults: count(usage.major_page_faults()),
        voluntary_switches: count(usage.voluntary_context_switches()),
        involuntary_switches: count(usage.involuntary_context_switches()),
    }
}

/// CPU seconds of the agent itself, all threads.
pub fn own_cpu_s() -> f64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage: Usage| seconds(usage.user_time()) + seconds(usage.system_time()))
}

fn seconds(time: TimeVal) -> f64 {
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_context() {
        let context = launch_context();
        assert_eq!(context.uid, std::fs::metadata("/proc/self").ok().map(|m| std::os::unix::fs::MetadataExt::uid(&m)));
        assert!(context.nice.is_some() && context.affinity.is_some());
        assert!(boot_id().is_none_or(|id| id.len() == 36));
    }
}
