//! An external meter: a CSV of `t_s,w` in the meter's own seconds, and its clock found by the pulses of load that `bench` gave before the first
//! launch.

use thiserror::Error;

use super::Point;

/// Why a meter gives nothing.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum MeterError {
    /// A line of the file.
    #[error("line {line}: {what}; a line is `t_s,w`: seconds that rise and watts")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// It can't be read.
    #[error("{0}")]
    Unreadable(String),
    /// Nothing in it.
    #[error("no sample")]
    Empty,
    /// There was no pulse to find.
    #[error("no pulse was given: its clock is not known")]
    NoPulse,
    /// The pulses are not in it.
    #[error("the start pulse is not found in it (best correlation {best:.2}, needed {needed}): was it recording before the run began?")]
    NotFound {
        /// Best correlation.
        best: f64,
        /// Least that counts.
        needed: f64,
    },
    /// They could be in two places.
    #[error("the start pulse fits two places, {first_s:.1} s and {second_s:.1} s: keep other load away from the device during the start")]
    Ambiguous {
        /// The better one, s.
        first_s: f64,
        /// The other, s.
        second_s: f64,
    },
}

/// Reads the CSV protocol: `t_s,w` a line, `.` as the decimal point; a first line that is no number is the header, empty lines and lines with `#`
/// are skipped. A last line without its end is dropped: the meter may have been writing.
///
/// # Errors
/// The first line that is none of it; times that do not rise.
pub fn read(text: &str) -> Result<Vec<Point>, MeterError> {
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut samples: Vec<Point> = Vec::new();
    let mut header = true;
    for (number, line) in text[..whole].lines().enumerate() {
        let line = line.trim().trim_start_matches('\u{feff}');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = |what: &str| MeterError::Line { line: number + 1, what: what.to_owned() };
        let mut fields = line.split(',').map(|f| f.trim().parse::<f64>().ok().filter(|v| v.is_finite()));
        match (fields.next().flatten(), fields.next().flatten(), fields.next()) {
            (Some(t_s), Some(value), None) => {
                if samples.last().is_some_and(|last| last.t_s >= t_s) {
                    return Err(bad("its time is not after the one before"));
                }
                samples.push(Point { t_s, value });
            }
            (None, None, None) if header => {}
            _ => return Err(bad("not two numbers")),
        }
        header = false;
    }
    if samples.is_empty() { Err(MeterError::Empty) } else { Ok(samples) }
}

/// Where the meter's clock stands against the device's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alignment {
    /// Meter's seconds minus device's seconds.
    pub offset_s: f64,
    /// By how much that may be off, s.
    pub error_s: f64,
    /// Correlation of watts and load at that offset, up to 1.
    pub correlation: f64,
}

/// Least correlation of the watts with the pulses.
const FOUND: f64 = 0.6;
/// Another place has to correlate worse by at least this much.
const CLEAR: f64 = 0.1;
/// A meter that is silent for longer was off, or its clock was set: no pulse is looked for in such a gap, however long it is.
const MOST_GAP_S: f64 = 5.0;
/// The watts around the pulses that are looked at, in s.
const MARGIN_S: f64 = 2.0;

