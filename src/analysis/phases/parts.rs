//! What a runtime's own profile adds: parts of the phase in which the graph runs.

use bench_backend_api::PhasePart;

use super::{Piece, Stage};

/// What the runtime around the graph adds: ONNX Runtime's Run, or qnn-net-run's input and output.
const AROUND: &str = "runtime";
/// The parts may exceed their whole by this share: they are rounded to microseconds each.
const EXCESS: f64 = 0.005;

/// The executions that a profile has to be about, as the other side timed them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Executed {
    /// Mean time of one execution, of all graphs together, us.
    mean_us: f64,
    /// How many; `None` where they are those of the profile.
    n: Option<u32>,
}
impl Executed {
    /// Adds one execution.
    pub fn add(&mut self, us: f64) {
        let n = self.n.unwrap_or(0) + 1;
        self.mean_us += (us - self.mean_us) / f64::from(n);
        self.n = Some(n);
    }

    /// One execution is one pass through all graphs, whose means the profile itself gave.
    pub fn of_means(us: &[f64]) -> Self {
        Self { mean_us: us.iter().sum(), n: None }
    }
}

/// Splits the phases of which the profile has parts. It is about every execution of the launch, discarded queries too, so that what it gives
/// is shares of a phase. Where it is about another number of executions, or has more time in it than the phase took, nothing is split.
pub fn split(pieces: &mut Vec<Piece>, parts: &[PhasePart], stage: Stage, executed: Executed) {
    let own = || parts.iter().filter(|part| part.stage == stage.as_str() && part.n > 0);
    if executed.mean_us <= 0.0 || own().any(|part| executed.n.is_some_and(|n| n != part.n)) {
        return;
    }
    let mut split = Vec::new();
    for piece in std::mem::take(pieces) {
        let mut means: Vec<(&str, f64, &str)> = Vec::new();
        for part in own().filter(|part| part.of == piece.phase && part.us.is_finite() && part.us >= 0.0) {
            let us = part.us / f64::from(part.n);
            match means.iter_mut().find(|(name, ..)| *name == part.name) {
                Some((_, sum, _)) => *sum += us,
                None => means.push((&part.name, us, &part.source)),
            }
        }
        let total: f64 = means.iter().map(|(_, us, _)| us).sum();
        if let Some((.., source)) = means.first().copied().filter(|_| total <= executed.mean_us * (1.0 + EXCESS)) {
            means.insert(0, (AROUND, (executed.mean_us - total).max(0.0), source));
        } else {
            means.clear();
        }
        let scale = piece.us / executed.mean_us.max(total);
        let below = means.iter().map(|(name, us, source)| Piece {
            phase: format!("{}/{name}", piece.phase),
            us: us * scale,
            method: (*source).to_owned(),
        });
        let below: Vec<Piece> = below.collect();
        split.push(piece);
        split.extend(below);
    }
    *pieces = split;
}
