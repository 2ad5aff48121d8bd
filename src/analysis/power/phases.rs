//! Joules of a prompt token and of a generated token from cells that mix both: a regression over (N_in, N_out) (rule R15).

use thiserror::Error;

use crate::stats;

/// Least-squares coefficients with their 95 % intervals.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The coefficients, in the order of the columns.
    pub coefficients: Vec<f64>,
    /// Standard error of each.
    pub errors: Vec<f64>,
    /// Ends of the 95 % interval of each (Student's t).
    pub intervals: Vec<(f64, f64)>,
    /// Observations less columns.
    pub degrees: usize,
}

/// Why nothing is fitted.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FitError {
    /// Not more observations than columns: the intervals would be nothing.
    #[error("{observations} observations for {columns} coefficients: measure more cells or launches")]
    TooFew {
        /// Rows.
        observations: usize,
        /// Columns.
        columns: usize,
    },
    /// The columns say the same thing.
    #[error("prompt and generated tokens rise together in these cells (condition {condition:.0}): vary them independently")]
    Degenerate {
        /// Condition number of the scaled design.
        condition: f64,
    },
    /// A value that is no number, or rows of different lengths.
    #[error("a value of the design is no number")]
    NotFinite,
}

/// A design in which one column is nearly a multiple of the others turns noise into coefficients.
const MOST_CONDITION: f64 = 30.0;

/// Ordinary least squares of `y` on the columns of `rows`, without an intercept unless a column is 1: normal equations over columns scaled to
/// length 1 (Belsley, Kuh, Welsch 1980: a condition number over 30 is harmful collinearity).
///
/// # Errors
/// Too few observations, a degenerate design, values that are no numbers.
pub fn least_squares(rows: &[Vec<f64>], y: &[f64]) -> Result<Fit, FitError> {
    let columns = rows.first().map_or(0, Vec::len);
    let count = rows.len();
    if count <= columns || columns == 0 || y.len() != count {
        return Err(FitError::TooFew { observations: count, columns });
    }
    if rows.iter().any(|r| r.len() != columns || r.iter().any(|v| !v.is_finite())) || y.iter().any(|v| !v.is_finite()) {
        return Err(FitError::NotFinite);
    }
    let lengths: Vec<f64> = (0..columns).map(|j| rows.iter().map(|r| r[j] * r[j]).sum::<f64>().sqrt()).collect();
    if lengths.contains(&0.0) {
        return Err(FitError::Degenerate { condition: f64::INFINITY });
    }
    let x = |i: usize, j: usize| rows[i][j] / lengths[j];
    let mut gram: Vec<Vec<f64>> =
        (0..columns).map(|a| (0..columns).map(|b| (0..count).map(|i| x(i, a) * x(i, b)).sum()).collect()).collect();
    let inverse = invert(&mut gram.clone()).ok_or(FitError::Degenerate { condition: f64::INFINITY })?;
    // Frobenius norms bound the spectral ones: the square root of their product is at least the condition of the design.
    let norm = |m: &[Vec<f64>]| m.iter().flatten().map(|v| v * v).sum::<f64>().sqrt();
    let condition = (norm(&gram) * norm(&inverse)).sqrt();
    if condition > MOST_CONDITION {
        return Err(FitError::Degenerate { condition });
    }
    gram.clear();
    let moments: Vec<f64> = (0..columns).map(|j| (0..count).map(|i| x(i, j) * y[i]).sum()).collect();
    let scaled: Vec<f64> = (0..columns).map(|a| (0..columns).map(|b| inverse[a][b] * moments[b]).sum()).collect();
    let residual = |i: usize| y[i] - (0..columns).map(|j| x(i, j) * scaled[j]).sum::<f64>();
    let degrees = count - columns;
    let variance = (0..count).map(|i| residual(i).powi(2)).sum::<f64>() / degrees as f64;
    let coefficients: Vec<f64> = (0..columns).map(|j| scaled[j] / lengths[j]).collect();
    let errors: Vec<f64> = (0..columns).map(|j| (variance * inverse[j][j]).sqrt() / lengths[j]).collect();
    let t = stats::student_95(degrees as f64);
    let intervals = coefficients.iter().zip(&errors).map(|(c, e)| (c - t * e, c + t * e)).collect();
    Ok(Fit { coefficients, errors, intervals, degrees })
}

/// Gauss and Jordan with pivots.
fn invert(m: &mut [Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let k = m.len();
    let mut inverse: Vec<Vec<f64>> = (0..k).map(|i| (0..k).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for c in 0..k {
        let pivot = (c..k).max_by(|a, b| m[*a][c].abs().total_cmp(&m[*b][c].abs()))?;
        if m[pivot][c].abs() < 1e-14 {
            return None;
        }
        m.swap(c, pivot);
        inverse.swap(c, pivot);
        let scale = m[c][c];
        for j in 0..k {
            m[c][j] /= scale;
            inverse[c][j] /= scale;
        }
        for r in (0..k).filter(|r| *r != c) {
            let factor = m[r][c];
            for j in 0..k {
                m[r][j] -= factor * m[c][j];
                inverse[r][j] -= factor * inverse[c][j];
            }
        }
    }
    Some(inverse)
}
