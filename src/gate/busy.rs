//! A computer that may have been busy with something else while it measured: its times are partly that something's.
//!
//! One rule for whoever judges (`compare`, `gate`, `history`): such a run decides nothing about times, neither a loss nor a gain, and is no part of the
//! level that others are held against. Memory that a run takes itself is its own.

use serde_json::Value;

use crate::results::others::{Others, minute};

/// Load a core from which a computer is busy with something else when a run begins: nothing of the run is in it.
const LOAD: f64 = 1.5;
/// Share of a computer's CPUs that others may take while a run measures. A computer at rest has some percent of services, and the program that a
/// test or a CI job waits in; one other program that computes takes 50 % of two CPUs, and 25 % of four: the runners' one or two threads then lose
/// turns, or caches and clocks, to it. A judgement, and no bound up to which times are untouched.
const OTHERS: f64 = 0.25;

/// Whether a run on this computer shared it, in words, by the manifest's `device` and `host`: the load when it began, or what others took of the CPUs
/// while it measured. Two such runs differed by a factor of 1.9 on a virtual machine (tests/bench/README.md), and nothing in them shows it.
///
/// Runs of an older bench did not count others: there the load at the end counts as that at the begin does, though the run itself is in it.
pub fn busy(device: &Value, host: &Value) -> Option<String> {
    let cores = device["cores"].as_f64().filter(|_| device["class"] == "pc")?;
    let counted = Others::of(|key| host[key].as_str());
    let taken = counted.and_then(Others::cpus).filter(|taken| *taken > OTHERS * cores);
    let loads: &[&str] = if counted.is_some() { &["load"] } else { &["load", "load_end"] };
    let load = loads.iter().filter_map(|key| minute(host[*key].as_str()?)).fold(0.0, f64::max);
    let taken = taken.map(|taken| format!("others took {taken:.1} of {cores} CPUs"));
    taken.or_else(|| (load > LOAD * cores).then(|| format!("load {load:.1} of {cores} CPUs")))
}

/// Whether it is memory that the run itself takes; what the whole device has left is nobody's own.
pub fn own_memory(metric: &str) -> bool {
    metric.ends_with("_mb") && metric != "mem_available_min_mb"
}

/// Whether what else a computer did is in this metric.
pub fn touches(metric: &str) -> bool {
    !own_memory(metric)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_computer_is_busy_by_what_others_took_of_it() {
        let of = |cpu_s: &str, load: &str| {
            let host = json!({"load": load, "load_end": "9.00 9 9 1/80 9", "others_cpu_s": cpu_s, "others_wall_s": "10.00"});
            busy(&json!({"class": "pc", "cores": 2}), &host)
        };
        assert_eq!(of("5.00", "0.10 9 9 1/80 9"), None, "25 %, and the load that the run makes itself is none of others");
        assert_eq!(of("5.10", "0.10 9 9 1/80 9").as_deref(), Some("others took 0.5 of 2 CPUs"));
        assert_eq!(of("0.00", "3.10 9 9 1/80 9").as_deref(), Some("load 3.1 of 2 CPUs"), "when it began");
        assert_eq!(of("x", "0.10 9 9 1/80 9").as_deref(), Some("load 9.0 of 2 CPUs"), "nobody counted: as of an older bench");
    }

    #[test]
    fn a_computer_is_busy_from_one_and_a_half_of_its_cores_on() {
        let of = |class: &str, begin: &str, end: &str| busy(&json!({"class": class, "cores": 2}), &json!({"load": begin, "load_end": end}));
        assert_eq!(of("pc", "2.90 9 9 1/80 9", "3.00 9 9 1/80 9"), None);
        assert_eq!(of("pc", "0.10 9 9 1/80 9", "3.10 9 9 1/80 9").as_deref(), Some("load 3.1 of 2 CPUs"));
        assert_eq!(of("pc", "13.46 9 9 1/80 9", "x").as_deref(), Some("load 13.5 of 2 CPUs"));
        assert_eq!(of("phone", "13.46 9 9 1/80 9", ""), None, "it is not what was measured");
        assert_eq!(busy(&Value::Null, &Value::Null), None);
    }
}
