//! The power figures of one launch.

use super::{
    Asked, Baseline, BaselineState, CurrentUnit, Meter, Refusal, Telemetry, Window,
    integral::Watts,
    method::{METER, Report, power},
};

/// The metrics, as columns: each is there, or has its reason in [`LaunchPower::absent`].
pub const METRICS: [&str; 10] = [
    "power_avg_w",
    "power_peak_w",
    "prefill_power_w",
    "decode_power_w",
    "energy_gross_j",
    "energy_net_j",
    "energy_j_per_prompt_tok",
    "energy_j_per_tok",
    "tokens_per_battery_pct",
    "battery_hours",
];

/// Least share of a window that a phase has to fill before the window's joules are that phase's: then it is a loop of it (rule R15).
pub const LOOP_SHARE: f64 = 0.95;
/// A baseline's spread over this share of the net power makes the net no figure (rule R15).
const MOST_SPREAD: f64 = 0.2;
/// Gauge periods that a phase has to last before samples can be called its own; the first of them still shows what was before.
const PHASE_PERIODS: f64 = 3.0;

/// What a launch did in its window, in seconds of the device's monotonic clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Load {
    /// From the begin of its first measured query to the end of its last.
    pub window: (f64, f64),
    /// Prompt tokens of all queries in it, if each says how many.
    pub prompt_tokens: Option<u64>,
    /// Generated tokens of all queries in it.
    pub gen_tokens: u64,
    /// The queries.
    pub queries: u32,
    /// Submission to first token of each query.
    pub prefill: Vec<(f64, f64)>,
    /// First to last token of each query.
    pub decode: Vec<(f64, f64)>,
    /// Seconds of all prefills and of all decodes, where single queries are not kept (a soak).
    pub seconds: Option<(f64, f64)>,
}
impl Load {
    /// Share of the window that is prefill, and that is decode.
    fn shares(&self) -> (f64, f64) {
        let sum = |intervals: &[(f64, f64)]| intervals.iter().map(|(a, b)| b - a).sum::<f64>();
        let (prefill_s, decode_s) = self.seconds.unwrap_or_else(|| (sum(&self.prefill), sum(&self.decode)));
        let window_s = self.window.1 - self.window.0;
        (prefill_s / window_s, decode_s / window_s)
    }
}

/// The power figures of one launch. `None` has its reason in `absent`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LaunchPower {
    /// Mean power of the window, W.
    pub avg_w: Option<f64>,
    /// Highest distinct sample, W.
    pub peak_w: Option<f64>,
    /// Mean and highest sample within prefills, W.
    pub prefill_w: Option<(f64, f64)>,
    /// Mean and highest sample within decodes, W.
    pub decode_w: Option<(f64, f64)>,
    /// Joules of the window.
    pub gross_j: Option<f64>,
    /// Half-width of the gross joules: see [`super::Energy::error_j`].
    pub error_j: Option<f64>,
    /// Gross less baseline over the same time.
    pub net_j: Option<f64>,
    /// The baseline's mean, W.
    pub baseline_w: Option<f64>,
    /// What was in memory then.
    pub baseline_state: Option<BaselineState>,
    /// Net joules of a prompt token, in a launch that does nothing but prefill.
    pub j_per_prompt_tok: Option<f64>,
    /// Net joules of a generated token, in a launch that does nothing but decode.
    pub j_per_tok: Option<f64>,
    /// Net joules of one query, for the regression over cells.
    pub net_j_per_query: Option<f64>,
    /// Generated tokens for one percent of the battery's charge, gross.
    pub tokens_per_pct: Option<f64>,
    /// Hours from full to empty at this mean power.
    pub hours: Option<f64>,
    /// Method of the last two.
    pub percent_method: Option<&'static str>,
    /// `battery`, `hwmon:<chip>` or `meter`.
    pub method: Option<String>,
    /// Updates a second of what was read.
    pub update_hz: Option<f64>,
    /// Units of a battery and how they are known.
    pub unit: Option<String>,
    /// Unit of its current.
    pub current: Option<CurrentUnit>,
    /// The charge states in the window.
    pub charge_state: Option<String>,
    /// Where an external meter's clock stood in the window.
    pub clock: Option<MeterClock>,
    /// Metric and reason.
    pub absent: Vec<(&'static str, String)>,
}

