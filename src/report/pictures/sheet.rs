//! A picture as one SVG document: title, what it is of, warning, legend, drawing, sentences, source. White ground, so that it looks the same on
//! any slide.

use std::fmt::Write as _;

use super::collect::Picture;
use super::words::{escaped, legal, lines, width};
use crate::report::{ReportError, charts};

/// The first of these that a system has; the last but two are for Han.
const FONTS: &str = "'Segoe UI', 'Helvetica Neue', Arial, 'Noto Sans', 'Liberation Sans', 'DejaVu Sans', 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif";
/// Space around all.
const EDGE: f64 = 28.0;
/// Width of a drawing: small ones are made larger, so that their letters can be read from a slide, but not out of proportion.
const WIDE: f64 = 900.0;
const LARGEST: f64 = 1.6;
const INK: &str = "#1B2533";
const MUTED: &str = "#5A6778";
/// Of warnings, 7 to 1 on white.
const ALERT: &str = "#8A2A06";

/// A document that grows downwards.
struct Sheet {
    body: String,
    y: f64,
    wide: f64,
}

impl Sheet {
    /// Lines of text of one size.
    fn text(&mut self, text: &str, px: f64, colour: &str, weight: u32) {
        for line in lines(text, self.wide / px) {
            self.y += px * 1.4;
            let (x, y, line) = (EDGE, self.y - px * 0.3, escaped(&line));
            // Writing to memory can't fail.
            let _ =
                writeln!(self.body, r#"<text x="{x:.0}" y="{y:.1}" font-size="{px}" font-weight="{weight}" fill="{colour}">{line}</text>"#);
        }
    }

    /// A drawing, `scale` times as large.
    fn place(&mut self, svg: &str, (x, y): (f64, f64), scale: f64) -> Result<f64, ReportError> {
        let (_, height, inside) = charts::inside(svg).ok_or_else(|| ReportError::Chart("its element can't be read".into()))?;
        let _ = writeln!(self.body, r#"<g transform="translate({x:.1} {y:.1}) scale({scale:.3})">{}</g>"#, inside.trim());
        Ok(height * scale)
    }

    /// Keys and their words, as many in a row as there is room for.
    fn legend(&mut self, entries: &[(&str, &str)]) -> Result<(), ReportError> {
        const PX: f64 = 14.0;
        const ROW: f64 = 24.0;
        let mut x = 0.0;
        for (key, words) in entries {
            // Some entries are words alone.
            let (key_width, key_height, gap) = charts::inside(key).map_or((0.0, 0.0, 0.0), |(width, height, _)| (width, height, 8.0));
            let needs = key_width + gap + width(words) * PX + 22.0;
            if x > 0.0 && x + needs > self.wide {
                (x, self.y) = (0.0, self.y + ROW);
            }
            let middle = self.y + ROW / 2.0;
            if !key.is_empty() {
                self.place(key, (EDGE + x, middle - key_height / 2.0), 1.0)?;
            }
            let (at, line, words) = (EDGE + x + key_width + gap, middle + PX * 0.35, escaped(words));
            let _ = writeln!(self.body, r#"<text x="{at:.1}" y="{line:.1}" font-size="{PX}" fill="{INK}">{words}</text>"#);
            x += needs;
        }
        self.y += ROW;
        Ok(())
    }
}

/// The SVG document of a picture.
pub fn sheet(picture: &Picture) -> Result<String, ReportError> {
    let (chart, of) = (picture.chart.as_ref(), picture.of.join(" · "));
    let (drawn, _, _) = charts::inside(&chart.svg).ok_or_else(|| ReportError::Chart("its element can't be read".into()))?;
    let scale = (WIDE / drawn).clamp(1.0, LARGEST);
    let mut sheet = Sheet { body: String::new(), y: EDGE * 0.6, wide: drawn * scale };
    sheet.text(&picture.title, 24.0, INK, 600);
    sheet.text(&of, 16.0, MUTED, 400);
    if let Some(warning) = &picture.warning {
        sheet.text(warning, 15.0, ALERT, 600);
    }
    sheet.y += 14.0;
    if !chart.legend.is_empty() {
        let entries: Vec<(&str, &str)> = chart.legend.iter().map(|entry| (entry.key.as_str(), entry.text.as_str())).collect();
        sheet.legend(&entries)?;
        sheet.y += 8.0;
    }
    let top = sheet.y;
    sheet.y += sheet.place(&chart.svg, (EDGE, top), scale)? + 10.0;
    let words = std::iter::once(&chart.caption).chain(&picture.notes).map(|note| note.trim()).filter(|note| !note.is_empty());
    // Chinese has no space between two sentences.
    let beneath = words.fold(String::new(), |all, note| if all.is_empty() || all.ends_with('。') { all + note } else { all + " " + note });
    sheet.text(&beneath, 13.0, MUTED, 400);
    sheet.y += 4.0;
    sheet.text(&picture.source, 12.0, MUTED, 400);
    let (whole_width, whole_height) = ((sheet.wide + 2.0 * EDGE).round(), (sheet.y + EDGE * 0.7).round());
    let (title, of, fonts) = (escaped(&picture.title), escaped(&of), escaped(FONTS));
    Ok(legal(&format!(
        r##"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{whole_width}" height="{whole_height}" viewBox="0 0 {whole_width} {whole_height}" font-family="{fonts}" role="img">
<title>{title}: {of}</title>
<rect width="{whole_width}" height="{whole_height}" fill="#FFFFFF"/>
{}</svg>
"##,
        sheet.body
    )))
}
