//! Why there is no figure.

use thiserror::Error;

/// Why a window has no power or energy; the words go into the column `absent`.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Refusal {
    /// The source has no row.
    #[error("{0}")]
    Missing(String),
    /// The device was not running from its battery: what the gauge reads is not what the device draws (AccA #35).
    #[error("on external power ({0}): cut USB ([power] usb-off), use Wi-Fi ADB or --on-battery, or say supply = \"measured\"")]
    External(String),
    /// Rule R17.
    #[error("suspended: the device slept {ms:.0} ms in the window")]
    Suspended {
        /// Growth of boot time minus monotonic time, in ms.
        ms: f64,
    },
    /// Rule R15.
    #[error(
        "window of {window_s:.1} s, needed {needed_s:.0} s (max of {floor_s:.0} s and 20 updates every {period_s:.2} s): raise [measure] queries or use [soak]"
    )]
    Short {
        /// Seconds there are.
        window_s: f64,
        /// Seconds needed.
        needed_s: f64,
        /// The part of it that does not hang on the gauge, in seconds.
        floor_s: f64,
        /// Seconds between updates.
        period_s: f64,
    },
    /// The gauge shows one value for too long.
    #[error("gauge stuck: its current did not change for {gap_s:.0} s ({updates} updates in the window)")]
    Stuck {
        /// Longest time without a change, in seconds.
        gap_s: f64,
        /// Changes in the window.
        updates: usize,
    },
    /// Two ways to the unit or the direction disagree.
    #[error("units contradict: {0}")]
    Contradiction(String),
    /// A value that can't be one.
    #[error("implausible: {0}")]
    Implausible(String),
    /// The readings do not cover the window.
    #[error("readings cover {covered_s:.1} s of a window of {window_s:.1} s")]
    Uncovered {
        /// Seconds with readings.
        covered_s: f64,
        /// Seconds of the window.
        window_s: f64,
    },
    /// The external meter.
    #[error("meter: {0}")]
    Meter(#[from] super::MeterError),
}
