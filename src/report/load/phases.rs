//! Where the time of each stage goes.

use std::path::Path;

use super::places::words;
use super::run::keys;
use super::types::Run;
use crate::report::ReportError;
use crate::results::read::read;
use crate::results::schema::PHASES;

/// A part of a stage of a cell: a row of `phases.csv`.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseShare {
    /// `measure` or `profile`.
    pub pass: String,
    /// `load`, `load_cold`, `prefill` or `decode`.
    pub stage: String,
    /// Its name; `a/b` is part b of part a.
    pub phase: String,
    /// Launches behind it.
    pub n: usize,
    /// Milliseconds of one load, prompt or decode step.
    pub ms: f64,
    /// Interval of that median.
    pub interval: Option<(f64, f64)>,
    /// Of the stage, 0 to 1.
    pub share: f64,
    /// Where it comes from.
    pub method: String,
}

/// Reads `phases.csv`, in its order. A run of an older bench has none, and nothing is said.
pub fn phases(dir: &Path, run: &mut Run) -> Result<(), ReportError> {
    let wanted = ["device", "cell", "pass", "stage", "phase", "n", "ms", "ms_lo", "ms_hi", "share", "method"];
    let Some(mut table) = read(dir, &PHASES, &wanted, None)? else { return Ok(()) };
    let keys = keys(&table);
    let [pass, stage, phase, method] = ["pass", "stage", "phase", "method"].map(|name| words(&table, name));
    let [ms, lo, hi, share] = ["ms", "ms_lo", "ms_hi", "share"].map(|name| table.float(name));
    let n = table.int("n");
    for (row, key) in keys.into_iter().enumerate() {
        let (Some(ms), Some(share)) = (ms[row].filter(|ms| *ms >= 0.0), share[row]) else { continue };
        run.phases.entry(key).or_default().push(PhaseShare {
            pass: pass[row].clone(),
            stage: stage[row].clone(),
            phase: phase[row].clone(),
            n: n[row].and_then(|n| usize::try_from(n).ok()).unwrap_or(0),
            ms,
            interval: lo[row].zip(hi[row]).filter(|(lo, hi)| lo <= hi),
            share,
            method: method[row].clone(),
        });
    }
    run.problems.extend(table.complaint());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn rows_come_in_their_order_and_half_ones_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = Run::default();
        phases(dir.path(), &mut run).unwrap();
        assert!(run.phases.is_empty() && run.problems.is_empty(), "a run of an older bench");
        let text = "device,cell,pass,stage,phase,n,ms,ms_lo,ms_hi,share,method\n\
                    p,c,measure,decode,h2d,3,0.5,0.4,0.6,0.25,sums\np,c,measure,decode,execute,1,1.5,,,0.75,sums\np,c,measure,decode,x,1,,,,0.1,sums\n";
        fs::write(dir.path().join(PHASES.file), text).unwrap();
        phases(dir.path(), &mut run).unwrap();
        let found: Vec<_> = run.phases.values().flatten().map(|p| (p.phase.as_str(), p.n, p.ms, p.interval, p.share)).collect();
        assert_eq!(found, [("h2d", 3, 0.5, Some((0.4, 0.6)), 0.25), ("execute", 1, 1.5, None, 0.75)]);
    }
}
