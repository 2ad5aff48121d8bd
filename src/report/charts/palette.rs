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

/// Parts of a model in the order of its work, one colour each on every page. Searched for: any two differ to eyes that lack a kind of cone, and
/// the page's colour can be written on each. The drawing separates them by a line and names those that are wide enough.
pub const MODEL: &[(&str, Swatch)] = &[
    ("embedding", swatch("#A276DC", "#3780E6")),
    ("norm", swatch("#B7811B", "#FCD767")),
    ("q, k, v, o projections", swatch("#0553B4", "#A26FBC")),
    ("rope", swatch("#953F7E", "#E0A1AD")),
    ("kv cache", swatch("#109F65", "#ACF9A6")),
    ("attention", swatch("#9C4B0E", "#A77A09")),
    ("residual", swatch("#785536", "#F99A68")),
    ("mlp", swatch("#004351", "#87F5FF")),
    ("lm head", swatch("#7E0C06", "#D45C48")),
    ("sampling", swatch("#5F1B78", "#A8ABD0")),
    ("inputs and outputs", swatch("#6A8CB7", "#06B3FE")),
    ("compiled subgraph, not told apart", swatch("#414035", "#7D8375")),
    ("other", swatch("#7B8684", "#EDE6D6")),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulated dichromats: Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB; the first is a normal eye.
    const EYES: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152_286, 1.052_583, -0.204_868], [0.114_503, 0.786_281, 0.099_216], [-0.003_882, -0.048_116, 1.051_998]],
        [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_820, 0.042_940, 0.968_881]],
        [[1.255_528, -0.076_749, -0.178_779], [-0.078_411, 0.930_809, 0.147_602], [0.004_733, 0.691_367, 0.303_900]],
    ];
    /// sRGB to XYZ over the white of D65.
    const XYZ: [[f64; 3]; 3] = [[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0178, 0.1095, 0.8727]];

    fn by(matrix: &[[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum())
    }

    fn linear(hex: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| {
            let c = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).expect("a colour")) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        })
    }

    /// CIE L*a*b*.
    fn lab(rgb: [f64; 3]) -> [f64; 3] {
        let [x, y, z] = by(&XYZ, rgb.map(|c| c.clamp(0.0, 1.0))).map(|t| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn parts_of_a_model_differ_to_every_eye_and_bear_the_pages_colour() {
        for (theme, paper) in [("light", "#FFFFFF"), ("dark", "#12171E")] {
            let colours: Vec<(&str, [f64; 3])> =
                MODEL.iter().map(|(name, of)| (*name, linear(if theme == "light" { of.light } else { of.dark }))).collect();
            for (at, (name, one)) in colours.iter().enumerate() {
                for (other, two) in &colours[..at] {
                    for eye in &EYES {
                        let (a, b) = (lab(by(eye, *one)), lab(by(eye, *two)));
                        let apart = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                        assert!(apart > 12.0, "{theme}: {name} and {other} are {apart:.1} apart");
                    }
                }
                let light = |rgb| by(&XYZ, rgb)[1] + 0.05;
                let (a, b) = (light(*one), light(linear(paper)));
                assert!((a / b).max(b / a) > 3.0, "{theme}: {name} on {paper}, WCAG 2.1");
            }
        }
    }

    #[test]
    fn the_dark_theme_repaints_each_colour_in_one_way() {
        let all: Vec<Swatch> = PALETTE.iter().chain(PARTS).chain(PHASES.iter().chain(MODEL).map(|(_, swatch)| swatch)).copied().collect();
        assert!(all.iter().all(|a| all.iter().all(|b| a.light != b.light || a.dark == b.dark)));
    }
}
