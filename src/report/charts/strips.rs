//! Several quantities of one launch below each other on one time axis.

use plotters::{
    element::DashedPathElement,
    prelude::{PathElement, Rectangle, Text},
    style::{
        Color, RGBColor,
        text_anchor::{HPos, VPos},
    },
};

use super::axis::Axis;
use super::canvas::{INK, Margin, Sheet, drawn, plane, rgb, svg, text};
use super::palette::{PARTS, PHASES};
use crate::report::ReportError;

/// A quantity with an axis of its own.
#[derive(Debug, Clone, Default)]
pub struct Strip {
    /// What it shows, with the unit.
    pub title: String,
    /// Its lines; few, since each has its name beside it.
    pub lines: Vec<Line>,
    /// Lengths begin at zero, positions (temperatures) need not.
    pub from_zero: bool,
}

/// One line.
#[derive(Debug, Clone, Default)]
pub struct Line {
    /// Written at its end.
    pub label: String,
    /// Number of its colour in [`PARTS`].
    pub part: usize,
    /// A limit, not a reading.
    pub dashed: bool,
    /// Seconds and values, in order.
    pub points: Vec<(f64, f64)>,
}

/// A stretch of time, as the background shows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Number of its phase in [`PHASES`].
    pub phase: usize,
    /// Seconds.
    pub from: f64,
    /// Seconds.
    pub to: f64,
}

const WIDTH: u32 = 900;
const PLANE: u32 = 92;
/// A title above each plane.
const ABOVE: u32 = 34;
/// Tick labels and title of the time axis.
const BELOW: u32 = 40;
const LEFT: u32 = 52;
/// Names of the lines.
const RIGHT: u32 = 118;
const LINE: i32 = 13;

/// Draws the strips over `seconds`.
pub fn strips(strips: &[Strip], spans: &[Span], seconds: f64, x_title: &str, name: &str) -> Result<String, ReportError> {
    let height = strips.len() as u32 * (ABOVE + PLANE) + BELOW;
    svg(WIDTH, height, name, |sheet| {
        for (at, strip) in strips.iter().enumerate() {
            let top = at as u32 * (ABOVE + PLANE) + ABOVE;
            // One time axis for all: it is labelled at the bottom.
            let title = if at + 1 == strips.len() { x_title } else { "" };
            draw(
                sheet,
                strip,
                spans,
                &Axis::until(seconds, 8, title),
                Margin { left: LEFT, right: RIGHT, top, bottom: height - top - PLANE },
            )?;
        }
        Ok(())
    })
}

fn draw(sheet: &Sheet, strip: &Strip, spans: &[Span], x: &Axis, margin: Margin) -> Result<(), ReportError> {
    let values = || strip.lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let (least, most) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), value| (lo.min(value), hi.max(value)));
    let y = if strip.from_zero || !least.is_finite() {
        Axis::from_zero(most, 3, &strip.title)
    } else {
        Axis::around(least, most, 3, &strip.title)
    };
    let (top, bottom) = (margin.top.cast_signed(), (margin.top + PLANE).cast_signed());
    let (left, right) = (LEFT.cast_signed(), (WIDTH - RIGHT).cast_signed());
    let at = |seconds: f64| {
        let share = ((x.at(seconds) - x.range().start) / (x.range().end - x.range().start)).clamp(0.0, 1.0);
        left + (share * f64::from(right - left)).round() as i32
    };
    for span in spans {
        let fill = rgb(PHASES[span.phase % PHASES.len()].1).filled();
        drawn(sheet.draw(&Rectangle::new([(at(span.from), top), (at(span.to).max(at(span.from) + 1), bottom)], fill)))?;
    }
    let plane = plane(sheet, margin, x, Ok(&y))?;
    let mut labels = Vec::new();
    for line in &strip.lines {
        let paint = rgb(PARTS[line.part % PARTS.len()]);
        let path: Vec<(f64, f64)> = line.points.iter().map(|(s, value)| (x.at(*s), y.at(*value))).collect();
        let Some(last) = path.last().copied() else { continue };
        if line.dashed {
            drawn(plane.draw(&DashedPathElement::new(path, 5, 4, paint.stroke_width(1))))?;
        } else if path.len() > 1 {
            drawn(plane.draw(&PathElement::new(path, paint.stroke_width(2))))?;
        } else {
            drawn(
                plane.draw(&PathElement::new(
                    vec![last, (last.0 + (x.range().end - x.range().start) / 200.0, last.1)],
                    paint.stroke_width(2),
                )),
            )?;
        }
        labels.push((plane.map_coordinate(&last).1, &line.label, paint));
    }
    for (y, label, paint) in apart(labels, top, bottom) {
        drawn(sheet.draw(&PathElement::new(vec![(right + 5, y), (right + 13, y)], paint.stroke_width(3))))?;
        drawn(sheet.draw(&Text::new(label.clone(), (right + 17, y), text(11.0, INK, HPos::Left, VPos::Center))))?;
    }
    Ok(())
}

/// Labels at the heights of their lines' ends, moved so that none covers another.
fn apart(mut labels: Vec<(i32, &String, RGBColor)>, top: i32, bottom: i32) -> Vec<(i32, &String, RGBColor)> {
    labels.sort_by_key(|(y, ..)| *y);
    let mut free = top + LINE / 2;
    for label in &mut labels {
        label.0 = label.0.max(free);
        free = label.0 + LINE;
    }
    let mut free = bottom;
    for label in labels.iter_mut().rev() {
        label.0 = label.0.min(free);
        free = label.0 - LINE;
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_apart_and_in_their_order() {
        let names: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let at = |ys: [i32; 4]| apart(ys.into_iter().zip(&names).map(|(y, name)| (y, name, INK)).collect(), 0, 100);
        let places = |ys| at(ys).iter().map(|(y, ..)| *y).collect::<Vec<_>>();
        assert_eq!(places([10, 40, 60, 90]), [10, 40, 60, 90]);
        assert_eq!(places([50, 50, 50, 50]), [50, 63, 76, 89]);
        assert_eq!(places([99, 99, 99, 99]), [61, 74, 87, 100]);
    }

    #[test]
    fn it_can_be_drawn_of_little_and_of_nothing() {
        let line = |points: &[(f64, f64)], dashed| Line { label: "<cpu>".into(), part: 3, dashed, points: points.to_vec() };
        let span = Span { phase: 1, from: 0.5, to: 0.5 };
        for lines in [vec![], vec![line(&[], false)], vec![line(&[(0.0, 40.0)], false), line(&[(0.0, -3.0), (9.0, 7.0)], true)]] {
            for from_zero in [true, false] {
                let strip = Strip { title: "t".into(), lines: lines.clone(), from_zero };
                let drawn = strips(&[strip.clone(), strip], &[span], 10.0, "s", "n").expect("a drawing");
                assert!(!drawn.contains("NaN") && !drawn.contains("inf") && !drawn.contains("<cpu>"), "{drawn}");
            }
        }
    }
}
