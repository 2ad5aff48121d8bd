//! A line over the nights, small enough for a row of a table.

use plotters::{
    prelude::{Circle, PathElement},
    style::Color,
};

use super::canvas::{GRID, INK, MUTED, drawn, rgb, svg};
use super::palette::VERDICTS;
use crate::report::ReportError;

const WIDTH: i32 = 240;
const HEIGHT: i32 = 36;
/// So that the last point and half a line's width are inside.
const EDGE: i32 = 5;
/// Noise looks like noise: the scale spans at least so much of its middle value.
const LEAST_SPAN: f64 = 0.05;

/// Draws a value for each night, `None` where there is none. `steps` are the nights at which a new level begins, `verdict` colours the last one.
pub fn spark(values: &[Option<f64>], steps: &[usize], verdict: &str, name: &str) -> Result<String, ReportError> {
    let (low, high) = values.iter().flatten().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), value| (lo.min(*value), hi.max(*value)));
    let middle = f64::midpoint(low, high);
    let span = (high - low).max(LEAST_SPAN * middle.abs()).max(f64::MIN_POSITIVE);
    let x = |night: f64| EDGE + (night / (values.len().max(2) - 1) as f64 * f64::from(WIDTH - 2 * EDGE)).round() as i32;
    let y = |value: f64| HEIGHT / 2 - ((value - middle) / span * f64::from(HEIGHT - 2 * EDGE)).round() as i32;
    let at = |night: usize| Some((x(night as f64), y(values[night]?)));
    svg(WIDTH.cast_unsigned(), HEIGHT.cast_unsigned(), name, |sheet| {
        drawn(sheet.draw(&PathElement::new(vec![(EDGE, HEIGHT - 1), (WIDTH - EDGE, HEIGHT - 1)], GRID.stroke_width(1))))?;
        for step in steps {
            let between = x(*step as f64 - 0.5);
            drawn(sheet.draw(&PathElement::new(vec![(between, 0), (between, HEIGHT)], MUTED.stroke_width(1))))?;
        }
        // A night without a figure is a gap.
        let nights: Vec<usize> = (0..values.len()).collect();
        for piece in nights.chunk_by(|a, b| at(*a).is_some() && at(*b).is_some()) {
            let points: Vec<(i32, i32)> = piece.iter().filter_map(|night| at(*night)).collect();
            match points[..] {
                [] => {}
                [alone] => drawn(sheet.draw(&Circle::new(alone, 1, INK.filled())))?,
                _ => drawn(sheet.draw(&PathElement::new(points, INK.stroke_width(1))))?,
            }
        }
        if let Some(last) = nights.last().and_then(|night| at(*night)) {
            let paint = VERDICTS.iter().find(|(word, _)| *word == verdict).map_or(INK, |(_, swatch)| rgb(*swatch));
            drawn(sheet.draw(&Circle::new(last, 4, paint.filled())))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nights_gaps_and_steps_are_where_they_belong() {
        let values = [Some(10.0), Some(10.0), None, Some(20.0), Some(20.0)];
        let drawn = spark(&values, &[3], "regressed", "a <b>").expect("a drawing");
        // 230 pixels over 4 nights; the scale is 10 to 20 over 26 pixels.
        assert!(drawn.contains("points=\"5,31 63,31") && drawn.contains("points=\"178,5 235,5"), "{drawn}");
        assert!(drawn.contains("points=\"149,0 149,36"), "the step lies between the nights: {drawn}");
        assert!(drawn.contains(r#"cx="235" cy="5" r="4""#) && drawn.contains(r#"aria-label="a &lt;b&gt;""#), "{drawn}");
    }

    #[test]
    fn little_and_flat_series_can_be_drawn() {
        for values in [&[][..], &[None], &[Some(3.0)], &[Some(0.0), Some(0.0)], &[None, Some(1e99), None], &[Some(5.0), Some(5.0)]] {
            let drawn = spark(values, &[], "", "n").expect("a drawing");
            assert!(drawn.ends_with("</svg>") && !drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        }
        let noise = spark(&[Some(100.0), Some(100.1)], &[], "", "n").expect("a drawing");
        assert!(noise.contains("points=\"5,18 235,18"), "a thousandth is flat: {noise}");
    }
}
