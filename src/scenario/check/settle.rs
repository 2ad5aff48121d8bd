//! `[settle]` and `[environment]`.

use std::time::Duration;

use super::{
    super::{
        state::{Band, Environment, Policy, Settle},
        suggest::{self, show},
        value::At,
        wire,
    },
    Context,
};
use crate::device::zones::Domain;

const DEFAULT_TIMEOUT: Duration = Duration::from_mins(5);
const DEFAULT_POLL: Duration = Duration::from_secs(3);
/// No device is measured outside of these, in degrees Celsius: what is outside is a slip, Fahrenheit for instance.
const SANE_C: std::ops::RangeInclusive<f64> = -40.0..=125.0;
/// Longest text about the surroundings.
const LONGEST_TEXT: usize = 80;

impl Context<'_> {
    /// `ambient_c` is what `[environment]` says of the air.
    pub(super) fn settle(&mut self, wire: wire::Settle, ambient_c: Option<f64>) -> Settle {
        let timeout = wire.timeout.as_ref().and_then(|t| self.duration("timeout", t)).unwrap_or(DEFAULT_TIMEOUT);
        let poll = wire.poll.as_ref().and_then(|p| self.duration("poll", p)).unwrap_or(DEFAULT_POLL);
        if let Some(at) = wire.poll.as_ref().filter(|_| poll > timeout) {
            self.out.error(at.span(), "`poll` is longer than `timeout`", "the device would be looked at once".to_owned());
        }
        let bands = wire.zones.into_iter().flatten().filter_map(|(zone, band)| self.band(&zone, &band, ambient_c)).collect();
        Settle {
            timeout_ms: timeout.as_millis() as u64,
            poll_ms: poll.as_millis() as u64,
            policy: match wire.policy {
                Some(wire::SettlePolicy::Skip) => Policy::Skip,
                Some(wire::SettlePolicy::Abort) => Policy::Abort,
                Some(wire::SettlePolicy::Mark) | None => Policy::Mark,
            },
            battery_pct: wire.battery.and_then(|b| self.percentage(&b)).map(|share| share * 100.0),
            charging: match wire.charging {
                Some(wire::YesNo::Yes) => Some(true),
                Some(wire::YesNo::No) => Some(false),
                Some(wire::YesNo::Any) | None => None,
            },
            screen: match wire.screen {
                Some(wire::OnOff::On) => Some(true),
                Some(wire::OnOff::Off) => Some(false),
                Some(wire::OnOff::Any) | None => None,
            },
            free_mb: wire.free_memory.and_then(|m| self.megabytes(&m)),
            quiet_cpu_pct: wire.quiet_cpu.and_then(|q| self.percentage(&q)).map(|share| share * 100.0),
            contention: wire.contention.is_some_and(|c| c.value),
            bands,
        }
    }

    fn band(&mut self, zone: &At<String>, band: &At<wire::Band>, ambient_c: Option<f64>) -> Option<Band> {
        let words: Vec<&str> = Domain::ALL.iter().map(|d| d.as_str()).collect();
        let name = zone.value.as_str();
        if name.is_empty() || name.chars().any(char::is_control) {
            self.out.error(zone.span(), "not the name of a zone", format!("a part of the device ({}) or a zone's type", words.join(", ")));
            return None;
        }
        if Domain::parse(name).is_none()
            && let Some(near) = suggest::nearest(name, words.iter().copied())
        {
            let message = format!("{} is no part of a device: it is taken for the name of a zone", show(name));
            self.out.warning(zone.span(), message, format!("did you mean `{near}`?"));
        }
        let [low, high] = band.value.0.as_slice() else {
            let help = "lowest and highest, for instance [\"28C\", \"36C\"]".to_owned();
            self.out.error(band.span(), format!("a band has two ends, not {}", band.value.0.len()), help);
            return None;
        };
        let (low_c, high_c) = (self.celsius(low)?, self.celsius(high)?);
        if low_c >= high_c {
            self.out.error(band.span(), "the band is empty: its lowest is not below its highest temperature", None);
            return None;
        }
        if let Some(ambient) = ambient_c.filter(|a| *a >= high_c) {
            let message = format!("a device in air of {ambient}C does not get down to {high_c}C by waiting");
            self.out.warning(high.span(), message, "widen the band, or cool the room: else the time-out decides".to_owned());
        }
        Some(Band { zone: name.to_owned(), low_c, high_c })
    }

    /// `36.5C` as 36.5.
    fn celsius(&mut self, at: &At<String>) -> Option<f64> {
        let number = at.value.trim().strip_suffix('C').map(|n| n.trim_end().trim_end_matches('°'));
        let c = number.and_then(|n| n.parse::<f64>().ok()).filter(|c| SANE_C.contains(c));
        if c.is_none() {
            let help = "write for instance \"36C\"; it lies between -40C and 125C".to_owned();
            self.out.error(at.span(), format!("{} is not a temperature", show(&at.value)), help);
        }
        c
    }

    /// `4000MB` or `4GB` in 10^6 bytes.
    fn megabytes(&mut self, at: &At<String>) -> Option<f64> {
        let text = at.value.trim();
        let unit = [("GB", 1000.0), ("MB", 1.0)].into_iter().find_map(|(unit, mb)| Some((text.strip_suffix(unit)?, mb)));
        let mb = unit.and_then(|(n, mb)| Some(n.trim_end().parse::<f64>().ok()? * mb)).filter(|mb| *mb > 0.0 && mb.is_finite());
        if mb.is_none() {
            let help = "write for instance \"4000MB\" or \"4GB\"".to_owned();
            self.out.error(at.span(), format!("{} is not an amount of memory", show(&at.value)), help);
        }
        mb
    }

    pub(super) fn environment(&mut self, wire: wire::Environment) -> Environment {
        Environment {
            ambient_c: wire.ambient.and_then(|a| self.celsius(&a)),
            supply: wire.supply.and_then(|s| self.text(&s)),
            case: wire.case.and_then(|c| self.text(&c)),
        }
    }

    /// A few words that stand in tables.
    fn text(&mut self, at: &At<String>) -> Option<String> {
        let text = at.value.trim();
        let good = !text.is_empty() && text.chars().count() <= LONGEST_TEXT && !text.chars().any(char::is_control);
        if !good {
            self.out.error(
                at.span(),
                format!("{} is not a few words", show(&at.value)),
                format!("one line of up to {LONGEST_TEXT} characters"),
            );
        }
        good.then(|| text.to_owned())
    }
}