/// Finds the pulses (begin and end of each, in the device's seconds) in the meter's samples: the offset at which the watts correlate best with
/// busy and idle (Pearson), refined by the steps of the watts at the pulses' edges.
///
/// # Errors
/// No pulse, pulses that are not found or that fit in two places.
pub fn align(samples: &[Point], pulses: &[(f64, f64)]) -> Result<Alignment, MeterError> {
    let (Some(first), Some(last)) = (pulses.first(), pulses.last()) else { return Err(MeterError::NoPulse) };
    if samples.is_empty() {
        return Err(MeterError::Empty);
    }
    let (from, to) = (first.0 - MARGIN_S, last.1 + MARGIN_S);
    // Every place at which all pulses are within what the meter saw.
    let places: Vec<Places> =
        samples.chunk_by(|a, b| b.t_s - a.t_s <= MOST_GAP_S).filter_map(|run| Places::of(run, first.0, last.1)).collect();
    if places.is_empty() {
        return Err(MeterError::NotFound { best: 0.0, needed: FOUND });
    }
    let shortest = pulses.iter().map(|p| p.1 - p.0).fold(f64::INFINITY, f64::min);
    let sums = Sums::of(samples);
    // Coarse: an eighth of the shortest pulse, in the step of the offset and in what watts and load are compared over.
    let step = shortest / 8.0;
    let try_at = |offset: f64, cell: f64| correlation(&sums, pulses, (from, to), offset, cell);
    let offsets =
        places.iter().flat_map(|p| (0..=((p.high - p.low) / step).floor() as usize).map(move |i| (p.low + i as f64 * step, p.sample_s)));
    let scores: Vec<(f64, f64, f64)> = offsets.map(|(o, sample_s)| (o, try_at(o, step), sample_s)).collect();
    let best = scores.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0.0, 0.0, step));
    if best.1 < FOUND {
        return Err(MeterError::NotFound { best: best.1, needed: FOUND });
    }
    let length = last.1 - first.0;
    let other = scores.iter().copied().filter(|s| (s.0 - best.0).abs() > length.max(1.0)).max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some(other) = other.filter(|o| o.1 > best.1 - CLEAR) {
        return Err(MeterError::Ambiguous { first_s: best.0 + first.0, second_s: other.0 + first.0 });
    }
    let sample_s = best.2;
    let finest = sample_s.max(0.005).min(step);
    // Finer around the best place, down to a fraction of a sample; the middle of all that are as good.
    let (mut centre, mut around) = (best.0, step);
    let (mut half, mut top) = (step, best.1);
    while around > finest / 20.0 {
        let fine: Vec<(f64, f64)> = (-20..=20).map(|i| centre + f64::from(i) * around / 20.0).map(|o| (o, try_at(o, finest))).collect();
        top = fine.iter().map(|s| s.1).fold(f64::NEG_INFINITY, f64::max);
        let good: Vec<f64> = fine.iter().filter(|s| s.1 >= top - 1e-6).map(|s| s.0).collect();
        let (a, b) = (good.first().copied().unwrap_or(centre), good.last().copied().unwrap_or(centre));
        (centre, half, around) = (f64::midpoint(a, b), (b - a) / 2.0, around / 8.0);
    }
    Ok(Alignment { offset_s: centre, error_s: half + sample_s.max(0.02), correlation: top })
}

/// Offsets at which all pulses lie within one stretch of samples without a gap.
struct Places {
    low: f64,
    high: f64,
    /// Mean time between two samples of the stretch.
    sample_s: f64,
}
impl Places {
    fn of(run: &[Point], first_s: f64, last_s: f64) -> Option<Self> {
        let (begin, end) = (run.first()?.t_s, run.last()?.t_s);
        let (low, high) = (begin - first_s, end - last_s);
        let sample_s = ((end - begin) / run.len().max(2) as f64).max(1e-6);
        (end - begin >= last_s - first_s && high >= low).then_some(Self { low, high, sample_s })
    }
}

/// Integral of the samples, so that the mean of any window costs two searches.
struct Sums<'a> {
    samples: &'a [Point],
    until: Vec<f64>,
}
impl<'a> Sums<'a> {
    fn of(samples: &'a [Point]) -> Self {
        let mut until = vec![0.0];
        for w in samples.windows(2) {
            until.push(until.last().copied().unwrap_or(0.0) + f64::midpoint(w[0].value, w[1].value) * (w[1].t_s - w[0].t_s));
        }
        Self { samples, until }
    }
    /// Integral from the first sample to a time; what lies outside counts as the nearest sample.
    fn to(&self, t: f64) -> f64 {
        let after = self.samples.partition_point(|p| p.t_s <= t);
        let Some(i) = after.checked_sub(1) else { return (t - self.samples[0].t_s) * self.samples[0].value };
        let a = self.samples[i];
        let here = self.samples.get(after).map_or(a.value, |b| a.value + (b.value - a.value) * (t - a.t_s) / (b.t_s - a.t_s));
        self.until[i] + f64::midpoint(a.value, here) * (t - a.t_s)
    }
    fn mean(&self, from: f64, to: f64) -> f64 {
        (self.to(to) - self.to(from)) / (to - from)
    }
}

/// Pearson's correlation of watts and busy over small cells of the time around the pulses.
fn correlation(sums: &Sums<'_>, pulses: &[(f64, f64)], (from, to): (f64, f64), offset: f64, cell: f64) -> f64 {
    let cells = ((to - from) / cell).ceil().max(1.0);
    let cell = (to - from) / cells;
    let (mut sx, mut sy, mut sxx, mut syy, mut sxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for i in 0..cells as usize {
        let (begin, end) = (from + i as f64 * cell, from + (i + 1) as f64 * cell);
        let busy: f64 = pulses.iter().map(|p| (p.1.min(end) - p.0.max(begin)).max(0.0)).sum::<f64>() / cell;
        let watts = sums.mean(begin + offset, end + offset);
        (sx, sy, sxx, syy, sxy) = (sx + busy, sy + watts, sxx + busy * busy, syy + watts * watts, sxy + busy * watts);
    }
    let (vx, vy) = (sxx - sx * sx / cells, syy - sy * sy / cells);
    if vx <= 0.0 || vy <= 1e-12 * (syy.abs() + 1e-12) { 0.0 } else { (sxy - sx * sy / cells) / (vx * vy).sqrt() }
}
