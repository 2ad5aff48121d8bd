//! SVG to PNG, with the fonts of the system.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use resvg::{
    tiny_skia::{Color, Pixmap, Transform},
    usvg::{FontResolver, Group, Node, Options, Tree, fontdb},
};
use thiserror::Error;

/// Pixels for one of the SVG: sharp on a projector.
pub const SCALE: f32 = 2.0;

/// Fonts that are taken for what the first one lacks, in this order; then any sans-serif. Simplified Chinese before the forms of other countries.
const PREFERRED: [&str; 8] = [
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "PingFang SC",
    "Microsoft YaHei",
    "WenQuanYi Zen Hei",
];

/// Why there is no PNG.
#[derive(Debug, Error)]
pub enum PngError {
    /// The system has no font at all.
    #[error(
        "no font was found on this system, so that no PNG can be written: install one (Debian or Ubuntu: `apt-get install fonts-dejavu-core`). SVG files need none"
    )]
    NoFont,
    /// Letters that no font has.
    #[error("no installed font has {}: install {}. SVG files need no font", listed(.0), remedy(.0))]
    Missing(BTreeSet<char>),
    /// The document can't be read or is too large for memory: a bug.
    #[error("a picture can't be turned into pixels: {0}")]
    Drawing(String),
}

/// Fonts to write with.
#[derive(Debug, Clone)]
pub struct Fonts(Arc<fontdb::Database>);

impl Fonts {
    /// Those of the system.
    pub fn system() -> Self {
        let mut all = fontdb::Database::new();
        all.load_system_fonts();
        Self::ordered(&all)
    }

    /// Those of a folder.
    pub fn of(folder: &Path) -> Self {
        let mut all = fontdb::Database::new();
        all.load_fonts_dir(folder);
        Self::ordered(&all)
    }

    /// A letter that the first font lacks is taken from the first other one that has it, so that their order is ours and not the disk's.
    fn ordered(all: &fontdb::Database) -> Self {
        let mut faces: Vec<&fontdb::FaceInfo> = all.faces().collect();
        faces.sort_by_cached_key(|face| {
            let family = face.families.first().map_or("", |(name, _)| name.as_str());
            let preferred = PREFERRED.iter().position(|name| *name == family).unwrap_or(PREFERRED.len());
            let plain =
                face.style == fontdb::Style::Normal && face.weight == fontdb::Weight::NORMAL && face.stretch == fontdb::Stretch::Normal;
            (!plain, preferred, !family.contains("Sans"), face.monospaced, family.to_owned(), face.post_script_name.clone())
        });
        let mut ordered = fontdb::Database::new();
        for face in faces {
            ordered.push_face_info(face.clone());
        }
        Self(Arc::new(ordered))
    }
}

/// The PNG of an SVG document.
pub fn pixels_of(svg: &str, fonts: &Fonts) -> Result<Vec<u8>, PngError> {
    let first = fonts.0.faces().next().ok_or(PngError::NoFont)?.id;
    let named = FontResolver::default_font_selector();
    let font_resolver = FontResolver {
        // None of the families that the document names is here: then another one, rather than no text.
        select_font: Box::new(move |font, all| named(font, all).or(Some(first))),
        select_fallback: FontResolver::default_fallback_selector(),
    };
    let options = Options { fontdb: Arc::clone(&fonts.0), font_resolver, ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| PngError::Drawing(error.to_string()))?;
    let mut missing = BTreeSet::new();
    unwritten(tree.root(), &mut missing);
    if !missing.is_empty() {
        return Err(PngError::Missing(missing));
    }
    let [width, height] = [tree.size().width(), tree.size().height()].map(|side| (side * SCALE).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or_else(|| PngError::Drawing(format!("{width} x {height} pixels")))?;
    pixels.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| PngError::Drawing(error.to_string()))
}

/// Letters for which a font has its sign for "none" (glyph 0).
fn unwritten(group: &Group, missing: &mut BTreeSet<char>) {
    for node in group.children() {
        match node {
            Node::Group(inner) => unwritten(inner, missing),
            Node::Text(text) => {
                let glyphs = text.layouted().iter().flat_map(|span| &span.positioned_glyphs);
                let lacking = glyphs.filter(|glyph| glyph.id.0 == 0).flat_map(|glyph| glyph.text.chars());
                missing.extend(lacking.filter(|c| !c.is_whitespace()));
                if text.layouted().is_empty() {
                    missing.extend(text.chunks().iter().flat_map(|chunk| chunk.text().chars()).filter(|c| !c.is_whitespace()));
                }
            }
            _ => {}
        }
    }
}

/// The first few letters, each with its code point.
fn listed(missing: &BTreeSet<char>) -> String {
    let some: Vec<String> = missing.iter().take(6).map(|c| format!("“{c}” (U+{:04X})", u32::from(*c))).collect();
    let more = if missing.len() > some.len() { format!(" and {} more", missing.len() - some.len()) } else { String::new() };
    format!("{}{more}", some.join(", "))
}

/// Which font has them, and how it is come by.
fn remedy(missing: &BTreeSet<char>) -> &'static str {
    let han = |c: &char| matches!(c, '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}');
    if missing.iter().any(han) {
        "a font for Chinese, Japanese and Korean, as Noto Sans CJK (Debian or Ubuntu: `apt-get install fonts-noto-cjk`; Fedora: `dnf install google-noto-sans-cjk-fonts`; Windows and macOS: the language's fonts in the settings)"
    } else {
        "DejaVu Sans or Noto Sans (Debian or Ubuntu: `apt-get install fonts-dejavu-core fonts-noto-core`; Fedora: `dnf install dejavu-sans-fonts`)"
    }
}
