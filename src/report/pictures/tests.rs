//! Pictures of the made-up run.

use std::{fs, path::Path};

use super::{Fonts, Kind, PngError, collect::pictures, files, png::pixels_of, sheet::sheet, words::width};
use crate::{
    lang::{Lang, Voice},
    report::{Report, synthetic},
};

fn report() -> (tempfile::TempDir, Report) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("20261201T101500Z-pc-7f3a");
    synthetic::write(&run);
    let report = Report::of(&[run], None).expect("a report");
    (folder, report)
}

/// A font that every machine of this repository's tests has: `tests/run.sh` installs it.
fn latin() -> Fonts {
    Fonts::of(Path::new("/usr/share/fonts/truetype/dejavu"))
}

#[test]
fn every_chart_of_the_page_is_a_picture_that_says_what_it_is() {
    let (_keep, report) = report();
    let html = report.html().expect("a page");
    let all = pictures(report.page());
    assert_eq!(all.len(), html.matches("<svg class=\"chart\"").count(), "a chart of the page is missing in `collect`");
    for picture in &all {
        let svg = sheet(picture).expect("a document");
        let emulated = picture.name.starts_with("emulator-");
        assert_eq!(svg.contains("Emulator time is not device time"), emulated, "{}", picture.name);
        assert!(svg.contains("20261201T101500Z-pc-7f3a") && svg.contains("fill=\"#FFFFFF\"") && svg.contains("'DejaVu Sans'"));
        assert!(emulated || picture.name.starts_with("pc-"), "{}", picture.name);
    }
    let names: std::collections::BTreeSet<&str> = all.iter().map(|picture| picture.name.as_str()).collect();
    assert_eq!(names.len(), all.len());
    assert!(names.contains("emulator-this-machine-tiny-time-to-first-token"), "{names:?}");
}

#[test]
fn two_runs_in_one_folder_keep_their_pictures_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = ["a", "b"].map(|name| folder.path().join(name));
    for run in &runs {
        synthetic::write(run);
    }
    let report = Report::of(&runs, None).expect("a report");
    let written = report.pictures(&folder.path().join("p"), Kind::Svg, &latin()).expect("pictures");
    assert_eq!(written.files.len(), report.html().expect("a page").matches("<svg class=\"chart\"").count());
    assert_eq!(fs::read_dir(folder.path().join("p")).expect("a folder").count(), written.files.len(), "one file each, and nothing else");
}

const fn document() -> &'static str {
    r#"<svg xmlns="http://www.w3.org/2000/svg" width="120" height="40" viewBox="0 0 120 40" font-family="'No Such Font', sans-serif">
<text x="4" y="24" font-size="16" fill="black">TEXT</text></svg>"#
}

#[test]
fn letters_that_no_font_has_are_named_with_the_remedy() {
    let empty = tempfile::tempdir().expect("a folder");
    let none = pixels_of(document(), &Fonts::of(empty.path())).expect_err("no font, no letters");
    assert!(matches!(none, PngError::NoFont) && none.to_string().contains("fonts-dejavu-core"), "{none}");
    let fonts = latin();
    assert!(pixels_of(&document().replace("TEXT", "12.3 [8–19] → 10⁶"), &fonts).is_ok());
    for (text, letters) in [("模型 a", "“型” (U+578B), “模” (U+6A21)"), ("かな", "U+304B"), ("한", "U+D55C"), ("ＡＢ", "U+FF21")]
    {
        let lacking = pixels_of(&document().replace("TEXT", text), &fonts).expect_err("DejaVu has no Han, Kana or Hangul").to_string();
        assert!(lacking.contains(letters) && lacking.contains("fonts-noto-cjk"), "{lacking}");
    }
    let other = pixels_of(&document().replace("TEXT", "\u{1F9A5}"), &fonts).expect_err("nor a sloth").to_string();
    assert!(other.contains("U+1F9A5") && other.contains("fonts-noto-core") && !other.contains("cjk"), "{other}");
}

