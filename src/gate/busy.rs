//! A computer that may have been busy with something else while it measured: its times are partly that something's.
//!
//! One rule for whoever judges (`compare`, `gate`, `history`): such a run decides nothing about times, neither a loss nor a gain, and is no part of the
//! level that others are held against. Memory that a run takes itself is its own.

use serde_json::Value;

/// Load a core from which a computer is busy with something else: one of two threads that the runners use on two cores is below it.
const BUSY: f64 = 1.5;

/// Whether a run on this computer shared it, in words, by the manifest's `device` and `host`: the load when it began, or when it ended, was far above
/// what a run makes itself. Two such runs differed by a factor of 1.9 on a virtual machine (tests/bench/README.md), and nothing in them shows it.
pub fn busy(device: &Value, host: &Value) -> Option<String> {
    let cores = device["cores"].as_f64().filter(|_| device["class"] == "pc")?;
    let minute = |key: &str| host[key].as_str()?.split_whitespace().next()?.parse::<f64>().ok();
    let load = ["load", "load_end"].into_iter().filter_map(minute).fold(0.0, f64::max);
    (load > BUSY * cores).then(|| format!("load {load:.1} of {cores} CPUs"))
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
    fn a_computer_is_busy_from_one_and_a_half_of_its_cores_on() {
        let of = |class: &str, begin: &str, end: &str| busy(&json!({"class": class, "cores": 2}), &json!({"load": begin, "load_end": end}));
        assert_eq!(of("pc", "2.90 9 9 1/80 9", "3.00 9 9 1/80 9"), None);
        assert_eq!(of("pc", "0.10 9 9 1/80 9", "3.10 9 9 1/80 9").as_deref(), Some("load 3.1 of 2 CPUs"));
        assert_eq!(of("pc", "13.46 9 9 1/80 9", "x").as_deref(), Some("load 13.5 of 2 CPUs"));
        assert_eq!(of("phone", "13.46 9 9 1/80 9", ""), None, "it is not what was measured");
        assert_eq!(busy(&Value::Null, &Value::Null), None);
    }
}
