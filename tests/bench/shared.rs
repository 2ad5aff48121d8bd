//! What the benchmarks in Rust share: as common.py does, a figure is a median with its interval.

#![allow(dead_code, reason = "each benchmark uses its part")]

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::Path,
};

use bench::stats::{Ends, interval, median, ratio_of_medians};

pub const MB: u64 = 1_000_000;

/// Whether only to show that it runs.
pub fn quick() -> bool {
    std::env::args().any(|a| a == "--quick")
}

/// The machine and its load, on which every figure hangs.
pub fn machine() {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or_default().trim_start_matches(['\t', ' ', ':']);
    let load = read("/proc/loadavg");
    println!("machine: {model}, {} CPUs, load {}", cpu.matches("processor\t").count(), load.split(' ').next().unwrap_or_default());
}

/// A line with the median, its interval and the number of values.
pub fn show(name: &str, values: &[f64]) {
    let (middle, ends) = (median(values).expect("values"), interval(values, 1).expect("values"));
    println!("{name:<66} {middle:.1} [{:.1}, {:.1}]  n={}, {:.0} %", ends.lo, ends.hi, values.len(), 100.0 * ends.coverage);
}

/// A line with the ratio of two medians.
pub fn show_ratio(name: &str, numerator: &[f64], denominator: &[f64], target: &str) {
    let ratio = ratio_of_medians(numerator, denominator, 1).expect("positive values");
    let ends = if ratio.ends == Ends::Range { "range" } else { "95 %" };
    println!("{name:<66} {:.3} [{:.3}, {:.3}]  {ends}; target {target}", ratio.ratio, ratio.lo, ratio.hi);
}

/// A file that does not compress.
pub fn write_random(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..bytes / 8 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        file.write_all(&x.to_le_bytes())?;
    }
    file.flush()
}
