//! Whether a load was a cold one (rule R8): by what the page cache held of the model's files when the program was started. Pure.

use bench_agent::spec::{Done, Make};

/// Share of the files in the page cache under which a load is cold (rule R8).
const COLD_SHARE: f64 = 0.02;

/// What a load found in the page cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadState {
    /// Hardly any of the model.
    Cold,
    /// Some or all of it.
    Warm,
    /// Nobody looked, or could not see all of it.
    #[default]
    Unknown,
}
impl LoadState {
    /// The word in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Unknown => "unknown",
        }
    }
}

/// State of a launch's load, and the share of its files that was in the page cache; by the evidence of its first step.
pub fn load_state(step: Option<&Done>) -> (LoadState, Option<f64>) {
    let Some(found) = step.and_then(|done| done.page_cache.as_ref()).filter(|found| found.bytes > 0) else {
        return (LoadState::Unknown, None);
    };
    let share = found.resident_bytes as f64 / found.bytes as f64;
    let state = match (found.problem.is_some(), share < COLD_SHARE) {
        (true, _) => LoadState::Unknown,
        (false, true) => LoadState::Cold,
        (false, false) => LoadState::Warm,
    };
    (state, Some(share))
}

/// Why a load is not as it was asked to be, in words.
pub fn load_missed(step: &Done) -> Option<String> {
    let found = step.page_cache.as_ref()?;
    let percent = 100.0 * found.resident_bytes as f64 / found.bytes.max(1) as f64;
    match (found.asked, &found.problem, load_state(Some(step)).0) {
        (_, Some(problem), _) => Some(format!("the load's state is unknown: {problem}")),
        (Make::Cold, None, LoadState::Warm) => Some(format!(
            "a cold load was asked for and this is a warm one: {percent:.0} % of the model's files stayed in the page cache, since another \
             program has them mapped, their file system is memory, or this user may not see what is cached of another's files"
        )),
        (Make::Warm, None, _) if percent < 98.0 => {
            Some(format!("a warm load was asked for, and the page cache keeps only {percent:.0} % of the model's files: memory is short"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(cache: &str) -> Done {
        let text = format!(
            r#"{{"v":1,"agent_version":"0.1.0","start_ns":0,"end_ns":0,"utc_start":"","boot_id":null,"boottime_minus_monotonic_ns":[0,0],
            "ended":{{"reason":"exited","code":0,"signal":null,"message":null}},"rusage":{{"user_s":0,"sys_s":0,"max_rss_kb":0,"minor_faults":0,
            "major_faults":0,"voluntary_switches":0,"involuntary_switches":0}},"peak_rss_kb":null,"vm_hwm_kb":null,"pss":[],"mapped":[],
            "device_nodes":[],"stdout_bytes":0,"stderr_bytes":0,"truncated":false,"samples":0,"overruns":0,"agent_cpu_s":0.0,"sources":[],
            "launch_context":{{"uid":null,"nice":null,"affinity":null,"cgroup":null,"oom_score_adj":null}}{cache}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }
    fn cache(asked: &str, bytes: u64, resident: u64, problem: &str) -> Done {
        done(&format!(r#","page_cache":{{"asked":"{asked}","bytes":{bytes},"resident_bytes":{resident},"problem":{problem}}}"#))
    }

    #[test]
    fn cold_is_under_two_percent() {
        assert_eq!(load_state(Some(&cache("cold", 1000, 19, "null"))), (LoadState::Cold, Some(0.019)));
        assert_eq!(load_state(Some(&cache("cold", 1000, 20, "null"))), (LoadState::Warm, Some(0.02)));
        assert_eq!(load_state(Some(&cache("asis", 1000, 0, "null"))), (LoadState::Cold, Some(0.0)));
        // Older agents, jobs without files of a model, files that nobody could look at.
        assert_eq!(load_state(None), (LoadState::Unknown, None));
        assert_eq!(load_state(Some(&done(""))), (LoadState::Unknown, None));
        assert_eq!(load_state(Some(&cache("asis", 0, 0, "null"))), (LoadState::Unknown, None));
        assert_eq!(load_state(Some(&cache("cold", 1000, 0, r#""model.bin: Permission denied""#))).0, LoadState::Unknown);
    }

    #[test]
    fn what_was_asked_and_did_not_come_is_told() {
        let missed = |asked, resident, problem| load_missed(&cache(asked, 1000, resident, problem));
        assert!(missed("cold", 350, "null").is_some_and(|words| words.contains("35 % of the model's files stayed")));
        assert!(missed("warm", 400, "null").is_some_and(|words| words.contains("keeps only 40 %")));
        assert_eq!(
            [missed("cold", 5, "null"), missed("warm", 990, "null"), missed("asis", 500, "null"), load_missed(&done(""))],
            [const { None }; 4]
        );
        assert!(missed("cold", 0, r#""m.bin: gone""#).is_some_and(|words| words.ends_with("unknown: m.bin: gone")));
    }
}
