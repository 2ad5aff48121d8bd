//! Axes: their range and their ticks.

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    lo: f64,
    hi: f64,
    log: bool,
    /// Values at which a grid line and a label stand.
    pub ticks: Vec<f64>,
    /// What it shows, with the unit; a logarithmic one says that it is.
    pub title: String,
}

impl Axis {
    /// From zero to the first round number that holds `most`, in about `count` steps.
    pub fn from_zero(most: f64, count: usize, title: &str) -> Self {
        // Beyond, steps would be zero or infinite: what a broken table holds must not hang the report.
        let most = if (1e-200..1e200).contains(&most) { most } else { 1.0 };
        let step = round_step(most / count as f64);
        let steps = (most / step).ceil() as usize;
        let ticks: Vec<f64> = (0..=steps).map(|i| i as f64 * step).collect();
        Self { lo: 0.0, hi: steps as f64 * step, log: false, ticks, title: title.to_owned() }
    }

    /// Linear around the values, for positions, not for lengths: it says that it leaves out zero.
    pub fn around(least: f64, most: f64, count: usize, title: &str) -> Self {
        let step = round_step(((most - least) / count as f64).max(most * 1e-3));
        let (first, last) = ((least / step).floor() as i64, (most / step).ceil() as i64);
        if first == 0 {
            return Self::from_zero(most, count, title);
        }
        let ticks: Vec<f64> = (first..=last).map(|i| i as f64 * step).collect();
        Self { lo: first as f64 * step, hi: last as f64 * step, log: false, ticks, title: format!("{title} (not from zero)") }
    }

    /// From zero to exactly `most`, in about `count` steps: time, of which there is nothing after the end.
    pub fn until(most: f64, count: usize, title: &str) -> Self {
        let mut axis = Self::from_zero(most, count, title);
        if most > 0.0 && most.is_finite() {
            axis.hi = most;
            axis.ticks.retain(|tick| *tick <= most * 1.000_001);
        }
        axis
    }

    /// Linear on both sides of zero, which is in it, in about `count` steps.
    pub fn signed(least: f64, most: f64, count: usize, title: &str) -> Self {
        let (least, most) = (least.min(0.0), most.max(0.0));
        let span = if most > least { most - least } else { 1.0 };
        let step = round_step(span / count as f64);
        let (first, last) = ((least / step).floor() as i64, (most / step).ceil() as i64);
        let last = if first == last { last + 1 } else { last };
        let ticks: Vec<f64> = (first..=last).map(|i| i as f64 * step).collect();
        Self { lo: first as f64 * step, hi: last as f64 * step, log: false, ticks, title: title.to_owned() }
    }

    /// From zero, with a tick at each of the values, which are few and wanted: prompt lengths.
    pub fn from_zero_at(values: &[f64], title: &str) -> Self {
        let most = values.iter().copied().fold(1.0, f64::max);
        let ticks = std::iter::once(0.0).chain(values.iter().copied()).collect();
        Self { lo: 0.0, hi: most * 1.06, log: false, ticks, title: title.to_owned() }.thinned()
    }

    /// Logarithmic, ticks at 1, 2 and 5 of each decade, or at the decades alone where there are many.
    pub fn logarithmic(least: f64, most: f64, title: &str) -> Self {
        let (least, most) = (least.max(f64::MIN_POSITIVE), most.max(least.max(f64::MIN_POSITIVE)));
        let (lo, hi) = (least / 1.15, most * 1.15);
        let decades = (hi / lo).log10();
        let steps: &[f64] = if decades > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let ticks = (lo.log10().floor() as i32..=hi.log10().ceil() as i32)
            .flat_map(|exponent| steps.iter().map(move |step| step * 10_f64.powi(exponent)))
            .filter(|tick| (lo..=hi).contains(tick))
            .collect();
        Self { lo, hi, log: true, ticks, title: format!("{title} (logarithmic)") }
    }

    /// Logarithmic, with a tick at each of the values.
    pub fn logarithmic_at(values: &[f64], title: &str) -> Self {
        let (least, most) = values.iter().fold((f64::INFINITY, 0.0_f64), |(lo, hi), value| (lo.min(*value), hi.max(*value)));
        let mut axis = Self::logarithmic(least, most, title);
        axis.ticks = values.to_vec();
        axis.thinned()
    }

