//! `bench` measures the same language model on the same Snapdragon device through every inference framework it can find, and
//! says, with evidence, which one to ship. The data's way through the code is the order of the modules:
//! scenario, prepare, device, run, results, stats, report and gate.

pub mod analysis;
mod chat;
pub mod cli;
pub mod device;
pub mod doctor;
pub mod gate;
pub mod import;
mod lang;
pub mod prepare;
pub mod registry;
pub mod report;
pub mod results;
pub mod run;
pub mod runtimes;
mod safe;
pub mod scenario;
pub mod trace;
mod words;

pub use bench_stats as stats;
use bench_stats::random;

/// Wall time, RFC 3339 in UTC.
pub fn utc_now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
