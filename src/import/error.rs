//! Why nothing could be imported.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Why nothing could be imported.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what its name says.
    #[error("{path}: {why}")]
    Bad {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing that is known.
    #[error(
        "{path} is nothing that can be imported. Looked for:\n\
         \x20 a Genie or AI Hub bundle: a folder with genie_config.json, *.bin and tokenizer.json\n\
         \x20 an onnxruntime-genai model: a folder with genai_config.json\n\
         \x20 an MNN model: a folder with config.json or llm_config.json, and llm.mnn\n\
         \x20 a llama.cpp model: a file *.gguf, or a folder with one"
    )]
    Unknown {
        /// What was looked at.
        path: PathBuf,
    },
    /// A folder with several models.
    #[error("{path} holds several models, name one of them: {}", .files.join(", "))]
    Several {
        /// The folder.
        path: PathBuf,
        /// Its models.
        files: Vec<String>,
    },
    /// Something that the scenario can't do without was not found.
    #[error("{what} could not be found in {path}: name it, for instance {option}")]
    NotTold {
        /// What.
        what: &'static str,
        /// The folder or file.
        path: PathBuf,
        /// The option that names it.
        option: &'static str,
    },
    /// There is a file already.
    #[error("{0} is there already: name another with --name or --out, or write over it with --force")]
    Exists(PathBuf),
}

impl ImportError {
    pub(super) fn bad(path: &std::path::Path, why: impl Into<String>) -> Self {
        Self::Bad { path: path.to_owned(), why: why.into() }
    }

    pub(super) fn io(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}
