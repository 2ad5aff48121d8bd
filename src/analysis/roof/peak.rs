//! Peak bandwidth of a SoC's DRAM (rule R25): by the device's own node where it tells, else by the catalogue.

use serde::Serialize;

use crate::device::soc::{Confidence, Soc};

/// Where a peak comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum PeakSource {
    /// The device's `bus_dcvs/DDR/hw_max_freq` and the catalogue's width.
    Device {
        /// Highest clock.
        khz: u64,
        /// Width of all channels.
        bus_bits: u32,
    },
    /// The catalogue: the best that the chip can drive.
    Catalogue {
        /// How sure it is.
        confidence: Confidence,
    },
}

/// Peak bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Peak {
    /// In GB/s (10^9 bytes).
    pub gb_s: f64,
    /// Where it comes from.
    #[serde(flatten)]
    pub source: PeakSource,
}

impl Peak {
    /// Where it comes from, in words.
    pub fn words(&self) -> String {
        match self.source {
            PeakSource::Device { khz, bus_bits } => {
                format!("the device's own DDR clock of at most {} MHz x 2 x {bus_bits} bits", khz / 1000)
            }
            PeakSource::Catalogue { confidence } => format!("the catalogue of SoCs, confidence {}", confidence.word()),
        }
    }

    /// Whether a rate above it is wrong, rather than the peak.
    pub const fn is_sure(&self) -> bool {
        !matches!(self.source, PeakSource::Catalogue { confidence: Confidence::Low })
    }
}

/// The peak of a SoC, with the highest DDR clock in kHz that a device itself tells: twice the clock times the width.
///
/// # Errors
/// Why it is not known.
pub fn peak(soc: Option<&Soc>, ddr_max_khz: Option<u64>) -> Result<Peak, String> {
    let soc = soc.ok_or("the SoC is not in the catalogue (scenarios/devices)")?;
    let memory = soc.memory.as_ref().ok_or_else(|| format!("no source tells the memory of {}", soc.soc))?;
    let own = ddr_max_khz.filter(|khz| *khz > 0).map(|khz| Peak {
        gb_s: khz as f64 * 2.0 * f64::from(memory.bus_bits) / 8.0 / 1e6,
        source: PeakSource::Device { khz, bus_bits: memory.bus_bits },
    });
    Ok(own.unwrap_or(Peak { gb_s: memory.peak_gb_s, source: PeakSource::Catalogue { confidence: memory.confidence } }))
}
