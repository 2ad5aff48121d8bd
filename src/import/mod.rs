//! `bench import`: from the folder or file that a user has to a scenario, a geometry and its artifact.
//!
//! ```text
//! look (which kind, what its files tell) -> Found -> text (scenario and geometry as TOML) -> write
//! ```
//!
//! The files are somebody else's and hostile: sizes are checked before anything is read, and nothing found is taken for granted. What
//! could not be found is absent from what is written, and said.

mod binary;
mod error;
mod files;
mod found;
mod genai;
mod genie;
mod gguf;
mod look;
mod mnn;
mod model;
mod onnx;
mod quantisation;
mod text;
mod yaml;

pub(crate) use binary::Told;
pub use error::ImportError;
pub(crate) use files::text as small_text;
pub use found::{Chip, Fact, Found};
pub use look::look;
pub(crate) use model::part_of;
pub(crate) use quantisation::quantisation;
pub use text::{Written, quant_of, write};

#[cfg(test)]
mod tests {
    mod folder;
    mod genie;
    mod gguf;
    mod others;
    mod quantisation;
}
