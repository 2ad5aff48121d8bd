//! The roof of a memory: decode rates over what a step moves, both logarithmic, so that peak bandwidth over bytes is a straight line.

use plotters::{
    prelude::{Circle, PathElement, Text},
    style::{
        Color,
        text_anchor::{HPos, VPos},
    },
};

use super::axis::Axis;
use super::bars::short;
use super::canvas::{INK, Margin, drawn, plane, rgb, svg, text};
use super::curves::mark;
use super::palette::Swatch;
use crate::report::ReportError;

/// One cell.
#[derive(Debug, Clone)]
pub struct Dot {
    /// Colour of its backend.
    pub colour: Swatch,
    /// Shape: its quantisation.
    pub style: usize,
    /// 10^6 bytes a token.
    pub mb: f64,
    /// Tokens a second.
    pub tok_s: f64,
    /// A trace counted its traffic: drawn with a ring.
    pub ringed: bool,
}

const WIDTH: u32 = 900;
const HEIGHT: u32 = 330;
const MARGIN: Margin = Margin { left: 56, right: 24, top: 34, bottom: 44 };

/// Draws dots under a line for each peak in GB/s.
pub fn roofline(dots: &[Dot], peaks: &[f64], name: &str) -> Result<String, ReportError> {
    let ends =
        |values: &mut dyn Iterator<Item = f64>| values.fold((f64::INFINITY, 0.0_f64), |(lo, hi), value| (lo.min(value), hi.max(value)));
    let (least, most) = ends(&mut dots.iter().map(|dot| dot.mb));
    // Room at both sides, so that the line has a few ticks.
    let (least, most) = (least / 2.4, most * 2.4);
    let rate = |peak: f64, mb: f64| peak * 1e3 / mb;
    let roofs = peaks.iter().flat_map(|peak| [rate(*peak, least), rate(*peak, most)]);
    let (slow, fast) = ends(&mut dots.iter().map(|dot| dot.tok_s).chain(roofs));
    let x = Axis::logarithmic(least, most, "MB a token, at least");
    let y = Axis::logarithmic(slow, fast, "decode, tokens per second");
    svg(WIDTH, HEIGHT, name, |sheet| {
        let plane = plane(sheet, MARGIN, &x, Ok(&y))?;
        for peak in peaks {
            let [from, to] = [least, most].map(|mb| (x.at(mb), y.at(rate(*peak, mb))));
            drawn(plane.draw(&PathElement::new(vec![from, to], INK.stroke_width(2))))?;
            let (left, top) = plane.map_coordinate(&from);
            let words = short(&format!("{peak:.1} GB/s"), 16);
            drawn(plane.strip_coord_spec().draw(&Text::new(words, (left + 14, top - 2), text(11.0, INK, HPos::Left, VPos::Center))))?;
        }
        for dot in dots {
            let at = (x.at(dot.mb), y.at(dot.tok_s));
            mark(&plane, at, dot.colour, dot.style)?;
            if dot.ringed {
                let ring = Circle::new(plane.map_coordinate(&at), 9, rgb(dot.colour).stroke_width(2));
                drawn(plane.strip_coord_spec().draw(&ring))?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_at_the_roof_lies_on_the_line_and_half_of_it_below() {
        let dot = |tok_s| Dot { colour: Swatch::default(), style: 0, mb: 2000.0, tok_s, ringed: false };
        // 76.8 GB/s over 2 GB a token.
        let drawn = roofline(&[dot(38.4), dot(19.2)], &[76.8], "<n>").expect("a drawing");
        let heights: Vec<f64> = drawn
            .split("<circle ")
            .skip(1)
            .map(|part| part.split(" cy=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("cy").parse().expect("a number"))
            .collect();
        let line =
            drawn.split("<polyline ").find(|part| part.contains("stroke-width=\"2\"") && part.contains("#1B2533")).expect("the roof");
        let points = line.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("points");
        let ends: Vec<f64> = points.split_whitespace().map(|pair| pair.split(',').nth(1).expect("y").parse().expect("a number")).collect();
        // The dots' x is the middle of the line on a logarithmic axis.
        assert!((heights[0] - f64::midpoint(ends[0], ends[1])).abs() <= 1.0, "{heights:?} {ends:?}");
        assert!(heights[1] > heights[0]);
        assert!(drawn.contains("76.8 GB/s") && !drawn.contains("<n>"));
    }
}
