//! Rows of pieces on one axis from zero: parts of a whole one behind the other, or the steps of a stage, each where the last one ended.

use plotters::{
    prelude::{PathElement, Rectangle, Text},
    style::{
        Color,
        text_anchor::{HPos, VPos},
    },
};

use super::axis::Axis;
use super::bars::short;
use super::canvas::{INK, MUTED, Margin, PAPER, drawn, plane, rgb, svg, text};
use super::palette::Swatch;
use crate::report::ReportError;

/// A stretch of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// On the axis.
    pub from: f64,
    /// On the axis.
    pub to: f64,
    /// Its colour.
    pub swatch: Swatch,
    /// Of the same thing, another kind: the page shines through.
    pub faint: bool,
    /// Written into it where it fits.
    pub label: String,
}

/// One row.
#[derive(Debug, Clone, Default)]
pub struct Stack {
    /// Stands above the row, which begins a new group.
    pub heading: Option<String>,
    /// Name at the left.
    pub label: String,
    /// In order.
    pub pieces: Vec<Piece>,
    /// A line across the row here: the pieces before and behind it ran on different processors.
    pub breaks: Vec<f64>,
    /// Figures at the right.
    pub figure: String,
}

/// Where the axis ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// At 100.
    Percent,
    /// At a round number that holds all pieces.
    Round,
}

const WIDTH: u32 = 900;
const ROW: u32 = 24;
const HEADING: u32 = 26;
const LABEL_CHARS: usize = 34;
const FIGURE_CHARS: usize = 40;
/// A narrower piece is drawn as wide as this, so that it can be seen.
const LEAST: i32 = 1;
/// Of a letter in a piece, in pixels.
const LETTER: i32 = 6;

/// Draws the rows.
pub fn stacks(rows: &[Stack], ends: Ends, axis_title: &str, name: &str) -> Result<String, ReportError> {
    let longest =
        |limit: usize, of: fn(&Stack) -> &str| rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0).min(limit) as u32;
    let (labels, figures) = (longest(LABEL_CHARS, |row| &row.label), longest(FIGURE_CHARS, |row| &row.figure));
    let margin = Margin { left: 18 + labels * 7, right: 18 + figures * 6, top: 6, bottom: 44 };
    let most = rows.iter().flat_map(|row| &row.pieces).map(|piece| piece.to).fold(0.0, f64::max);
    let x = match ends {
        Ends::Percent => Axis::until(100.0, 5, axis_title),
        Ends::Round => Axis::from_zero(most, 6, axis_title),
    };
    let above = |row: &Stack| row.heading.as_ref().map_or(0, |_| HEADING);
    let inside = rows.iter().map(|row| ROW + above(row)).sum::<u32>();
    svg(WIDTH, margin.top + inside + margin.bottom, name, |sheet| {
        plane(sheet, margin, &x, Err(inside as usize))?;
        let (left, right) = (f64::from(margin.left), f64::from(WIDTH - margin.right));
        let at = |value: f64| (left + (value / x.range().end).clamp(0.0, 1.0) * (right - left)).round() as i32;
        let mut top = margin.top.cast_signed();
        for row in rows {
            if let Some(heading) = &row.heading {
                let heading = short(heading, LABEL_CHARS * 3);
                let below = top + HEADING.cast_signed();
                // The axis and the grid stay behind it.
                let ends = 8 + width(&heading) * 13 / 12;
                drawn(sheet.draw(&Rectangle::new([(0, top + 4), (ends, below)], PAPER.filled())))?;
                let style = text(11.5, INK, HPos::Left, VPos::Center);
                drawn(sheet.draw(&Text::new(heading, (4, top + HEADING.cast_signed() / 2 + 2), style)))?;
                top = below;
            }
            let (upper, lower, middle) = (top + 3, top + ROW.cast_signed() - 3, top + ROW.cast_signed() / 2);
            for piece in &row.pieces {
                let (from, to) = (at(piece.from), at(piece.to));
                let fill = rgb(piece.swatch);
                let fill = if piece.faint { fill.mix(0.45).filled() } else { fill.filled() };
                drawn(sheet.draw(&Rectangle::new([(from, upper), (to.max(from + LEAST), lower)], fill)))?;
                if to - from > 3 {
                    drawn(sheet.draw(&PathElement::new(vec![(to, upper), (to, lower)], PAPER.stroke_width(1))))?;
                }
                if to - from > width(&piece.label) + 6 {
                    let ink = if piece.faint { INK } else { PAPER };
                    let style = text(10.5, ink, HPos::Center, VPos::Center);
                    drawn(sheet.draw(&Text::new(piece.label.clone(), (i32::midpoint(from, to), middle), style)))?;
                }
            }
            for line in &row.breaks {
                drawn(sheet.draw(&PathElement::new(vec![(at(*line), upper - 3), (at(*line), lower + 3)], INK.stroke_width(2))))?;
            }
            let (left, right) = (margin.left.cast_signed() - 8, (WIDTH - margin.right).cast_signed() + 10);
            let label = text(12.0, INK, HPos::Right, VPos::Center);
            drawn(sheet.draw(&Text::new(short(&row.label, LABEL_CHARS), (left, middle), label)))?;
            let figure = text(11.0, MUTED, HPos::Left, VPos::Center);
            drawn(sheet.draw(&Text::new(short(&row.figure, FIGURE_CHARS), (right, middle), figure)))?;
            top += ROW.cast_signed();
        }
        Ok(())
    })
}

/// About, in small letters.
fn width(words: &str) -> i32 {
    i32::try_from(words.chars().count()).map_or(i32::MAX, |letters| letters.saturating_mul(LETTER)).min(10_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::charts::MODEL;

    fn row(label: &str, from: f64, to: f64) -> Stack {
        let piece = Piece { from, to, swatch: MODEL[0].1, faint: false, label: label.to_owned() };
        Stack { heading: Some(label.into()), label: label.into(), pieces: vec![piece], breaks: vec![to], figure: label.into() }
    }

    #[test]
    fn hostile_words_are_escaped() {
        let drawn = stacks(&[row("<b>x</b>", 0.0, 100.0)], Ends::Percent, "%", "<i>").expect("a drawing");
        assert_eq!(drawn.matches("&lt;b&gt;x&lt;/b&gt;").count(), 4, "heading, label, piece and figure");
        assert!(!drawn.contains("<b>") && !drawn.contains("<i>"));
    }

    #[test]
    fn a_piece_is_as_long_as_its_share() {
        let rows = [row("", 0.0, 25.0), row("", 25.0, 100.0)];
        let drawn = stacks(&rows, Ends::Percent, "%", "n").expect("a drawing");
        let widths: Vec<f64> = drawn
            .split("<rect ")
            .skip(1)
            .filter(|rect| !rect.split("/>").next().is_some_and(|tag| tag.contains("#FFFFFF")))
            .map(|rect| rect.split(" width=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a width").parse().expect("a number"))
            .collect();
        assert!((widths[1] / widths[0] - 3.0).abs() < 0.02, "{widths:?}");
    }

    #[test]
    fn nothing_and_the_absurd_can_be_drawn() {
        for rows in [vec![], vec![Stack::default()], vec![row("a", 0.0, 1e300), row("b", 1e300, 1e300)], vec![row("c", 0.0, 0.0)]] {
            for ends in [Ends::Percent, Ends::Round] {
                let drawn = stacks(&rows, ends, "x", "n").expect("a drawing");
                assert!(drawn.ends_with("</svg>") && !drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
            }
        }
    }
}
