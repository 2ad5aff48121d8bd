//! Texts without this machine's places: run folders are shared, and committed as examples (design 2b.20).

use std::path::Path;

use crate::runtimes::Cache;

/// Replaces places of this machine by what they are.
#[derive(Debug, Clone)]
pub struct Portable(Vec<(String, &'static str)>);

impl Portable {
    /// For one run folder. `${RUN}`, `${CACHE}` and `${HOME}` stand for their folders, the innermost first.
    pub fn new(run: &Path) -> Self {
        let places = [
            (run.canonicalize().ok(), "${RUN}"),
            (Some(run.to_path_buf()), "${RUN}"),
            (Cache::locate().map(|c| c.0), "${CACHE}"),
            (std::env::var_os("HOME").map(Into::into), "${HOME}"),
        ];
        let known = places.into_iter().filter_map(|(path, name)| Some((path?.to_string_lossy().into_owned(), name)));
        // A short place such as `/` would tear every path apart.
        Self(known.filter(|(path, _)| path.len() > 4).collect())
    }

    /// The text with its places replaced.
    pub fn text(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (path, name)| text.replace(path.as_str(), name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_place_wins() {
        let places = Portable(vec![
            ("/home/u/results/r1".into(), "${RUN}"),
            ("/home/u/.cache/bench".into(), "${CACHE}"),
            ("/home/u".into(), "${HOME}"),
        ]);
        let text = places.text("in /home/u/results/r1/logs: /home/u/.cache/bench/x of /home/u, not /home/other");
        assert_eq!(text, "in ${RUN}/logs: ${CACHE}/x of ${HOME}, not /home/other");
    }
}
