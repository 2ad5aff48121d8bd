//! Where the time of each stage goes.

use std::path::Path;

use super::run::keys;
use super::types::{PhaseShare, Run};
use crate::report::ReportError;
use crate::results::read::read;
use crate::results::schema::PHASES;

/// Reads `phases.csv`, in its order. A run of an older bench has none, and nothing is said.
pub fn phases(dir: &Path, run: &mut Run) -> Result<(), ReportError> {
    let wanted = ["device", "cell", "pass", "stage", "phase", "n", "ms", "ms_lo", "ms_hi", "share", "method"];
    let Some(mut table) = read(dir, &PHASES, &wanted, None)? else { return Ok(()) };
    let keys = keys(&table);
    let [pass, stage, phase, method] = ["pass", "stage", "phase", "method"].map(|name| table.text(name));
    let [ms, lo, hi, share] = ["ms", "ms_lo", "ms_hi", "share"].map(|name| table.float(name));
    let n = table.int("n");
    for (row, key) in keys.into_iter().enumerate() {
        let (Some(ms), Some(share)) = (ms[row], share[row]) else { continue };
        let word = |column: &[Option<String>]| column[row].clone().unwrap_or_default();
        run.phases.entry(key).or_default().push(PhaseShare {
            pass: word(&pass),
            stage: word(&stage),
            phase: word(&phase),
            n: n[row].and_then(|n| usize::try_from(n).ok()).unwrap_or(0),
            ms,
            interval: lo[row].zip(hi[row]).filter(|(lo, hi)| lo <= hi),
            share,
            method: word(&method),
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
