//! Student's t, as far as 95 % intervals need it.

/// The 97.5 % quantile of Student's t, for the whole degrees of freedom below: a little too wide between the table's rows, never too narrow. Infinite
/// under one degree. From any statistics textbook's table.
pub fn student_95(degrees: f64) -> f64 {
    const SMALL: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101,
        2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    match degrees {
        d if d >= 120.0 => 1.980,
        d if d >= 60.0 => 2.000,
        d if d >= 40.0 => 2.021,
        d if d >= 1.0 => SMALL[(d as usize).min(SMALL.len()) - 1],
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A textbook's table with five digits more.
    #[test]
    fn never_too_narrow_and_hardly_too_wide() {
        for (degrees, truth) in
            [(1.0, 12.706_20), (2.0, 4.302_65), (4.0, 2.776_45), (29.0, 2.045_23), (35.0, 2.030_11), (75.0, 1.992_10), (1e6, 1.959_97)]
        {
            let t = student_95(degrees);
            assert!(t >= truth - 0.001 && t <= truth * 1.25, "{degrees}: {t}");
        }
        assert!(student_95(0.9).is_infinite());
        assert!(student_95(f64::NAN).is_infinite());
    }
}
