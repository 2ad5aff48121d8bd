//! One colour a backend, everywhere on the page; one dash and one marker a quantisation, which need no eye for colour.

use serde::Serialize;

/// A colour, as plotters writes it (which is also the light theme's) and as the dark theme repaints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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

/// Colours of parts of a device (CPU, NPU, skin, ...), where all lines belong to one backend: none of them is a backend's.
pub const PARTS: &[Swatch] = &[
    swatch("#1F5F8B", "#6FB7E0"),
    swatch("#B3470C", "#F5A06A"),
    swatch("#2E7D4F", "#6CCB95"),
    swatch("#7B3F8C", "#CB95DB"),
    swatch("#7A6A00", "#D9C75A"),
    swatch("#5F6B7A", "#AEB9C6"),
];

/// What a launch does, as the background of its timeline shows it.
pub const PHASES: &[(&str, Swatch)] = &[
    ("start and load", swatch("#EDEFF2", "#262E38")),
    ("prefill", swatch("#FBE6D4", "#43301F")),
    ("decode", swatch("#E2F1E8", "#1D3529")),
];

/// What a comparison says, which is always written beside it.
pub const VERDICTS: &[(&str, Swatch)] = &[
    ("improved", swatch("#2E7D4F", "#6CCB95")),
    ("unchanged", swatch("#1F5F8B", "#6FB7E0")),
    ("undecided", swatch("#5F6B7A", "#AEB9C6")),
    ("regressed", swatch("#B3470C", "#F5A06A")),
];

/// Parts of a model in the order of its work, one colour each on every page: dark and light by turns, so that neighbours differ to eyes that
/// see few hues. The drawing separates them by a line and names those that are wide enough.
pub const MODEL: &[(&str, Swatch)] = &[
    ("embedding", swatch("#6B5B95", "#B8A9E3")),
    ("norm", swatch("#A07C00", "#E6C34D")),
    ("q, k, v, o projections", swatch("#00618F", "#62BCEB")),
    ("rope", swatch("#B8577A", "#F0A3BE")),
    ("kv cache", swatch("#3F7F3F", "#8FD18F")),
    ("attention", swatch("#C25A00", "#FF9F4A")),
    ("residual", swatch("#7C6A58", "#C9B7A4")),
    ("mlp", swatch("#1C7C74", "#5FD0C5")),
    ("lm head", swatch("#8C2F39", "#F08A94")),
    ("sampling", swatch("#47547A", "#A3B2E0")),
    ("inputs and outputs", swatch("#54707A", "#9CC0CC")),
    ("compiled subgraph, not told apart", swatch("#6A7079", "#B0B7C0")),
    ("other", swatch("#868D96", "#D2D7DD")),
];

/// Stages of a request: what is known, and what nothing accounts for.
pub const STAGES: [Swatch; 2] = [PARTS[0], PARTS[5]];

/// A swatch for a legend.
pub fn key_svg(swatch: Swatch) -> String {
    let fill = swatch.light;
    format!(r#"<svg class="key" viewBox="0 0 12 12" aria-hidden="true"><rect width="12" height="12" fill="{fill}"/></svg>"#)
}

/// The swatch of series `index`; after the last it begins again, and the label has to tell.
pub fn colour(index: usize) -> Swatch {
    PALETTE[index % PALETTE.len()]
}

/// Styles of a line, in order: solid with circles, dashed with squares, dotted with triangles, long dashes with diamonds.
pub const STYLES: usize = 4;

/// Length of a dash and of a gap in pixels; no gap is a solid line.
pub const DASHES: [(i32, i32); STYLES] = [(1, 0), (7, 4), (2, 4), (14, 4)];

/// A swatch of a backend. No drawing library for a single shape; nothing of the data is in it.
pub fn swatch_svg(colour_index: usize) -> String {
    let fill = colour(colour_index).light;
    format!(r#"<svg class="key" viewBox="0 0 12 12" aria-hidden="true"><circle cx="6" cy="6" r="5" fill="{fill}"/></svg>"#)
}

/// A piece of a line with its marker, for a legend.
pub fn line_svg(colour_index: usize, style: usize) -> String {
    let paint = colour(colour_index).light;
    let dashes = match DASHES[style % STYLES] {
        (_, 0) => String::new(),
        (dash, gap) => format!(r#" stroke-dasharray="{dash} {gap}""#),
    };
    let shape = match style % STYLES {
        0 => format!(r#"<circle cx="15" cy="6" r="4" fill="{paint}"/>"#),
        1 => format!(r#"<rect x="11" y="2" width="8" height="8" fill="{paint}"/>"#),
        2 => format!(r#"<polygon points="15,1 20,10 10,10" fill="{paint}"/>"#),
        _ => format!(r#"<polygon points="15,0 21,6 15,12 9,6" fill="{paint}"/>"#),
    };
    format!(
        r#"<svg class="key line" viewBox="0 0 30 12" aria-hidden="true"><path d="M0 6H30" stroke="{paint}" stroke-width="2"{dashes} fill="none"/>{shape}</svg>"#
    )
}