    /// Without the ticks whose labels would run into one another; the first and the last stay.
    fn thinned(mut self) -> Self {
        const APART: f64 = 0.11;
        let range = self.range();
        let places: Vec<f64> = self.ticks.iter().map(|tick| (self.at(*tick) - range.start) / (range.end - range.start)).collect();
        let Some(last) = places.last().copied() else { return self };
        let mut free = f64::NEG_INFINITY;
        let mut kept = places.iter().map(|place| {
            let fits = *place >= free && (*place <= last - APART || *place >= last);
            free = if fits { place + APART } else { free };
            fits
        });
        self.ticks.retain(|_| kept.next() == Some(true));
        self
    }

    /// The range in drawing units.
    pub fn range(&self) -> std::ops::Range<f64> {
        self.at(self.lo)..self.at(self.hi)
    }

    /// A value in drawing units.
    pub fn at(&self, value: f64) -> f64 {
        if self.log { value.max(self.lo).log10() } else { value }
    }

    /// A tick's label.
    pub fn label(&self, tick: f64) -> String {
        let step = self.ticks.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let scale = if self.log { tick } else { step.min(tick.abs().max(step)) };
        let decimals = if scale.is_finite() && scale > 0.0 { (-scale.log10().floor()).clamp(0.0, 6.0) as usize } else { 0 };
        // 2.5 needs the decimal that 2 does not.
        let decimals = if decimals == 0 && !self.log && step < 10.0 && step.fract() > 1e-9 { 1 } else { decimals };
        format!("{tick:.decimals$}")
    }
}

/// The nearest of 1, 2, 2.5 and 5 times a power of ten that is not under `rough`.
fn round_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough * 0.999_999).unwrap_or(power * 10.0)
}

#[cfg(test)]
mod tests {
    use super::Axis;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks.iter().map(|tick| axis.label(*tick)).collect()
    }

    #[test]
    fn linear_axes_begin_at_zero_and_end_on_a_round_number() {
        assert_eq!(labels(&Axis::from_zero(83.0, 5, "ms")), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(&Axis::from_zero(0.42, 5, "ms")), ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(labels(&Axis::from_zero(12.0, 5, "ms")), ["0.0", "2.5", "5.0", "7.5", "10.0", "12.5"]);
        assert_eq!(
            (labels(&Axis::until(61.2, 6, "s")), Axis::until(61.2, 6, "s").range()),
            (["0", "20", "40", "60"].map(str::to_owned).to_vec(), 0.0..61.2)
        );
        assert_eq!(Axis::from_zero(0.0, 5, "ms").range(), 0.0..1.0);
        for absurd in [f64::NAN, f64::INFINITY, 5e-324, 1e308] {
            assert_eq!(Axis::from_zero(absurd, 5, "ms").range(), 0.0..1.0);
        }
    }

    #[test]
    fn an_axis_that_leaves_out_zero_says_so() {
        let axis = Axis::around(2.61, 3.12, 5, "gap, ms");
        assert_eq!(
            (axis.title.as_str(), labels(&axis)),
            ("gap, ms (not from zero)", ["2.6", "2.8", "3.0", "3.2"].map(str::to_owned).to_vec())
        );
        assert_eq!(Axis::around(0.1, 3.0, 5, "gap, ms").title, "gap, ms");
        assert_eq!(labels(&Axis::from_zero_at(&[32.0, 96.0], "prompt")), ["0", "32", "96"]);
        // 32 is 7 % of the range from 0, and 448 is 12 % from 512.
        assert_eq!(labels(&Axis::from_zero_at(&[32.0, 64.0, 256.0, 448.0, 500.0, 512.0], "prompt")), ["0", "64", "256", "448", "512"]);
    }

    #[test]
    fn signed_axes_hold_zero() {
        assert_eq!(labels(&Axis::signed(-3.1, 12.0, 8, "%")), ["-4", "-2", "0", "2", "4", "6", "8", "10", "12"]);
        assert_eq!(labels(&Axis::signed(2.0, 9.0, 5, "%")), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(Axis::signed(0.0, 0.0, 5, "%").range(), 0.0..0.2);
    }

    #[test]
    fn logarithmic_axes_say_so() {
        let axis = Axis::logarithmic(3.0, 90.0, "gap, ms");
        assert_eq!(axis.title, "gap, ms (logarithmic)");
        assert_eq!(labels(&axis), ["5", "10", "20", "50", "100"]);
        assert_eq!(labels(&Axis::logarithmic_at(&[32.0, 128.0, 512.0], "prompt")), ["32", "128", "512"]);
        assert!(Axis::logarithmic(0.0, 0.0, "x").range().start.is_finite());
    }
}