/// Where an external meter's clock stood in a launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeterClock {
    /// Meter's seconds minus device's seconds, in the middle of the window.
    pub offset_s: f64,
    /// By how much that may be off, s; the bound of the joules holds it.
    pub error_s: f64,
    /// How much it runs fast, in millionths, where the pulses after the last launch tell.
    pub drift_ppm: Option<f64>,
}

impl LaunchPower {
    /// A launch without any figure.
    pub fn without(reason: &str) -> Self {
        Self { absent: METRICS.iter().map(|m| (*m, reason.to_owned())).collect(), ..Self::default() }
    }

    /// A figure by its column.
    pub fn get(&self, metric: &str) -> Option<f64> {
        match metric {
            "power_avg_w" => self.avg_w,
            "power_peak_w" => self.peak_w,
            "prefill_power_w" => self.prefill_w.map(|w| w.0),
            "decode_power_w" => self.decode_w.map(|w| w.0),
            "energy_gross_j" => self.gross_j,
            "energy_net_j" => self.net_j,
            "energy_j_per_prompt_tok" => self.j_per_prompt_tok,
            "energy_j_per_tok" => self.j_per_tok,
            "tokens_per_battery_pct" => self.tokens_per_pct,
            "battery_hours" => self.hours,
            _ => None,
        }
    }

    /// Why a metric is absent.
    pub fn why(&self, metric: &str) -> Option<&str> {
        self.absent.iter().find(|(m, _)| *m == metric).map(|(_, why)| why.as_str())
    }

    /// Takes the idle draw off: net joules, and those of a token where the window is a loop of one phase. `baseline` is the idle draw, or why it
    /// is not known. Says nothing new where there is no gross.
    pub fn less(&mut self, load: &Load, baseline: Result<&Baseline, &str>) {
        let Some(gross_j) = self.gross_j else { return };
        (self.baseline_w, self.baseline_state) = baseline.ok().map(|base| (base.w, base.state)).unzip();
        let seconds = load.window.1 - load.window.0;
        match self.net(gross_j, seconds, baseline) {
            Ok(net_j) => {
                self.net_j = Some(net_j);
                self.net_j_per_query = (load.queries > 0).then(|| net_j / f64::from(load.queries));
                self.per_token(load, net_j);
            }
            Err(why) => self.lacks(&["energy_net_j", "energy_j_per_prompt_tok", "energy_j_per_tok"], &why),
        }
    }

    fn net(&self, gross_j: f64, seconds: f64, baseline: Result<&Baseline, &str>) -> Result<f64, String> {
        let base = baseline?;
        let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
        if self.method.as_ref() != Some(&base.method) {
            return Err(format!("the baseline was measured by {}, the launch by {}", base.method, word(&self.method)));
        }
        if base.charge_state != self.charge_state {
            return Err(format!("the baseline's charge state is {}, the launch's {}", word(&base.charge_state), word(&self.charge_state)));
        }
        let net_j = gross_j - base.w * seconds;
        if net_j <= 0.0 || base.spread_w * seconds > MOST_SPREAD * net_j {
            return Err(format!(
                "the baseline ({:.2} W, standard deviation {:.2} W) spreads over more than 20 % of the net ({:.2} W)",
                base.w,
                base.spread_w,
                net_j / seconds
            ));
        }
        Ok(net_j)
    }

    /// Rule R15: a window that mixes phases says nothing about one of them.
    fn per_token(&mut self, load: &Load, net_j: f64) {
        let (prefill, decode) = load.shares();
        let mut each = |metric, share: f64, tokens: Option<u64>, phase: &str| {
            let why = match tokens {
                Some(tokens) if share >= LOOP_SHARE && tokens > 0 => return Some(net_j / tokens as f64),
                None | Some(0) if share >= LOOP_SHARE => format!("how many tokens its {phase} took is not known"),
                _ => format!(
                    "{phase} is {:.0} % of the window, a loop of it has 95 %: cells.csv has it by regression where prompt and generated tokens vary",
                    share * 100.0
                ),
            };
            self.lacks(&[metric], &why);
            None
        };
        let prompt = each("energy_j_per_prompt_tok", prefill, load.prompt_tokens, "prefill");
        let generated = each("energy_j_per_tok", decode, Some(load.gen_tokens), "decode");
        (self.j_per_prompt_tok, self.j_per_tok) = (prompt, generated);
    }

