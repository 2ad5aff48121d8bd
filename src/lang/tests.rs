//! The table itself, what it makes of texts, and of pages.

mod coverage;
mod foreign;

use std::collections::{BTreeSet, HashSet};

use unicode_width::UnicodeWidthStr;

use super::{
    Lang, Voice,
    markdown::document,
    page::page,
    table::{FILES, Table, ZH},
    template::{Hole, Piece, Template},
    text::Speaker,
};

fn table(entries: &[(&str, &str)]) -> Table {
    let text = entries.iter().map(|(key, value)| format!("{key:?} = {value:?}")).collect::<Vec<_>>().join("\n");
    Table::read(&[("test", &text)]).unwrap_or_else(|why| panic!("{why:?}"))
}

fn said(table: &Table, text: &str) -> String {
    Speaker::new(table, HashSet::new()).phrase(text).unwrap_or_else(|| text.to_owned())
}

#[test]
fn every_entry_can_be_read_and_its_holes_agree() {
    let read = Table::read(&FILES).map(|table| table.templates().len());
    assert!(read.as_ref().is_ok_and(|templates| *templates > 1500), "{read:?}");
    for (entry, why) in [
        ("\"{} of {}\" = \"{1}\"", "2 holes"),
        ("\"a\" = \"{1}\"", "0 holes"),
        ("\"{x} a\" = \"{1}\"", "no hole"),
        ("\"{}{} a\" = \"{1}{2}\"", "that touch"),
        ("\"a {}\" = \"{0}\"", "no number"),
        ("\"a\" =", "test:"),
    ] {
        let wrong = Table::read(&[("test", entry)]).err().unwrap_or_default();
        assert!(wrong.len() == 1 && wrong[0].contains(why), "{entry}: {wrong:?}");
    }
}

/// A text of a template: what its holes take is the template's own or no words.
fn sample(template: &Template) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Words(words) => words.clone(),
        Piece::Hole(Hole::Number) => "7".to_owned(),
        Piece::Hole(_) => "zq".to_owned(),
    };
    template.pieces.iter().map(piece).collect()
}

