//! Names of the files of pages of trends.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

/// A file for each name: `device-R5CX1234567.html`. Its name, as far as a file may be called so; a hash follows where that is not the whole name,
/// and where two would be one file, as they would on macOS and Windows if they differ in case alone.
pub fn files<'a>(what: &str, names: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
    let names: BTreeSet<&str> = names.into_iter().collect();
    let mut claims: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for name in &names {
        for form in [plain(name), hashed(name)] {
            claims.entry(form.to_ascii_lowercase()).or_default().insert(name);
        }
    }
    let form = |name: &str| {
        let own = plain(name);
        if own == name && !own.is_empty() && claims[&own.to_ascii_lowercase()].len() == 1 { own } else { hashed(name) }
    };
    names.iter().map(|name| ((*name).to_owned(), format!("{what}-{}.html", form(name)))).collect()
}

fn plain(name: &str) -> String {
    let may = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.chars().map(|c| if may(c) { c } else { '-' }).take(60).collect()
}

fn hashed(name: &str) -> String {
    format!("{}-{}", plain(name), crate::hex(&Sha256::digest(name.as_bytes())[..4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Vec<String> {
        let files = files("device", names.iter().copied());
        names.iter().map(|name| files[*name].clone()).collect()
    }

    #[test]
    fn a_plain_name_is_its_file() {
        assert_eq!(of(&["R5CX1234567", "llama-3.2-3b"]), ["device-R5CX1234567.html", "device-llama-3.2-3b.html"]);
        // The hashes are those of sha256sum.
        assert_eq!(of(&["10.0.0.7:5555"]), ["device-10.0.0.7-5555-91509339.html"]);
        assert_eq!(of(&[""]), ["device--e3b0c442.html"]);
    }

    #[test]
    fn no_two_share_a_file_whatever_the_file_system_makes_of_case() {
        // printf pixel | sha256sum, printf Pixel | sha256sum
        assert_eq!(of(&["pixel", "Pixel", "other"]), ["device-pixel-3f8d7379.html", "device-Pixel-5817280a.html", "device-other.html"]);
        // One that is called as the file of another, one that is cut off, and those of which a file can say nothing.
        let long = "x".repeat(70);
        let names = [
            "a.b",
            "a:b",
            "a/b",
            "../x",
            "",
            "<script>",
            "10.0.0.7:5555",
            "10.0.0.7-5555-91509339",
            "A.B",
            &long,
            &long[..60],
            &long[..61],
        ];
        let made = of(&names);
        assert!(made.iter().all(|name| !name.contains(['/', '<', '>', ':'])), "{made:?}");
        assert_eq!(made.iter().map(|name| name.to_ascii_lowercase()).collect::<BTreeSet<_>>().len(), names.len(), "{made:?}");
    }
}
