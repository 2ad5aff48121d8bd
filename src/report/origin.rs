//! What a page is made of, as its own head says: so a page of two runs, for another use, in another language or of another `bench` is told from a
//! run's own, and that of a run whose folder is called the same from this one's.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use minijinja::HtmlEscape;
use serde::{Deserialize, Serialize};

use super::page::look;
use crate::{
    lang,
    results::{folder::id_of, manifest::FILE},
    safe::visible,
    scenario::Preset,
};

/// The tag of a page's head is within so many bytes, if the page is of one run: names have [`LONGEST`] signs at most, and the policy before it 300.
const HEAD: u64 = 16 << 10;
/// Signs of an id that are kept.
const LONGEST: usize = 255;

const BEGIN: &str = "<meta name=\"bench:made-of\" content=\"";

/// What a page is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The names of the runs' folders.
    runs: Vec<String>,
    /// The runs' own ids, which stay when a folder gets another name; none where a manifest does not tell.
    ids: Vec<Option<String>>,
    /// Version of `bench`.
    tool: String,
    /// Tells its templates from those of another build.
    look: String,
    lang: String,
    #[serde(rename = "use")]
    use_case: Option<String>,
}

impl Origin {
    /// Of a page of these runs, made now by this program.
    pub fn of(runs: &[PathBuf], use_case: Option<&Preset>) -> Self {
        let name = |run: &PathBuf| visible(&id_of(&run.canonicalize().unwrap_or_else(|_| run.clone())));
        Self {
            runs: runs.iter().map(name).collect(),
            ids: runs.iter().map(|run| id(run)).collect(),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            look: look().to_owned(),
            lang: format!("{:?}", lang::spoken()).to_lowercase(),
            use_case: use_case.map(|preset| preset.name.clone()),
        }
    }

    /// What a page says that it is made of.
    pub fn read(page: &Path) -> Option<Self> {
        let head = head(page)?;
        let escaped = head.split_once(BEGIN)?.1.split_once("\">")?.0;
        serde_json::from_str(&unescaped(escaped)).ok()
    }

    /// The tag in the head of a page.
    pub fn tag(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{BEGIN}{}\">", HtmlEscape(&text))
    }

    /// The run of the page that is there, where that is another one, and its folder only has the same name.
    pub fn another(&self, page: &Path) -> Option<String> {
        let there = Self::read(page)?;
        let (own, other) = (self.ids.first()?.as_ref()?, there.ids.first()?.as_ref()?);
        (self.runs.first() == there.runs.first() && own != other).then(|| other.clone())
    }
}

/// The id in a run's manifest.
fn id(run: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Head {
        run: String,
    }
    let path = run.join(FILE);
    // A pipe would be waited for.
    let bytes = path.metadata().is_ok_and(|found| found.is_file()).then(|| fs::read(&path).ok())??;
    let Head { run } = serde_json::from_slice(&bytes).ok()?;
    Some(visible(&run).chars().take(LONGEST).collect())
}

/// Whether a file's head holds this tag.
pub fn says(page: &Path, tag: &str) -> bool {
    head(page).is_some_and(|head| head.contains(tag))
}

/// The head of a page. What is no regular file has none, and is not opened: a pipe would be waited for.
fn head(page: &Path) -> Option<String> {
    let mut head = Vec::new();
    page.metadata().ok().filter(fs::Metadata::is_file)?;
    File::open(page).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// What [`HtmlEscape`] was given.
fn unescaped(text: &str) -> String {
    let signs = [("&quot;", "\""), ("&#x27;", "'"), ("&#x2f;", "/"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    signs.into_iter().fold(text.to_owned(), |text, (escaped, sign)| text.replace(escaped, sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_markup_and_a_tag_is_found_in_the_head_alone() {
        let runs = [PathBuf::from("/x/a\"><script>"), PathBuf::from("b&quot;'/../b&amp;quot;")];
        let origin = Origin { look: "0a1b".to_owned(), ..Origin::of(&runs, crate::scenario::preset("glasses")) };
        let version = env!("CARGO_PKG_VERSION");
        let tag = origin.tag();
        assert_eq!(
            tag,
            format!(
                "<meta name=\"bench:made-of\" content=\"{{&quot;runs&quot;:[&quot;a\\&quot;&gt;&lt;script&gt;&quot;,\
                &quot;b&amp;amp;quot;&quot;],&quot;ids&quot;:[null,null],&quot;tool&quot;:&quot;{version}&quot;,\
                &quot;look&quot;:&quot;0a1b&quot;,&quot;lang&quot;:&quot;en&quot;,&quot;use&quot;:&quot;glasses&quot;}}\">"
            )
        );
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("index.html");
        assert!(!says(&page, &tag) && !says(dir.path(), &tag) && Origin::read(&page).is_none());
        fs::write(&page, format!("<head>\u{e9}{tag}</head>")).unwrap();
        assert!(says(&page, &tag) && Origin::read(&page) == Some(origin.clone()));
        assert_ne!(Origin::of(&runs, None), Origin { use_case: None, ..origin.clone() }, "another build's templates are told");
        fs::write(&page, format!("{}{tag}", " ".repeat(20_000))).unwrap();
        assert!(!says(&page, &tag) && Origin::read(&page).is_none());
    }

    #[test]
    fn another_run_in_a_folder_of_the_same_name_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("index.html");
        let of = |folder: &str, id: Option<&str>| {
            let run = dir.path().join(folder);
            fs::create_dir_all(&run).unwrap();
            let manifest = id.map_or_else(|| "{\"run".to_owned(), |id| format!("{{\"run\": \"{id}\"}}"));
            fs::write(run.join(FILE), manifest).unwrap();
            Origin::of(&[run], None)
        };
        assert_eq!(of("a/x", Some("1")).another(&page), None, "no page is there");
        fs::write(&page, of("a/x", Some("1")).tag()).unwrap();
        assert_eq!(of("b/x", Some("2")).another(&page).as_deref(), Some("1"));
        // The same run elsewhere, one that does not tell, and what is called otherwise.
        for (folder, id) in [("b/x", Some("1")), ("b/x", None), ("b/y", Some("2"))] {
            assert_eq!(of(folder, id).another(&page), None, "{folder}");
        }
    }
}
