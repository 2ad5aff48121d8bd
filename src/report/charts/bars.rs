//! Horizontal bars from zero with intervals, one row a cell, names at the left and figures at the right.

use plotters::{
    prelude::{EmptyElement, PathElement, Rectangle, Text},
    style::{
        Color,
        text_anchor::{HPos, VPos},
    },
};

use super::axis::Axis;
use super::canvas::{INK, MUTED, Margin, PAPER, drawn, plane, rgb, svg, text};
use super::palette::Swatch;
use crate::report::ReportError;

/// One row.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Name at the left.
    pub label: String,
    /// Colour of its backend.
    pub colour: Swatch,
    /// Length of the bar.
    pub value: f64,
    /// Ends of the whisker.
    pub interval: Option<(f64, f64)>,
    /// Figure at the right, as in the tables.
    pub figure: String,
    /// Begins a new group: its heading stands above the row, or a gap where it is empty.
    pub heading: Option<String>,
}

const WIDTH: u32 = 580;
const ROW: u32 = 22;
const GAP: u32 = 8;
const HEADING: u32 = 24;
/// What fits at the left.
const LABEL_CHARS: usize = 36;

/// Draws the bars on one axis, which begins at zero.
pub fn bars(rows: &[Bar], axis_title: &str, name: &str) -> Result<String, ReportError> {
    let longest = rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0).min(LABEL_CHARS) as u32;
    let headings = rows.iter().filter_map(|row| row.heading.as_ref()).map(|heading| heading.chars().count()).max().unwrap_or(0) as u32;
    let figures = rows.iter().map(|row| row.figure.chars().count()).max().unwrap_or(0) as u32;
    let margin = Margin { left: (18 + longest * 7).max(12 + headings * 6), right: 16 + figures * 13 / 2, top: 6, bottom: 44 };
    let most = rows.iter().map(|row| row.interval.map_or(row.value, |(_, hi)| hi.max(row.value))).fold(0.0, f64::max);
    let x = Axis::from_zero(most, 4, axis_title);
    let above = |row: &Bar| row.heading.as_ref().map_or(0, |heading| if heading.is_empty() { GAP } else { HEADING });
    let inside = rows.iter().map(|row| ROW + above(row)).sum::<u32>();
    svg(WIDTH, margin.top + inside + margin.bottom, name, |sheet| {
        let plane = plane(sheet, margin, &x, Err(inside as usize))?;
        let mut top = 0.0;
        for row in rows {
            top += f64::from(above(row));
            if let Some(heading) = row.heading.as_ref().filter(|heading| !heading.is_empty()) {
                let y = margin.top.cast_signed() + (top - f64::from(HEADING) / 2.0) as i32 + 2;
                let style = text(11.0, MUTED, HPos::Left, VPos::Center);
                drawn(sheet.draw(&Text::new(short(heading, LABEL_CHARS), (4, y), style)))?;
            }
            let middle = top + f64::from(ROW) / 2.0;
            let fill = rgb(row.colour);
            drawn(plane.draw(&Rectangle::new([(0.0, middle - 6.5), (x.at(row.value), middle + 6.5)], fill.filled())))?;
            if let Some((lo, hi)) = row.interval {
                let (lo, hi) = (x.at(lo), x.at(hi));
                let whisker =
                    [((lo, middle), (hi, middle)), ((lo, middle - 4.0), (lo, middle + 4.0)), ((hi, middle - 4.0), (hi, middle + 4.0))];
                // The page's colour around it, so that it is seen on a bar as dark as itself.
                for (paint, width) in [(PAPER, 4), (INK, 2)] {
                    for (from, to) in whisker {
                        drawn(plane.draw(&PathElement::new(vec![from, to], paint.stroke_width(width))))?;
                    }
                }
            }
            let label = EmptyElement::at((0.0, middle))
                + Text::new(short(&row.label, LABEL_CHARS), (-8, 0), text(12.0, INK, HPos::Right, VPos::Center));
            drawn(plane.draw(&label))?;
            let end = x.range().end;
            let figure =
                EmptyElement::at((end, middle)) + Text::new(row.figure.clone(), (10, 0), text(11.0, MUTED, HPos::Left, VPos::Center));
            drawn(plane.draw(&figure))?;
            top += f64::from(ROW);
        }
        Ok(())
    })
}

/// At most `limit` characters, the last one an ellipsis where something was cut.
pub fn short(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit { text.to_owned() } else { text.chars().take(limit - 1).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, value: f64) -> Bar {
        Bar {
            label: label.into(),
            colour: Swatch::default(),
            value,
            interval: Some((value * 0.9, value * 1.1)),
            figure: format!("{value}"),
            heading: Some("32 → <16>".into()),
        }
    }

    #[test]
    fn hostile_labels_are_escaped() {
        let drawn = bars(&[bar("<script>alert(1)</script>", 3.0)], "ms", "a \"name\" <b>").expect("a drawing");
        assert!(!drawn.contains("<script") && drawn.contains("&lt;script&gt;") && drawn.contains("&lt;16&gt;"));
        assert!(drawn.contains(r#"aria-label="a &quot;name&quot; &lt;b&gt;""#));
        assert!(!drawn.contains("http"), "no name space and no reference");
    }

    #[test]
    fn nothing_and_zero_can_be_drawn() {
        assert!(bars(&[], "ms", "").is_ok());
        assert!(bars(&[bar("a", 0.0)], "ms", "").expect("a drawing").ends_with("</svg>"));
    }

    #[test]
    fn long_names_are_cut_at_a_character() {
        assert_eq!(short("ångström", 4), "ång…");
        assert_eq!(short("abc", 4), "abc");
    }
}
