//! Lines over a plane: points with intervals, distributions, values over time.

use plotters::{
    element::DashedPathElement,
    prelude::{Circle, PathElement, Polygon, Rectangle},
    style::Color,
};

use super::axis::Axis;
use super::canvas::{Margin, Plane, drawn, plane, rgb, svg};
use super::palette::{DASHES, STYLES, Swatch};
use crate::report::ReportError;

/// One line.
#[derive(Debug, Clone, Default)]
pub struct Curve {
    /// Colour of its backend.
    pub colour: Swatch,
    /// Dashes of its line and shape of its markers: its quantisation.
    pub style: usize,
    /// Points in order of x.
    pub points: Vec<(f64, f64)>,
    /// Ends of each point's interval, where there are any; as many as points, or none.
    pub intervals: Vec<Option<(f64, f64)>>,
}

/// What kind of plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plot {
    /// Few points with markers and intervals; y from zero, x ticked at the points' own values and logarithmic where they span much.
    Lengths,
    /// Per cent of values at or under x; x logarithmic where the values span much.
    Shares,
    /// y from zero over seconds.
    Time,
}

const WIDTH: u32 = 380;
const HEIGHT: u32 = 250;
const MARGIN: Margin = Margin { left: 44, right: 12, top: 28, bottom: 42 };

/// Draws the lines. The titles name the units.
pub fn curves(lines: &[Curve], plot: Plot, x_title: &str, y_title: &str, name: &str) -> Result<String, ReportError> {
    let xs = || lines.iter().flat_map(|line| line.points.iter().map(|point| point.0));
    let ys =
        lines.iter().flat_map(|line| line.points.iter().map(|point| point.1).chain(line.intervals.iter().flatten().map(|ends| ends.1)));
    let (least, most) = xs().fold((f64::INFINITY, 0.0_f64), |(lo, hi), x| (lo.min(x), hi.max(x)));
    let top = ys.fold(0.0, f64::max);
    let x = match plot {
        Plot::Lengths => {
            let mut lengths: Vec<f64> = xs().collect();
            lengths.sort_by(f64::total_cmp);
            lengths.dedup();
            if most / least > 8.0 { Axis::logarithmic_at(&lengths, x_title) } else { Axis::from_zero_at(&lengths, x_title) }
        }
        Plot::Shares if least > 0.0 && most / least > 4.0 => Axis::logarithmic(least, most, x_title),
        Plot::Shares if least > 0.0 && least.is_finite() => Axis::around(least, most, 4, x_title),
        Plot::Shares | Plot::Time => Axis::from_zero(most, 6, x_title),
    };
    let y = if plot == Plot::Shares { Axis::from_zero(100.0, 4, y_title) } else { Axis::from_zero(top, 5, y_title) };
    svg(WIDTH, HEIGHT, name, |sheet| {
        let plane = plane(sheet, MARGIN, &x, Ok(&y))?;
        for line in lines {
            let paint = rgb(line.colour);
            let path: Vec<(f64, f64)> = line.points.iter().map(|(px, py)| (x.at(*px), y.at(*py))).collect();
            if path.len() > 1 {
                match DASHES[line.style % STYLES] {
                    (_, 0) => drawn(plane.draw(&PathElement::new(path.clone(), paint.stroke_width(2))))?,
                    (dash, gap) => drawn(plane.draw(&DashedPathElement::new(path.clone(), dash, gap, paint.stroke_width(2))))?,
                }
            }
            for (at, ends) in path.iter().zip(&line.intervals) {
                if let Some((lo, hi)) = ends {
                    drawn(plane.draw(&PathElement::new(vec![(at.0, y.at(*lo)), (at.0, y.at(*hi))], paint.stroke_width(2))))?;
                }
            }
            match plot {
                Plot::Lengths => path.iter().try_for_each(|at| mark(&plane, *at, line.colour, line.style))?,
                // A marker at each quartile, or at a few moments, tells lines apart without colour.
                Plot::Shares | Plot::Time => {
                    (1..4)
                        .filter_map(|quarter| path.get(path.len() * quarter / 4))
                        .try_for_each(|at| mark(&plane, *at, line.colour, line.style))?;
                }
            }
        }
        Ok(())
    })
}

/// A marker in a backend's colour and a quantisation's shape.
pub fn mark(plane: &Plane, at: (f64, f64), swatch: Swatch, style_index: usize) -> Result<(), ReportError> {
    let style = rgb(swatch).filled();
    let (x, y) = plane.map_coordinate(&at);
    let sheet = plane.strip_coord_spec();
    // `strip_coord_spec` keeps pixels of the whole drawing.
    match style_index % STYLES {
        0 => drawn(sheet.draw(&Circle::new((x, y), 4, style))),
        1 => drawn(sheet.draw(&Rectangle::new([(x - 4, y - 4), (x + 4, y + 4)], style))),
        2 => drawn(sheet.draw(&Polygon::new(vec![(x, y - 5), (x + 5, y + 4), (x - 5, y + 4)], style))),
        _ => drawn(sheet.draw(&Polygon::new(vec![(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)], style))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_can_be_drawn_of_little_and_of_nothing() {
        let one = Curve { points: vec![(32.0, 5.0)], intervals: vec![Some((4.0, 6.0))], ..Curve::default() };
        let dashed = Curve { style: 1, points: vec![(32.0, 5.0), (32.0, 5.0), (64.0, 9.0)], ..Curve::default() };
        for plot in [Plot::Lengths, Plot::Shares, Plot::Time] {
            for lines in [&[] as &[Curve], std::slice::from_ref(&one), std::slice::from_ref(&dashed)] {
                let drawn = curves(lines, plot, "x", "y", "n").expect("a drawing");
                assert!(drawn.starts_with("<svg class=\"chart\"") && !drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
            }
        }
    }
}