#[test]
fn a_text_of_a_template_is_that_template_and_no_other() {
    let mut keys = BTreeSet::new();
    let twice = ZH.templates().iter().filter(|template| !keys.insert(template.key.as_str()));
    let mut wrong: Vec<String> = twice.map(|template| format!("{}: it is there twice", template.key)).collect();
    for template in ZH.templates() {
        let text = sample(template);
        if let [Piece::Words(words)] = template.pieces.as_slice() {
            assert_eq!(ZH.whole(words).map(|found| &found.key), Some(&template.key));
            continue;
        }
        let fitting = ZH.fits(&text, |_| true);
        let first = fitting.first().map_or("nothing", |(found, _)| found.key.as_str());
        // Of two that fit as well the order would decide.
        let tied = fitting.get(1).is_some_and(|(second, _)| second.weight() == template.weight());
        if first != template.key || tied {
            wrong.push(format!("{text}: {first}{}", if tied { ", and another as well" } else { "" }));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_text_is_said_with_what_is_in_its_holes() {
    let table = table(&[
        ("failed", "失败"),
        ("{#} cell{|s} {}", "{1} 个单元{2}"),
        ("{=} said {}", "{1} 说：{2}"),
        ("note: {}", "注意：{1}"),
        ("it is warm", "很热"),
        ("load of CPU, GPU and NPU", "占用"),
        ("power", "功率"),
        ("{=} in {=}", "{2} 中的 {1}"),
        ("can't be read: {?}", "无法读取：{1}"),
        ("as they say; it is so", "据说如此"),
    ]);
    for (english, chinese) in [
        ("failed", "失败"),
        ("Failed.", "失败。"),
        ("1 cell failed", "1 个单元失败"),
        ("12 cells failed.", "12 个单元失败。"),
        // A name is no word.
        ("failed said failed", "failed 说：失败"),
        ("Mnn said it is warm.", "Mnn 说：很热。"),
        // A hole at the beginning is one thing, and no list.
        ("x y; z said failed", "x y；z 说：失败"),
        ("x in y; z in y", "y 中的 x；y 中的 z"),
        // Nor is it what a label stands before.
        ("note: x in y", "注意：y 中的 x"),
        ("note: x said failed", "注意：x 说：失败"),
        ("note: it is warm", "注意：很热"),
        ("note: nobody knows this", "注意：nobody knows this"),
        // What no template knows stays, sentence by sentence and clause by clause.
        ("It is warm. Nobody knows why. It is warm.", "很热。Nobody knows why. 很热。"),
        ("it is warm; so they say", "很热；so they say"),
        ("failed (it is warm)", "失败（很热）"),
        ("perf. profile", "perf. profile"),
        ("load of CPU, GPU and NPU and power", "占用和功率"),
        ("mnn, failed", "mnn，失败"),
        ("all who failed, failed", "all who failed, failed"),
        // A template of next to no words takes names, no sentences.
        ("x in y", "y 中的 x"),
        ("some words in y", "some words in y"),
        ("", ""),
        ("12.5–13 %", "12.5–13 %"),
        ("…: failed", "…：失败"),
        ("one cell failed", "one cell failed"),
        // What others say is in quotes where it stays English.
        ("can't be read: it is warm", "无法读取：很热"),
        ("can't be read: nobody knows this", "无法读取：“nobody knows this”"),
        ("can't be read: EIO", "无法读取：EIO"),
        // A figure with its unit and what is in quotes are names.
        ("failed, 12.5 [12, 13] tok/s, \"a b\"", "失败，12.5 [12, 13] tok/s, \"a b\""),
        // What a message begins with is no name in it, whatever its case.
        ("Note: x in y", "注意：y 中的 x"),
        ("error in y", "error in y"),
        // What stands behind a colon may be one template.
        ("x y: as they say; it is so", "x y：据说如此"),
        // A folder is no full stop.
        ("can't be read: .", "无法读取：."),
    ] {
        assert_eq!(said(&table, english), chinese, "{english}");
    }
    // Nothing runs away, however a text is made.
    assert!(said(&table, &"note: ".repeat(5_000)).len() >= 5_000);
    assert!(said(&table, &"x in ".repeat(500)).len() >= 500);
}

#[test]
fn columns_stay_where_they_were() {
    let table =
        table(&[("failed", "失败"), ("verdict of all that was", "判定"), ("{=}  not usable: {}", "{1}  不可用：{2}"), ("late", "太晚")]);
    let speaker = Speaker::new(&table, HashSet::new());
    let line = speaker.line("  failed     verdict of all that was  12.5  ms");
    let (first, second) = (line.find("判定").unwrap(), line.find("12.5").unwrap());
    assert_eq!((line[..first].width(), line[..second].width()), (13, 38), "{line}");
    assert!(line.starts_with("  失败  ") && line.ends_with("  ms"));
    // A longer text moves what is after it, by two blanks at least.
    let wide = Table::read(&[("test", "\"ok\" = \"一切都很正常\"")]).unwrap_or_else(|why| panic!("{why:?}"));
    assert_eq!(Speaker::new(&wide, HashSet::new()).line("ok  x"), "一切都很正常  x");
    assert_eq!(speaker.line("failed  not usable: late"), "failed  不可用：太晚");
    assert_eq!(speaker.line("    failed:"), "    失败：");
}

#[test]
fn a_page_is_said_and_nothing_else_of_it_changes() {
    let table = table(&[("failed", "失败"), ("{} at {=}", "{2}：{1}"), ("salt & pepper", "甲 & 乙"), ("cell", "单元")]);
    let html = concat!(
        "<!doctype html>\n<html lang=\"en\"><head><title>failed</title><style>.failed{color:red}</style>",
        "<script>let failed = '<b>failed</b>';</script></head><body>\n",
        "<p class=\"failed\" title='failed'>\n failed\n <b>x</b> failed at &lt;script&gt;alert(1)&lt;/script&gt;</p>",
        "<svg viewBox=\"0 0 1 1\" aria-label=\"cell\"><text>\n cell\n</text></svg>",
        "<p>salt &amp; pepper</p><code>failed</code><div translate=\"no\"><div>failed</div> cell</div><p title=\"salt &amp; pepper\" data-x=\"failed\">cell</p>",
        "<input title=\"failed\" translate=\"no\"><br>failed<p>7 &lt; 8</p></body></html>",
    );
    let expected = concat!(
        "<!doctype html>\n<html lang=\"zh-CN\"><head><title>失败</title><style>.failed{color:red}</style>",
        "<script>let failed = '<b>failed</b>';</script></head><body>\n",
        "<p class=\"failed\" title=\"失败\">\n 失败\n <b>x</b> &lt;script&gt;alert(1)&lt;/script&gt;：失败</p>",
        "<svg viewBox=\"0 0 1 1\" aria-label=\"单元\"><text>\n 单元\n</text></svg>",
        "<p>甲 &amp; 乙</p><code>failed</code><div translate=\"no\"><div>failed</div> cell</div><p title=\"甲 &amp; 乙\" data-x=\"failed\">单元</p>",
        "<input title=\"failed\" translate=\"no\"><br>失败<p>7 &lt; 8</p></body></html>",
    );
    assert_eq!(page(&table, html), expected);
}

#[test]
fn what_is_called_like_a_word_keeps_its_name() {
    let table = table(&[("failed", "失败"), ("skipped", "跳过"), ("cell", "单元"), ("state: {}", "状态：{1}")]);
    let html = "<h1 translate=\"no\">skipped · cell</h1><td class=\"sub id\">cell</td><b class=\"backend\">failed</b><p>failed · skipped</p><i>state: failed</i><i>cell</i>";
    assert_eq!(page(&table, html), html.replace("state: failed", "状态：failed"));
    assert_eq!(page(&table, "<p>failed</p><i>state: failed</i>"), "<p>失败</p><i>状态：失败</i>");
}

#[test]
fn a_markdown_document_is_said_and_its_signs_stay() {
    let table = table(&[
        ("failed", "失败"),
        ("{=} said {}", "{1} 说：{2}"),
        ("all of {=} at {=}", "{2}：{1} 的全部"),
        ("a|b \"it\"", "甲|乙 “它”"),
    ]);
    let speaker = Speaker::new(&table, HashSet::from(["skipped".to_owned()]));
    for (english, chinese) in [
        ("## Failed", "## 失败"),
        ("- failed", "- 失败"),
        ("- (a) failed", "- (a) 失败"),
        ("> **Failed.** Nobody knows this.", "> **失败。** Nobody knows this."),
        ("| failed | `failed` |  | 12 |", "| 失败 | `failed` |  | 12 |"),
        ("|---|--:|", "|---|--:|"),
        ("<details open><summary>failed</summary>", "<details open><summary>失败</summary>"),
        // Code and links are names that keep their form, wherever they come to stand.
        ("all of `x said y` at [a.csv](failed).", "[a.csv](failed)：`x said y` 的全部。"),
        // What was escaped is matched as it reads, and escaped again.
        ("a&#124;b &#34;it&#34;", "甲&#124;乙 “它”"),
        ("x&#95;y said &#60;b&#62; &#x;", "x&#95;y 说：&#60;b&#62; &#38;&#35;x;"),
        ("skipped said skipped", "skipped 说：skipped"),
        // A text with signs of the private use area can't be told from what stands for code.
        ("\u{e000} said failed, `x`", "\u{e000} said failed, `x`"),
        ("[ ` < said failed", "&#91; &#96; &#60; 说：失败"),
        ("-12 %", "-12 %"),
        ("", ""),
    ] {
        assert_eq!(document(&speaker, english), chinese, "{english}");
    }
    assert_eq!(document(&speaker, "failed\n\n| failed |\n"), "失败\n\n| 失败 |\n");
}

#[test]
fn what_goes_beside_a_page_keeps_its_names() {
    let html = "<b class=\"backend\">failed</b><p>skipped</p>";
    let [english, chinese] = [Lang::En, Lang::Zh].map(|lang| Voice::beside(lang, html));
    assert_eq!(["failed", "skipped"].map(|text| english.text(text)), ["failed", "skipped"]);
    assert_eq!(["failed", "skipped"].map(|text| chinese.text(text)), ["failed", "跳过"]);
    assert_eq!(chinese.markdown("| failed | skipped |"), "| failed | 跳过 |");
    assert_eq!(chinese.html("<text>\nskipped\n</text><text>failed</text>"), "<text>\n跳过\n</text><text>failed</text>");
    assert_eq!(Voice::new(Lang::Zh).text("failed"), "失败");
}
