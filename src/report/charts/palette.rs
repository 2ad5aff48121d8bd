//! One colour a backend, everywhere on the page, told apart by people who don't see all colours: the series has a marker as well.

use serde::Serialize;

/// A colour, as plotters writes it (which is also the light theme's) and as the dark theme repaints it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Swatch {
    /// `#RRGGBB` in capitals, the form in the SVG, which the style sheet's selectors name.
    pub light: &'static str,
    /// The same series on a dark page.
    pub dark: &'static str,
}

const fn swatch(light: &'static str, dark: &'static str) -> Swatch {
    Swatch { light, dark }
}

/// After Okabe and Ito (2008), the light ones darkened to a contrast of 3 to 1 on white.
pub const PALETTE: &[Swatch] = &[
    swatch("#0072B2", "#56B0EA"),
    swatch("#D55E00", "#F28A3C"),
    swatch("#00855F", "#33C79B"),
    swatch("#AA4499", "#DE8FD0"),
    swatch("#8F6F00", "#E0C04A"),
    swatch("#5B5F97", "#A5A9E8"),
    swatch("#A33B4B", "#F0909C"),
    swatch("#4D6A6D", "#9DBEC2"),
];

/// The swatch of series `index`; after the last it begins again, and the marker has to tell.
pub fn colour(index: usize) -> Swatch {
    PALETTE[index % PALETTE.len()]
}

/// Marker shapes, in order.
pub const MARKERS: usize = 4;

/// A marker for a legend. No drawing library for a single shape; nothing of the data is in it.
pub fn swatch_svg(colour_index: usize, marker: usize) -> String {
    let fill = colour(colour_index).light;
    let shape = match marker % MARKERS {
        0 => format!(r#"<circle cx="6" cy="6" r="5" fill="{fill}"/>"#),
        1 => format!(r#"<rect x="1.5" y="1.5" width="9" height="9" fill="{fill}"/>"#),
        2 => format!(r#"<polygon points="6,0.5 11.5,11 0.5,11" fill="{fill}"/>"#),
        _ => format!(r#"<polygon points="6,0 12,6 6,12 0,6" fill="{fill}"/>"#),
    };
    format!(r#"<svg class="key" viewBox="0 0 12 12" aria-hidden="true">{shape}</svg>"#)
}