    fn lacks(&mut self, metrics: &[&'static str], why: &str) {
        self.absent.extend(metrics.iter().map(|m| (*m, why.to_owned())));
    }
}

/// The gross figures of a launch; [`LaunchPower::less`] adds the net ones.
pub fn launch(load: &Load, telemetry: &Telemetry, meter: Option<&Meter>, asked: Asked<'_>) -> LaunchPower {
    let (from, to) = load.window;
    let Report { charge_state, power } = power(telemetry, meter, asked, Window::load(from, to), None);
    let m = match power {
        Ok(m) => m,
        Err(refusal) => {
            let mut out = LaunchPower::without(&refusal.to_string());
            out.charge_state = charge_state;
            // What is there of the method is said even where the window is too short.
            out.method = matches!(refusal, Refusal::Short { .. } | Refusal::Stuck { .. }).then(|| named(telemetry, meter)).flatten();
            return out;
        }
    };
    let e = m.energy;
    let mut out = LaunchPower {
        avg_w: Some(e.avg_w),
        peak_w: Some(e.peak_w),
        gross_j: Some(e.joules),
        error_j: Some(e.error_j),
        method: Some(m.method.clone()),
        update_hz: Some(1.0 / e.period_s),
        unit: m.unit.clone(),
        current: m.current,
        charge_state,
        clock: meter.filter(|_| m.method == METER).and_then(|meter| meter.clock.as_ref().ok()).map(|clock| MeterClock {
            offset_s: clock.offset_s(f64::midpoint(from, to)),
            error_s: clock.error_s(from).max(clock.error_s(to)),
            drift_ppm: clock.drift().map(|share| share * 1e6),
        }),
        ..LaunchPower::default()
    };
    for (metric, intervals, what) in [("prefill_power_w", &load.prefill, "prefill"), ("decode_power_w", &load.decode, "decode")] {
        let watts = match load.seconds {
            Some(_) => Err("single queries of a soak are not kept: soak.csv has the power of its windows".to_owned()),
            None => phase(&m.watts, intervals, e.period_s, what),
        };
        let place = if metric == "prefill_power_w" { &mut out.prefill_w } else { &mut out.decode_w };
        match watts {
            Ok(w) => *place = Some(w),
            Err(why) => out.lacks(&[metric], &why),
        }
    }
    match m.percent_j {
        Some((percent_j, method)) if e.joules > 0.0 => {
            out.hours = Some(percent_j * 100.0 / e.avg_w / 3600.0);
            out.percent_method = Some(method);
            if load.gen_tokens > 0 {
                out.tokens_per_pct = Some(load.gen_tokens as f64 / e.joules * percent_j);
            } else {
                out.lacks(&["tokens_per_battery_pct"], "no token came");
            }
        }
        _ => out.lacks(
            &["tokens_per_battery_pct", "battery_hours"],
            "what one percent of the battery holds is not known: it needs charge_counter and capacity",
        ),
    }
    out
}

fn named(telemetry: &Telemetry, meter: Option<&Meter>) -> Option<String> {
    match (meter, telemetry.batteries.is_empty()) {
        (Some(_), _) => Some(METER.to_owned()),
        (None, false) => Some("battery".to_owned()),
        (None, true) => None,
    }
}

/// Mean and highest sample of a phase, from the intervals that are long enough for the gauge.
fn phase(watts: &Watts, intervals: &[(f64, f64)], period_s: f64, what: &str) -> Result<(f64, f64), String> {
    let longest = intervals.iter().map(|(a, b)| b - a).fold(0.0, f64::max);
    let (mut joules, mut seconds, mut peak) = (0.0, 0.0, f64::NEG_INFINITY);
    for (from, to) in intervals.iter().filter(|(a, b)| b - a >= PHASE_PERIODS * period_s.max(watts.poll_s())) {
        let own = (from + period_s + watts.poll_s(), *to);
        let (energy, high) = watts.slice(own, period_s);
        (joules, seconds, peak) = (joules + energy, seconds + own.1 - own.0, f64::max(peak, high));
    }
    if seconds > 0.0 && peak.is_finite() {
        return Ok((joules / seconds, peak));
    }
    let needed = PHASE_PERIODS * period_s;
    Err(format!("a {what} lasts {longest:.2} s at most, three updates of the gauge take {needed:.2} s"))
}
