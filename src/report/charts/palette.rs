//! One colour a backend, on every page and picture; one dash and one marker a quantisation, which need no eye for colour.

use serde::Serialize;

/// A colour, as plotters writes it (which is also the light theme's) and as the dark theme repaints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Swatch {
    /// `#RRGGBB` in capitals, the form in the SVG, which the style sheet's selectors name.
    pub light: &'static str,
    /// The same series on a dark page.
    pub dark: &'static str,
}

impl Default for Swatch {
    fn default() -> Self {
        PALETTE[0]
    }
}

const fn swatch(light: &'static str, dark: &'static str) -> Swatch {
    Swatch { light, dark }
}

/// Colours of backends: first those of the registry in its order, then [`GUESTS`]. Searched for near the hues of Okabe and Ito (2008): any two
/// differ to eyes that lack a kind of cone, those of the registry more than the guests', and all have a contrast of 3 to 1 on the page.
pub const PALETTE: &[Swatch] = &[
    swatch("#3D65D8", "#7587E6"),
    swatch("#03487A", "#79B9F4"),
    swatch("#E36F0C", "#E3883B"),
    swatch("#568652", "#4FE7AC"),
    swatch("#C76CCE", "#D27EB4"),
    swatch("#725B00", "#F7D054"),
    swatch("#84143A", "#D54E6E"),
    swatch("#489B9F", "#B3E4EE"),
    swatch("#77462C", "#B38C60"),
    swatch("#6E8435", "#B7D56D"),
    swatch("#6E57A4", "#9D7EC7"),
    swatch("#B95975", "#F1AAC5"),
];

/// How many at the end of [`PALETTE`] are for backends that the registry does not know: programs of a scenario.
pub const GUESTS: usize = 4;

/// Colours of parts of a device (CPU, NPU, skin, ...), where all lines belong to one backend: none of them is a backend's.
pub const PARTS: &[Swatch] = &[
    swatch("#19486B", "#5099BC"),
    swatch("#942F00", "#EB9864"),
    swatch("#2C7D50", "#78D7A2"),
    swatch("#8952A9", "#D9ACFB"),
    swatch("#998213", "#EAD05C"),
    swatch("#636F7D", "#AFBBC7"),
];

/// What a launch does, as the background of its timeline shows it.
pub const PHASES: &[(&str, Swatch)] = &[
    ("start and load", swatch("#EDEFF2", "#262E38")),
    ("prefill", swatch("#FBE6D4", "#43301F")),
    ("decode", swatch("#E2F1E8", "#1D3529")),
];

/// What a comparison says, which is always written beside it.
pub const VERDICTS: &[(&str, Swatch)] = &[
    ("improved", swatch("#318C5D", "#87E6AE")),
    ("unchanged", swatch("#05527D", "#60A2CE")),
    ("undecided", swatch("#6C7281", "#B2BBC6")),
    ("regressed", swatch("#B14608", "#F19E68")),
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

/// Styles of a line, in order: solid with circles, dashed with squares, dotted with triangles, long dashes with diamonds.
pub const STYLES: usize = 4;

/// Length of a dash and of a gap in pixels; no gap is a solid line.
pub const DASHES: [(i32, i32); STYLES] = [(1, 0), (7, 4), (2, 4), (14, 4)];

/// A swatch of a backend. No drawing library for a single shape; nothing of the data is in it.
pub fn swatch_svg(swatch: Swatch) -> String {
    let fill = swatch.light;
    format!(r#"<svg class="key" viewBox="0 0 12 12" aria-hidden="true"><circle cx="6" cy="6" r="5" fill="{fill}"/></svg>"#)
}

/// A piece of a line with its marker, for a legend.
pub fn line_svg(swatch: Swatch, style: usize) -> String {
    let paint = swatch.light;
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

    const THEMES: [(&str, &str); 2] = [("light", "#FFFFFF"), ("dark", "#12171E")];

    fn of(theme: &str, swatch: Swatch) -> [f64; 3] {
        linear(if theme == "light" { swatch.light } else { swatch.dark })
    }

    /// The least distance (CIE 1976) of two colours to any of the eyes.
    fn apart(one: [f64; 3], two: [f64; 3]) -> f64 {
        let distance = |eye| lab(by(eye, one)).iter().zip(lab(by(eye, two))).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        EYES.iter().map(distance).fold(f64::INFINITY, f64::min)
    }

    /// WCAG 2.1.
    fn contrast(one: [f64; 3], two: [f64; 3]) -> f64 {
        let [a, b] = [one, two].map(|rgb| by(&XYZ, rgb)[1] + 0.05);
        (a / b).max(b / a)
    }

    /// The least distance of any two.
    fn least(theme: &str, swatches: &[Swatch]) -> f64 {
        let pairs = swatches.iter().enumerate().flat_map(|(at, one)| swatches[..at].iter().map(move |two| (*one, *two)));
        pairs.map(|(one, two)| apart(of(theme, one), of(theme, two))).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn the_eyes_are_those_of_the_paper() {
        // Pure red and a dark green that deuteranopes take for one another, and blue and yellow, which they do not.
        assert!(apart(linear("#A05A00"), linear("#707000")) < 12.0 && apart(linear("#0072B2"), linear("#E69F00")) > 60.0);
        assert!((contrast(linear("#FFFFFF"), linear("#000000")) - 21.0).abs() < 0.01, "black on white is 21 to 1");
        assert!((contrast(linear("#FFFFFF"), linear("#767676")) - 4.54).abs() < 0.02, "the grey of every WCAG guide");
    }

    #[test]
    fn colours_of_one_kind_differ_to_every_eye() {
        let [model, verdicts] = [MODEL, VERDICTS].map(|named| named.iter().map(|(_, swatch)| *swatch).collect::<Vec<_>>());
        for (theme, _) in THEMES {
            let registered = &PALETTE[..PALETTE.len() - GUESTS];
            for (what, swatches, wanted) in [
                ("backends", registered, 18.0),
                ("backends and guests", PALETTE, 12.0),
                ("parts of a device", PARTS, 18.0),
                ("verdicts", &verdicts, 18.0),
                ("parts of a model", &model, 12.0),
            ] {
                let found = least(theme, swatches);
                assert!(found > wanted, "{theme}: two {what} are {found:.1} apart");
            }
        }
    }

    #[test]
    fn every_colour_that_draws_a_thing_stands_out_from_the_page() {
        let all = PALETTE.iter().chain(PARTS).chain(MODEL.iter().chain(VERDICTS).map(|(_, swatch)| swatch));
        for swatch in all {
            for (theme, paper) in THEMES {
                let found = contrast(of(theme, *swatch), linear(paper));
                assert!(found >= 3.0, "{theme}: {swatch:?} on {paper} is {found:.2} to 1");
            }
        }
    }

    #[test]
    fn the_dark_theme_repaints_each_colour_in_one_way() {
        let all: Vec<Swatch> =
            PALETTE.iter().chain(PARTS).chain(PHASES.iter().chain(MODEL).chain(VERDICTS).map(|(_, swatch)| swatch)).copied().collect();
        assert!(all.iter().all(|a| all.iter().all(|b| a.light != b.light || a.dark == b.dark)));
    }
}
