//! Student's t: its quantiles, and the probability of what lies beyond one.

/// Degrees of freedom from which t is taken for normal: the quantile is off by 2e-6 there.
const AS_GOOD_AS_NORMAL: f64 = 1e6;

/// Quantile of Student's t at `p` within 0..1, for degrees of freedom that need not be whole; infinite degrees give the normal quantile.
/// Infinite where nothing can be said: under
/// one degree, and for a `p` outside.
pub fn student(p: f64, degrees: f64) -> f64 {
    if degrees.is_nan() || degrees < 1.0 || !(p > 0.0 && p < 1.0) {
        return f64::INFINITY;
    }
    let (tail, degrees) = (p.min(1.0 - p), degrees.min(AS_GOOD_AS_NORMAL));
    if tail > 0.499_999 {
        return 0.0;
    }
    // Newton's steps for the logarithm of the tail as a function of the logarithm of t, where it is close to a line and bends one way only.
    let scale = (ln_gamma(f64::midpoint(degrees, 1.0)) - ln_gamma(degrees / 2.0)).exp() / (degrees * std::f64::consts::PI).sqrt();
    let mut t: f64 = 2.0;
    for _ in 0..50 {
        let found = beyond(t, degrees);
        let density = scale * (1.0 + t * t / degrees).powf(-f64::midpoint(degrees, 1.0));
        let step = ((found / tail).ln() * found / (density * t)).clamp(-3.0, 3.0);
        t *= step.exp();
        if step.abs() < 1e-13 {
            break;
        }
    }
    if p < 0.5 { -t } else { t }
}

/// The 97.5 % quantile: what a 95 % interval takes of a standard error.
pub fn student_95(degrees: f64) -> f64 {
    student(0.975, degrees)
}

/// Probability that a value of Student's t is over `t`; 1 where nothing can be said.
pub fn beyond(t: f64, degrees: f64) -> f64 {
    if t.is_nan() || degrees.is_nan() || degrees < 1.0 {
        return 1.0;
    }
    let degrees = degrees.min(AS_GOOD_AS_NORMAL);
    let half = incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t)) / 2.0;
    if t < 0.0 { 1.0 - half } else { half }
}

/// Regularised incomplete beta function by its continued fraction (Abramowitz and Stegun 26.5.8, evaluated after Lentz).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x >= 1.0 { 1.0 } else { 0.0 };
    }
    // The fraction converges fast on this side of the mean only; the other is its complement.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let kept = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut over, mut under) = (1.0, 1.0 / kept(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = under;
    for step in (1..=1_000).map(f64::from) {
        let twice = a + 2.0 * step;
        for term in [step * (b - step) * x / ((twice - 1.0) * twice), -(a + step) * (a + b + step) * x / (twice * (twice + 1.0))] {
            under = 1.0 / kept(1.0 + term * under);
            over = kept(1.0 + term / over);
            fraction *= under * over;
        }
        if (under * over - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp() * fraction / a
}

/// Logarithm of the gamma function for values above 0: Stirling's series from 10 on, by recurrence below it.
fn ln_gamma(mut x: f64) -> f64 {
    let mut below = 0.0;
    while x < 10.0 {
        below += x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series = (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1_260.0 - 1.0 / (1_680.0 * square)) / square) / square) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_scipy() {
        // scipy.stats.t.ppf(p, degrees), SciPy 1.17.1.
        for (p, degrees, wanted) in [
            (0.6, 1.0, 0.324_919_696_232_906_34),
            (0.6, 3.7, 0.272_164_464_292_069_5),
            (0.6, 5_000.0, 0.253_360_583_969_231_83),
            (0.95, 2.0, 2.919_985_580_353_725),
            (0.95, 38.5, 1.685_407_611_695_840_3),
            (0.975, 1.0, 12.706_204_736_174_694),
            (0.975, 5.0, 2.570_581_835_636_314_5),
            (0.975, 120.0, 1.979_930_405_082_440_2),
            (0.995, 3.7, 4.869_252_253_227_826),
            (0.995, 29.0, 2.756_385_903_670_605),
            (0.9995, 1.0, 636.619_248_768_789_7),
            (0.9995, 29.0, 3.659_405_019_466_374_8),
            (0.9995, 5_000.0, 3.292_473_723_370_882_5),
        ] {
            let found = student(p, degrees);
            assert!((found - wanted).abs() <= 1e-9 * wanted.abs(), "{p} {degrees}: {found} is not {wanted}");
            assert!((beyond(found, degrees) - (1.0 - p)).abs() < 1e-12);
            assert!((student(1.0 - p, degrees) + found).abs() <= 1e-9 * wanted.abs());
        }
        assert!((student_95(f64::INFINITY) - 1.959_963_984_540_054).abs() < 3e-5);
        assert!((beyond(-1.0, 3.0) - 0.804_498_890_522_114_8).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_known_under_one_degree() {
        for (p, degrees) in [(0.975, 0.9), (0.975, f64::NAN), (1.0, 5.0), (0.0, 5.0), (f64::NAN, 5.0)] {
            assert!(student(p, degrees).is_infinite(), "{p} {degrees}");
        }
        assert!((beyond(3.0, 0.5) - 1.0).abs() < f64::EPSILON && (beyond(f64::NAN, 5.0) - 1.0).abs() < f64::EPSILON);
    }
}
