//! Where a measured rate stands under its roof, and whether the roof says anything about it (rule R25).

use bench_backend_api::DeviceClass;
use serde::Serialize;

use crate::device::soc::{Soc, catalogue};

/// Weights have to be so many times the last cache and the VTCM together, so that what these hold does not matter (rule R25).
pub const TIMES_CACHE: f64 = 8.0;
/// Share of the roof above which a rate is suspicious.
pub const SUSPICIOUS: f64 = 0.85;
/// Share of the roof below which something is probably wrong.
pub const LOW: f64 = 0.15;

/// What decides whether the decode roof applies.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'a> {
    /// What the figure is about.
    pub class: DeviceClass,
    /// Sequences at once.
    pub batch: u32,
    /// Whether tokens are guessed ahead, so that one reading of the weights gives several.
    pub speculative: bool,
    /// Why the bytes of a token are not known, of a mixture.
    pub mixture: Option<&'a str>,
    /// Weights that a token reads, in bytes.
    pub weights: f64,
    /// The SoC.
    pub soc: Option<&'a Soc>,
}

/// Whether the decode roof applies; then what is assumed of the caches, if anything.
///
/// # Errors
/// Why it does not.
pub fn applies(c: &Conditions<'_>) -> Result<Option<String>, String> {
    if !matches!(c.class, DeviceClass::Phone | DeviceClass::Board) {
        return Err(format!("the roof is for phones and boards, not for class {}", c.class));
    }
    if let Some(why) = c.mixture {
        return Err(why.to_owned());
    }
    if c.batch > 1 {
        return Err(format!("batch {}: a reading of the weights serves several tokens", c.batch));
    }
    if c.speculative {
        return Err("speculative decoding: a reading of the weights serves several tokens".to_owned());
    }
    let most = |pick: fn(&Soc) -> Option<u32>| catalogue().iter().filter_map(pick).max().unwrap_or_default();
    let mut assumed = Vec::new();
    let mut size = |what: &str, unit: &str, pick: fn(&Soc) -> Option<u32>| {
        c.soc.and_then(pick).unwrap_or_else(|| {
            let most = most(pick);
            assumed.push(format!("{what} taken as {most} {unit}, the most in the catalogue"));
            most
        })
    };
    let cache = f64::from(size("last cache", "KB", |s| s.llc_kb)) * 1024.0;
    let vtcm = f64::from(size("VTCM", "MB", |s| s.vtcm_mb)) * 1024.0 * 1024.0;
    let limit = TIMES_CACHE * (cache + vtcm);
    if c.weights <= limit {
        return Err(format!(
            "{:.0} MB of weights are not over {TIMES_CACHE} x (last cache {:.1} MB + VTCM {:.1} MB){}",
            c.weights / 1e6,
            cache / 1e6,
            vtcm / 1e6,
            if assumed.is_empty() { String::new() } else { format!(", {}", assumed.join(", ")) }
        ));
    }
    Ok((!assumed.is_empty()).then(|| assumed.join(", ")))
}

/// Where a rate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Above the roof: impossible, so something is wrong.
    Over,
    /// So near that one should look twice.
    Suspicious,
    /// Where real figures are.
    Within,
    /// So low that something is probably wrong.
    Low,
}

impl Standing {
    /// That of a share of the roof.
    pub fn of(share: f64) -> Self {
        match share {
            s if s > 1.0 => Self::Over,
            s if s > SUSPICIOUS => Self::Suspicious,
            s if s < LOW => Self::Low,
            _ => Self::Within,
        }
    }

    /// What it means, with the likely causes; `None` where nothing is odd.
    pub const fn words(self) -> Option<&'static str> {
        match self {
            Self::Over => Some(
                "error: over the roof, which no engine can reach: tokens counted twice, several tokens a step, a clock that is off, another model or \
                 quantisation than stated, or faster memory than stated",
            ),
            Self::Suspicious => {
                Some("warning: over 85 % of the roof, more than engines usually reach: check model, quantisation and clock")
            }
            Self::Low => Some(
                "warning: under 15 % of the roof; likely causes: work fell back to another processor, a power-saving mode, throttling, or an engine \
                 that is bound by something else than memory",
            ),
            Self::Within => None,
        }
    }
}
