//! A drawing area with a frame: grid, axes, labels.

use plotters::{
    coord::{Shift, types::RangedCoordf64},
    prelude::{Cartesian2d, DrawingArea, EmptyElement, IntoDrawingArea, IntoFont, PathElement, RGBColor, SVGBackend, Text},
    style::{
        Color, TextStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};

use super::axis::Axis;
use super::palette::Swatch;
use crate::report::ReportError;

/// Text and axes. The style sheet repaints it for the dark theme.
pub const INK: RGBColor = RGBColor(0x1B, 0x25, 0x33);
/// Labels of lesser weight.
pub const MUTED: RGBColor = RGBColor(0x5A, 0x67, 0x78);
/// The page, where something is cut out of a colour or written on it. The style sheet repaints it too.
pub const PAPER: RGBColor = RGBColor(0xFF, 0xFF, 0xFF);
/// Grid lines.
pub const GRID: RGBColor = RGBColor(0xDD, 0xE2, 0xE8);

/// The part of the drawing that has coordinates.
pub type Plane<'a> = DrawingArea<SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
/// The whole drawing, in pixels.
pub type Sheet<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Space around the plane, in pixels.
#[derive(Debug, Clone, Copy)]
pub struct Margin {
    pub left: u32,
    pub right: u32,
    pub top: u32,
    pub bottom: u32,
}

/// plotters' error as ours.
pub fn drawn<T, E: std::error::Error + Send + Sync>(
    result: Result<T, plotters::drawing::DrawingAreaErrorKind<E>>,
) -> Result<T, ReportError> {
    result.map_err(|error| ReportError::Chart(error.to_string()))
}

/// A colour of the palette for plotters.
pub fn rgb(swatch: Swatch) -> RGBColor {
    let part = |at: usize| u8::from_str_radix(&swatch.light[at..at + 2], 16).unwrap_or(0);
    RGBColor(part(1), part(3), part(5))
}

/// Text of `px` pixels; plotters divides a font's size by 1.24 on its way to SVG.
pub fn text(px: f64, colour: RGBColor, h: HPos, v: VPos) -> TextStyle<'static> {
    TextStyle { color: colour.to_backend_color(), ..TextStyle::from(("sans-serif", px * 1.24).into_font()) }.pos(Pos::new(h, v))
}

/// Draws into memory and gives the `<svg>` element, with `name` as what a screen reader says.
pub fn svg(width: u32, height: u32, name: &str, draw: impl FnOnce(&Sheet) -> Result<(), ReportError>) -> Result<String, ReportError> {
    let mut buffer = String::new();
    {
        let sheet = SVGBackend::with_string(&mut buffer, (width, height)).into_drawing_area();
        draw(&sheet)?;
        drawn(sheet.present())?;
    }
    // The root is written anew: it scales with the page, names itself, and an element inside HTML needs no name space. The font is that of
    // whatever it stands in.
    let body = buffer.find('>').map_or("", |end| &buffer[end + 1..]).replace(r#" font-family="sans-serif""#, "");
    let mut whole = format!(r#"<svg class="chart" role="img" viewBox="0 0 {width} {height}" aria-label=""#);
    for c in name.chars() {
        match c {
            '<' => whole.push_str("&lt;"),
            '>' => whole.push_str("&gt;"),
            '&' => whole.push_str("&amp;"),
            '"' => whole.push_str("&quot;"),
            other => whole.push(other),
        }
    }
    whole.push_str("\">");
    whole.push_str(body.trim());
    Ok(whole)
}

/// Width, height and what is inside of an `<svg>` element that this module or `palette` made: to be set into another drawing.
pub fn inside(svg: &str) -> Option<(f64, f64, &str)> {
    let (head, rest) = svg.split_once('>')?;
    let (_, view) = head.split_once("viewBox=\"0 0 ")?;
    let (width, height) = view.split_once('"')?.0.split_once(' ')?;
    Some((width.parse().ok()?, height.parse().ok()?, rest.trim_end().strip_suffix("</svg>")?))
}

/// Lays the plane into the sheet and draws grid, ticks and titles; an x axis without a title has a grid only. `y` is `None` where rows with labels of their own take its place,
/// `rows` being their number.
pub fn plane<'a>(sheet: &Sheet<'a>, margin: Margin, x: &Axis, y: Result<&Axis, usize>) -> Result<Plane<'a>, ReportError> {
    let (width, height) = sheet.dim_in_pixel();
    let (left, right) = (margin.left.cast_signed(), width.saturating_sub(margin.right).cast_signed());
    let (top, bottom) = (margin.top.cast_signed(), height.saturating_sub(margin.bottom).cast_signed());
    let y_range = match y {
        Ok(axis) => axis.range(),
        // Rows count downwards.
        Err(rows) => rows as f64..0.0,
    };
    let spec = Cartesian2d::<RangedCoordf64, RangedCoordf64>::new(x.range(), y_range.clone(), (left..right, bottom..top));
    let plane = sheet.clone().apply_coord_spec(spec);
    let small = |h, v| text(11.0, MUTED, h, v);
    for tick in &x.ticks {
        let at = x.at(*tick);
        drawn(plane.draw(&PathElement::new(vec![(at, y_range.start), (at, y_range.end)], GRID.stroke_width(1))))?;
        if !x.title.is_empty() {
            let label = EmptyElement::at((at, y_range.start)) + Text::new(x.label(*tick), (0, 7), small(HPos::Center, VPos::Top));
            drawn(plane.draw(&label))?;
        }
    }
    let middle = i32::midpoint(left, right);
    drawn(sheet.draw(&Text::new(x.title.clone(), (middle, height.cast_signed() - 4), text(11.5, INK, HPos::Center, VPos::Bottom))))?;
    if let Ok(axis) = y {
        for tick in &axis.ticks {
            let at = axis.at(*tick);
            drawn(plane.draw(&PathElement::new(vec![(x.range().start, at), (x.range().end, at)], GRID.stroke_width(1))))?;
            let label = EmptyElement::at((x.range().start, at)) + Text::new(axis.label(*tick), (-7, 0), small(HPos::Right, VPos::Center));
            drawn(plane.draw(&label))?;
        }
        // Above the axis and not turned: read without tilting the head.
        drawn(sheet.draw(&Text::new(axis.title.clone(), (4, top - 24), text(11.5, INK, HPos::Left, VPos::Top))))?;
        drawn(
            plane.draw(&PathElement::new(vec![(x.range().start, y_range.start), (x.range().end, y_range.start)], MUTED.stroke_width(1))),
        )?;
    }
    drawn(plane.draw(&PathElement::new(vec![(x.range().start, y_range.start), (x.range().start, y_range.end)], MUTED.stroke_width(1))))?;
    Ok(plane)
}
