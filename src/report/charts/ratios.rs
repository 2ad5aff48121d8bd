//! Changes with their intervals, one row a cell, around a line at no change.

use plotters::{
    prelude::{Circle, EmptyElement, PathElement, Polygon, Text},
    style::{
        Color, RGBColor,
        text_anchor::{HPos, VPos},
    },
};

use super::axis::Axis;
use super::bars::short;
use super::canvas::{INK, MUTED, Margin, drawn, plane, rgb, svg, text};
use super::palette::VERDICTS;
use crate::report::ReportError;

/// One row.
#[derive(Debug, Clone)]
pub struct Point {
    /// Name at the left.
    pub label: String,
    /// B over A.
    pub ratio: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// One of [`VERDICTS`]; written at the right, so that nobody needs the colour.
    pub verdict: &'static str,
    /// A mean over the rows.
    pub whole: bool,
}

const WIDTH: u32 = 900;
const ROW: u32 = 20;
const LABEL_CHARS: usize = 52;

/// Draws the rows. Changes are in percent of A: 0 is none.
pub fn ratios(rows: &[Point], axis_title: &str, name: &str) -> Result<String, ReportError> {
    let longest = rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0).min(LABEL_CHARS) as u32;
    let margin = Margin { left: 18 + longest * 7, right: 88, top: 6, bottom: 44 };
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let values = rows.iter().flat_map(|row| {
        let (lo, hi) = row.interval.unwrap_or((row.ratio, row.ratio));
        [percent(lo), percent(row.ratio), percent(hi)]
    });
    let (least, most) = values.filter(|value| value.is_finite()).fold((0.0_f64, 0.0_f64), |(lo, hi), value| (lo.min(value), hi.max(value)));
    let x = Axis::signed(least, most, 8, axis_title);
    let inside = rows.len() as u32 * ROW;
    svg(WIDTH, margin.top + inside.max(ROW) + margin.bottom, name, |sheet| {
        let plane = plane(sheet, margin, &x, Err(inside.max(ROW) as usize))?;
        drawn(plane.draw(&PathElement::new(vec![(0.0, 0.0), (0.0, f64::from(inside.max(ROW)))], INK.stroke_width(2))))?;
        for (at, row) in rows.iter().enumerate() {
            let middle = (at as f64 + 0.5) * f64::from(ROW);
            let paint = paint(row.verdict);
            if let Some((lo, hi)) = row.interval {
                let (lo, hi) = (percent(lo), percent(hi));
                let whisker =
                    [((lo, middle), (hi, middle)), ((lo, middle - 3.0), (lo, middle + 3.0)), ((hi, middle - 3.0), (hi, middle + 3.0))];
                for (from, to) in whisker {
                    drawn(plane.draw(&PathElement::new(vec![from, to], paint.stroke_width(2))))?;
                }
            }
            let here = (percent(row.ratio), middle);
            if row.whole {
                let diamond = EmptyElement::at(here) + Polygon::new(vec![(-7, 0), (0, -6), (7, 0), (0, 6)], paint.filled());
                drawn(plane.draw(&diamond))?;
            } else {
                drawn(plane.draw(&(EmptyElement::at(here) + Circle::new((0, 0), 4, paint.filled()))))?;
            }
            let (start, end) = (x.range().start, x.range().end);
            let label = EmptyElement::at((start, middle))
                + Text::new(short(&row.label, LABEL_CHARS), (-8, 0), text(11.5, INK, HPos::Right, VPos::Center));
            drawn(plane.draw(&label))?;
            let word = EmptyElement::at((end, middle)) + Text::new(row.verdict, (10, 0), text(11.0, MUTED, HPos::Left, VPos::Center));
            drawn(plane.draw(&word))?;
        }
        Ok(())
    })
}

fn paint(verdict: &str) -> RGBColor {
    VERDICTS.iter().find(|(name, _)| *name == verdict).map_or(MUTED, |(_, swatch)| rgb(*swatch))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(label: &str, ratio: f64, interval: Option<(f64, f64)>) -> Point {
        Point { label: label.into(), ratio, interval, verdict: "regressed", whole: false }
    }

    #[test]
    fn hostile_labels_are_escaped() {
        let drawn = ratios(&[point("<script>alert(1)</script>", 1.1, Some((1.0, 1.2)))], "%", "<b>").expect("a drawing");
        assert!(!drawn.contains("<script") && drawn.contains("&lt;script&gt;") && drawn.contains(r#"aria-label="&lt;b&gt;""#));
    }

    #[test]
    fn nothing_no_change_and_no_interval_can_be_drawn() {
        for rows in [vec![], vec![point("a", 1.0, None)], vec![point("a", 1e9, Some((0.0, 1e12)))]] {
            let drawn = ratios(&rows, "%", "n").expect("a drawing");
            assert!(drawn.ends_with("</svg>") && !drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        }
    }
}