#[test]
fn a_picture_that_lacks_a_font_is_left_out_and_the_others_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("r");
    synthetic::write(&run);
    let cells = fs::read_to_string(run.join("cells.csv")).expect("cells");
    let renamed: Vec<String> =
        cells.lines().map(|line| if line.contains(",pc,") { line.replace(",tiny,", ",小模型,") } else { line.to_owned() }).collect();
    fs::write(run.join("cells.csv"), renamed.join("\n") + "\n").expect("cells");
    let report = Report::of(&[run], None).expect("a report");
    let out = folder.path().join("p");
    let written = report.pictures(&out, Kind::Png, &latin()).expect("pictures");
    assert!(!written.files.is_empty() && !written.refused.is_empty());
    for (name, error) in &written.refused {
        assert!(name.starts_with("pc-") && error.to_string().contains("“小”"), "{name}: {error}");
        assert!(!out.join(format!("{name}.png")).exists(), "no boxes in place of letters");
    }
    for file in &written.files {
        assert!(file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("emulator-")), "{}", file.display());
    }
}

#[test]
fn what_a_device_prints_is_text_in_a_well_formed_document() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("r");
    synthetic::write(&run);
    let cells = fs::read_to_string(run.join("cells.csv")).expect("cells");
    fs::write(run.join("cells.csv"), cells.replace(",tiny,", ",\"<script>&\u{1b}[31m\u{fffe}\"\"\",")).expect("cells");
    let report = Report::of(&[run], None).expect("a report");
    for (at, picture) in pictures(report.page()).iter().enumerate() {
        let svg = sheet(picture).expect("a document");
        assert!(!svg.contains("<script") && !svg.contains('\u{1b}') && !svg.contains('\u{fffe}'), "{}", picture.name);
        // Pixels take time; these are charts of three kinds.
        if at % 6 == 0 {
            pixels_of(&svg, &latin()).expect("an XML reader reads it");
        }
    }
}

/// What a drawing says, in its order, and all the rest of it.
fn apart(svg: &str) -> (Vec<String>, String) {
    let (parts, last) = svg.rsplit_once("</text>").expect("a drawing with words");
    let cut = parts.split("</text>").filter_map(|part| part.rsplit_once('>').map(|(rest, text)| (text.trim().to_owned(), rest)));
    let (texts, rest): (Vec<String>, Vec<&str>) = cut.unzip();
    // What a screen reader says of the whole is words as well.
    let rest =
        (rest.join("") + last).split('"').enumerate().filter(|(at, _)| *at != 7).map(|(_, part)| part.to_owned()).collect::<String>();
    (texts, rest)
}

#[test]
fn chinese_pictures_draw_the_same_and_their_words_have_room() {
    let (_keep, report) = report();
    let voice = Voice::beside(Lang::Zh, &report.html().expect("a page"));
    let (mut wide, mut chinese) = (Vec::new(), 0);
    for (english, said) in pictures(report.page()).into_iter().zip(pictures(report.page())) {
        let said = said.said(&voice);
        assert_eq!(english.name, said.name, "names of files are for programs");
        let ((here, drawn), (there, redrawn)) = (apart(&english.chart.svg), apart(&said.chart.svg));
        assert_eq!(drawn, redrawn, "{}", said.name);
        for (english, said) in here.iter().zip(&there) {
            chinese += usize::from(english != said);
            // The drawing left as much room as the English words take.
            if width(said) > 1.1 * width(english) + 0.5 {
                wide.push(format!("{english}: {said}"));
            }
        }
    }
    assert!(wide.is_empty() && chinese > 80, "{chinese} are Chinese; too wide:\n{}", wide.join("\n"));
}

#[test]
fn chinese_pictures_need_a_font_for_chinese_and_name_it() {
    let (keep, report) = report();
    let voice = Voice::beside(Lang::Zh, &report.html().expect("a page"));
    let all = pictures(report.page()).len();
    let of = |kind, folder: &str| files::write(report.page(), &keep.path().join(folder), kind, &latin(), &voice).expect("pictures");
    let pixels = of(Kind::Png, "png");
    assert_eq!((pixels.files.len(), pixels.refused.len()), (0, all), "DejaVu has no Han");
    for (name, error) in &pixels.refused {
        assert!(matches!(error, PngError::Missing(_)) && error.to_string().contains("fonts-noto-cjk"), "{name}: {error}");
    }
    // SVG needs no font here.
    let drawings = of(Kind::Svg, "svg");
    assert_eq!((drawings.files.len(), drawings.refused.len()), (all, 0));
    for file in drawings.files {
        let svg = fs::read_to_string(&file).expect("a picture");
        let emulated = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("emulator-"));
        assert_eq!(svg.contains("模拟器时间不是设备时间"), emulated, "{}", file.display());
        assert!(svg.contains("运行 20261201T101500Z-pc-7f3a") && !svg.contains("Run 2026"), "{}", file.display());
    }
}
