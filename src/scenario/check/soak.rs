//! `[soak]`.

use std::time::Duration;

use super::{
    super::{
        filter::Filter,
        soak::{Soak, SoakCells, TripLimit},
        suggest::show,
        value::At,
        wire,
    },
    Context,
};
use crate::device::zones::Domain;

const DEFAULT_WINDOW: Duration = Duration::from_secs(30);
/// A skin below this is a room's, a chip above that one is broken.
const DEGREES: std::ops::RangeInclusive<f64> = 20.0..=150.0;
/// Windows of which a soak's rows would fill memory and page.
const MOST_WINDOWS: u64 = 20_000;

impl Context<'_> {
    /// `sampled`: whether telemetry is on at all.
    pub(super) fn soak(&mut self, wire: Option<wire::Soak>, sampled: bool) -> Option<Soak> {
        let wire = wire?;
        let duration = wire.duration.as_ref().and_then(|d| self.duration("duration", d))?;
        let window = match &wire.window {
            None => DEFAULT_WINDOW.min(duration),
            Some(at) => self.duration("window", at)?,
        };
        if let Some(at) = wire.window.as_ref().filter(|_| window > duration) {
            self.out.error(at.span(), "`window` is longer than `duration`", "a soak has at least one window".to_owned());
        }
        let (duration_ms, window_ms) = (duration.as_millis() as u64, window.as_millis() as u64);
        if duration_ms / window_ms > MOST_WINDOWS {
            let at = wire.window.as_ref().or(wire.duration.as_ref())?;
            let help = format!("at most {MOST_WINDOWS}: take a longer `window`");
            self.out.error(at.span(), format!("{} windows in a soak", duration_ms / window_ms), help);
        }
        let cool_down = wire.cool_down.as_ref().and_then(|d| self.duration("cool-down", d));
        let trip = wire.trip.as_ref().map(|t| self.trip(t, sampled)).unwrap_or_default();
        Some(Soak {
            duration_ms,
            window_ms,
            cells: self.soaked(wire.cells.map(|list| list.0).unwrap_or_default()),
            cool_down_ms: cool_down.map_or(0, |d| d.as_millis() as u64),
            keep_all: wire.telemetry == Some(wire::Keep::All),
            trip,
        })
    }

    fn soaked(&mut self, words: Vec<At<String>>) -> SoakCells {
        match words.as_slice() {
            [] => return SoakCells::All,
            [one] if one.value == "all" => return SoakCells::All,
            [one] if one.value == "first" => return SoakCells::First,
            _ => {}
        }
        for word in &words {
            if let Err(e) = Filter::parse(&word.value) {
                let help = format!("`all`, `first`, or for instance \"backend=genie,quant=w4a16\" ({e})");
                self.out.error(word.span(), format!("{} selects no cells", show(&word.value)), help);
            }
        }
        SoakCells::Only(words.into_iter().map(|w| w.value).collect())
    }

    fn trip(&mut self, wire: &wire::Trip, sampled: bool) -> Vec<TripLimit> {
        let parts = [
            (Domain::Npu, &wire.npu),
            (Domain::Cpu, &wire.cpu),
            (Domain::Gpu, &wire.gpu),
            (Domain::Ddr, &wire.ddr),
            (Domain::Skin, &wire.skin),
            (Domain::Battery, &wire.battery),
            (Domain::Modem, &wire.modem),
            (Domain::Pmic, &wire.pmic),
        ];
        let mut limits = Vec::new();
        for (domain, at) in parts {
            let Some(at) = at else { continue };
            if !sampled {
                self.out.error(at.span(), "a `trip` needs temperatures, and telemetry is off", "set `[telemetry] rate`".to_owned());
            }
            let degrees = at.value.trim().strip_suffix('C').and_then(|n| n.trim_end().parse::<f64>().ok());
            if let Some(max_c) = degrees.filter(|c| DEGREES.contains(c)) {
                limits.push(TripLimit { domain, max_c });
            } else {
                let help = format!("write for instance \"48C\", from {}C to {}C", DEGREES.start(), DEGREES.end());
                self.out.error(at.span(), format!("{} is no temperature to end at", show(&at.value)), help);
            }
        }
        limits
    }
}
