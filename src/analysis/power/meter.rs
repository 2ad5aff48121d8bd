//! An external meter: a CSV of `t_s,w` in the meter's own seconds, and its clock found by the pulses of load that `bench` gave before the first
//! launch, and after the last one: two places tell how fast that clock runs.

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

/// Where the meter's clock stands against the device's at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alignment {
    /// When: the middle of the pulses in the device's seconds.
    pub at_s: f64,
    /// Meter's seconds minus device's seconds.
    pub offset_s: f64,
    /// By how much that may be off, s.
    pub error_s: f64,
    /// Correlation of watts and load at that offset, up to 1.
    pub correlation: f64,
}

/// The most that a meter's clock is taken to run fast or slow, as a share: allowed for where no second place says how fast it does. A quartz is off by
/// 1e-4 at most, the oscillator of a cheap microcontroller by ten times that; 1e-2 is also how far from the first the second place is looked for.
const DRIFT: f64 = 1e-3;
const MOST_DRIFT: f64 = 1e-2;

/// The meter's clock over a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clock {
    /// Before the first launch.
    pub start: Alignment,
    /// After the last one; `None` where that was not reached or not found.
    pub end: Option<Alignment>,
}
impl Clock {
    /// Finds it by the pulses before the first launch and those after the last one.
    ///
    /// # Errors
    /// As [`align`] with the first ones; the second ones may be missing.
    pub fn find(samples: &[Point], start: &[(f64, f64)], end: &[(f64, f64)]) -> Result<Self, MeterError> {
        let start = align(samples, start, None)?;
        let expected = end.first().map(|p| (start.offset_s, MOST_DRIFT * (p.0 - start.at_s) + MARGIN_S));
        Ok(Self { start, end: align(samples, end, expected).ok() })
    }

    /// Share by which it runs fast, as far as that is known.
    pub fn drift(&self) -> Option<f64> {
        self.end.map(|end| (end.offset_s - self.start.offset_s) / (end.at_s - self.start.at_s))
    }

    /// Meter's seconds minus device's seconds at a time of the device's.
    pub fn offset_s(&self, t_s: f64) -> f64 {
        self.start.offset_s + self.drift().unwrap_or(0.0) * (t_s - self.start.at_s)
    }

    /// The device's seconds of a time of the meter's.
    pub fn device_s(&self, meter_s: f64) -> f64 {
        let Alignment { at_s, offset_s, .. } = self.start;
        at_s + (meter_s - offset_s - at_s) / (1.0 + self.drift().unwrap_or(0.0))
    }

