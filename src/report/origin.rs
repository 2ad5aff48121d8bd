//! What a page is made of, as its own head says: so a page of two runs, for another use or in another language is told from a run's own.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use minijinja::HtmlEscape;

use crate::{lang, results::folder::id_of, safe::visible, scenario::Preset};

/// The tag of a page's head is within so many bytes, if the page is of one run: a name has 255 at most, and the policy before it 300.
const HEAD: u64 = 16 << 10;

/// The tag in the head of a page of these runs, made now by this program.
pub fn tag(runs: &[PathBuf], use_case: Option<&Preset>) -> String {
    let name = |run: &PathBuf| visible(&id_of(&run.canonicalize().unwrap_or_else(|_| run.clone())));
    let made_of = serde_json::json!({
        "runs": runs.iter().map(name).collect::<Vec<_>>(),
        "tool": env!("CARGO_PKG_VERSION"),
        "lang": format!("{:?}", lang::spoken()).to_lowercase(),
        "use": use_case.map(|preset| &preset.name),
    });
    format!("<meta name=\"bench:made-of\" content=\"{}\">", HtmlEscape(&made_of.to_string()))
}

/// Whether a file's head holds this tag. What is no regular file holds none, and is not opened: a pipe would be waited for.
pub fn says(page: &Path, tag: &str) -> bool {
    let mut head = Vec::new();
    page.metadata().is_ok_and(|found| found.is_file())
        && File::open(page).is_ok_and(|file| file.take(HEAD).read_to_end(&mut head).is_ok())
        && String::from_utf8_lossy(&head).contains(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_markup_and_a_tag_is_found_in_the_head_alone() {
        let runs = [PathBuf::from("/x/a\"><script>"), PathBuf::from("b")];
        let tag = tag(&runs, crate::scenario::preset("glasses"));
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            tag,
            format!(
                "<meta name=\"bench:made-of\" content=\"{{&quot;runs&quot;:[&quot;a\\&quot;&gt;&lt;script&gt;&quot;,\
                &quot;b&quot;],&quot;tool&quot;:&quot;{version}&quot;,&quot;lang&quot;:&quot;en&quot;,&quot;use&quot;:&quot;glasses&quot;}}\">"
            )
        );
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("index.html");
        assert!(!says(&page, &tag) && !says(dir.path(), &tag));
        std::fs::write(&page, format!("<head>\u{e9}{tag}</head>")).unwrap();
        assert!(says(&page, &tag) && !says(&page, &super::tag(&runs, None)) && !says(&page, &super::tag(&runs[..1], None)));
        std::fs::write(&page, format!("{}{tag}", " ".repeat(20_000))).unwrap();
        assert!(!says(&page, &tag));
    }
}