    /// By how much the offset may be off at a time of the device's, s.
    pub fn error_s(&self, t_s: f64) -> f64 {
        let (begin, end) = (self.start, self.end.unwrap_or(self.start));
        let away_s = (begin.at_s - t_s).max(t_s - end.at_s).max(0.0);
        begin.error_s.max(end.error_s) + DRIFT * away_s
    }
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
/// busy and idle (Pearson), refined by the steps of the watts at the pulses' edges. `expected`: an offset, and how far from it to look.
///
/// # Errors
/// No pulse, pulses that are not found or that fit in two places.
pub fn align(samples: &[Point], pulses: &[(f64, f64)], expected: Option<(f64, f64)>) -> Result<Alignment, MeterError> {
    let (Some(first), Some(last)) = (pulses.first(), pulses.last()) else { return Err(MeterError::NoPulse) };
    if samples.is_empty() {
        return Err(MeterError::Empty);
    }
    let (from, to) = (first.0 - MARGIN_S, last.1 + MARGIN_S);
    // Every place at which all pulses are within what the meter saw.
    let (least, most) = expected.map_or((f64::NEG_INFINITY, f64::INFINITY), |(offset, around)| (offset - around, offset + around));
    let runs = samples.chunk_by(|a, b| b.t_s - a.t_s <= MOST_GAP_S);
    let places: Vec<Places> = runs.filter_map(|run| Places::of(run, (first.0, last.1), (least, most))).collect();
    if places.is_empty() {
        return Err(MeterError::NotFound { best: 0.0, needed: FOUND });
    }
    let shortest = pulses.iter().map(|p| p.1 - p.0).fold(f64::INFINITY, f64::min);
    let sums = Sums::of(samples);
    // Coarse: an eighth of the shortest pulse, in the step of the offset and in what watts and load are compared over.
    let load = Load::of(pulses, (from, to), shortest / 8.0);
    let step = load.cell_s;
    let scores: Vec<(f64, f64, f64)> = places.iter().flat_map(|p| load.slide(&sums, p)).collect();
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
    let load = Load::of(pulses, (from, to), finest);
    // Finer around the best place, down to a fraction of a sample; the middle of all that are as good.
    let (mut centre, mut around) = (best.0, step);
    let (mut half, mut top) = (step, best.1);
    while around > finest / 20.0 {
        let fine: Vec<(f64, f64)> = (-20..=20).map(|i| centre + f64::from(i) * around / 20.0).map(|o| (o, load.at(&sums, o))).collect();
        top = fine.iter().map(|s| s.1).fold(f64::NEG_INFINITY, f64::max);
        let good: Vec<f64> = fine.iter().filter(|s| s.1 >= top - 1e-6).map(|s| s.0).collect();
        let (a, b) = (good.first().copied().unwrap_or(centre), good.last().copied().unwrap_or(centre));
        (centre, half, around) = (f64::midpoint(a, b), (b - a) / 2.0, around / 8.0);
    }
    Ok(Alignment { at_s: f64::midpoint(first.0, last.1), offset_s: centre, error_s: half + sample_s.max(0.02), correlation: top })
}

/// Offsets at which all pulses lie within one stretch of samples without a gap.
struct Places {
    low: f64,
    high: f64,
    /// Mean time between two samples of the stretch.
    sample_s: f64,
}
impl Places {
    fn of(run: &[Point], (first_s, last_s): (f64, f64), (least, most): (f64, f64)) -> Option<Self> {
        let (begin, end) = (run.first()?.t_s, run.last()?.t_s);
        let (low, high) = ((begin - first_s).max(least), (end - last_s).min(most));
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

/// The load around the pulses in small cells of time: the share of each that is busy.
struct Load {
    from_s: f64,
    cell_s: f64,
    busy: Vec<f64>,
}
impl Load {
    fn of(pulses: &[(f64, f64)], (from, to): (f64, f64), cell_s: f64) -> Self {
        let cells = ((to - from) / cell_s).ceil().max(1.0);
        let cell_s = (to - from) / cells;
        let share = |i: usize| {
            let (begin, end) = (from + i as f64 * cell_s, from + (i + 1) as f64 * cell_s);
            pulses.iter().map(|p| (p.1.min(end) - p.0.max(begin)).max(0.0)).sum::<f64>() / cell_s
        };
        Self { from_s: from, cell_s, busy: (0..cells as usize).map(share).collect() }
    }

    /// Mean watts of as many cells from an offset on.
    fn watts(&self, sums: &Sums<'_>, offset: f64, cells: usize) -> Vec<f64> {
        let begin = |i: usize| offset + self.from_s + i as f64 * self.cell_s;
        (0..cells).map(|i| sums.mean(begin(i), begin(i + 1))).collect()
    }

    /// Correlation of the watts with it at an offset.
    fn at(&self, sums: &Sums<'_>, offset: f64) -> f64 {
        correlation(&self.busy, &self.watts(sums, offset, self.busy.len()))
    }

    /// The same at every offset of a place, a cell apart: offset, correlation, and time between two samples there.
    fn slide(&self, sums: &Sums<'_>, place: &Places) -> Vec<(f64, f64, f64)> {
        let steps = ((place.high - place.low) / self.cell_s).floor() as usize;
        let watts = self.watts(sums, place.low, steps + self.busy.len());
        let offset = |i: usize| place.low + i as f64 * self.cell_s;
        watts.windows(self.busy.len()).enumerate().map(|(i, own)| (offset(i), correlation(&self.busy, own), place.sample_s)).collect()
    }
}

/// Pearson's correlation; 0 for watts that do not change.
fn correlation(busy: &[f64], watts: &[f64]) -> f64 {
    let n = busy.len() as f64;
    let (mut sx, mut sy, mut sxx, mut syy, mut sxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (x, y) in busy.iter().zip(watts) {
        (sx, sy, sxx, syy, sxy) = (sx + x, sy + y, sxx + x * x, syy + y * y, sxy + x * y);
    }
    let (vx, vy) = (sxx - sx * sx / n, syy - sy * sy / n);
    if vx <= 0.0 || vy <= 1e-12 * (syy.abs() + 1e-12) { 0.0 } else { (sxy - sx * sy / n) / (vx * vy).sqrt() }
}
