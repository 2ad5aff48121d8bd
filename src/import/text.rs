//! What was found as files: a geometry, and a scenario that measures it.

use std::{
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Component, Path, PathBuf},
};

use bench_backend_api::Quant;

use super::{
    error::ImportError,
    found::{Chip, Found},
};
use crate::device::soc;

/// Prompt lengths that are measured where the context has room for them.
const PROMPTS: [u32; 3] = [128, 512, 1024];
const GENERATED: u32 = 128;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The scenario, if a backend of this version runs the model.
    pub scenario: Option<PathBuf>,
    /// The geometry.
    pub geometry: PathBuf,
}

/// Writes geometry and scenario to `out/models/<name>.toml` and `out/<name>.toml`. Without a backend that runs it (`runs` is false) there
/// is no scenario to write.
///
/// # Errors
/// Files that are there already, unless `force`; something that a scenario needs and nobody tells; the file system.
pub fn write(found: &Found, out: &Path, runs: bool, force: bool) -> Result<Written, ImportError> {
    let geometry = out.join("models").join(format!("{}.toml", found.name));
    let path = out.join(format!("{}.toml", found.name));
    let text = if runs { Some(scenario(found, out)?) } else { None };
    // Nothing is written if something can't be.
    for file in std::iter::once(&geometry).chain(text.is_some().then_some(&path)) {
        if file.exists() && !force {
            return Err(ImportError::Exists(file.clone()));
        }
    }
    save(&geometry, &shape(found), force)?;
    if let Some(text) = &text {
        save(&path, text, force)?;
    }
    Ok(Written { scenario: text.map(|_| path), geometry })
}

fn save(path: &Path, text: &str, force: bool) -> Result<(), ImportError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(ImportError::io(folder))?;
    }
    let mut options = OpenOptions::new();
    options.write(true).truncate(force).create(force).create_new(!force);
    options.open(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(ImportError::io(path))
}

/// Text as TOML writes it in quotes.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The geometry: only what is known.
fn shape(found: &Found) -> String {
    let g = &found.shape;
    let mut text = format!(
        "# What `bench import` found of this model's shape. What it could not find is left out: add it if you know it.\nname = {}\n",
        quoted(&found.name)
    );
    let mut line = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "{key} = {value}");
        }
    };
    let number = |n: Option<u32>| n.map(|n| n.to_string());
    let float = |f: Option<f64>| f.map(|f| format!("{f:?}"));
    line("layers", number(g.layers));
    line("hidden", number(g.hidden));
    line("heads", number(g.heads));
    line("kv-heads", number(g.kv_heads));
    line("head-dim", number(g.head_dim));
    line("ffn", number(g.ffn));
    line("vocab", number(g.vocab));
    line("rope-theta", float(g.rope_theta));
    line("norm-eps", float(g.norm_eps));
    line("tied-embeddings", g.tied_embeddings.then(|| "true".to_owned()));
    line("experts", number(Some(g.experts).filter(|n| *n > 0)));
    line("lm-head-bits", number(Some(g.lm_head_bits).filter(|n| *n > 0)));
    line("embedding-bits", number(Some(g.embedding_bits).filter(|n| *n > 0)));
    line("bos", number(g.bos));
    line("eos", number(g.eos));
    line("pad", number(g.pad));
    let unknown = found.unknown();
    if !unknown.is_empty() {
        let _ = writeln!(text, "# not found: {}", unknown.join(", "));
    }
    text
}

fn scenario(found: &Found, out: &Path) -> Result<String, ImportError> {
    let need = |what, option| ImportError::NotTold { what, path: found.root.clone(), option };
    let context = found.context.ok_or_else(|| need("the context length", "--context 4096"))?;
    let quant = found.quant.ok_or_else(|| need("the class of the quantisation", "--quant w4a16"))?;
    let device = device(&found.chip).ok_or_else(|| need("the SoC that the context binaries were made for", "--device-soc SM8650"))?;
    let root = relative(out, &found.root)?;
    let file = |name: &str| if root.is_empty() { name.to_owned() } else { format!("{root}/{name}") };
    let (prompts, generated) = lengths(context, found.chunk.unwrap_or(128));
    let prompts: Vec<String> = prompts.iter().map(u32::to_string).collect();

    // A folder's name may hold a line break, which would end the comment.
    let shown: String = root.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let mut text = format!("# {} imported from {shown}\n#\n", capital(found.kind));
    let _ = writeln!(
        text,
        "# Paths are relative to this file. `bench check` reads it without a device, `bench plan` says how long it takes.\n"
    );
    let _ = writeln!(text, "name = {}\n\n{device}", quoted(&found.name));
    let _ = writeln!(text, "[models.{}]", quoted(&found.name));
    let _ = writeln!(text, "context = {context}             # tokens of prompt and answer together: what the files were made for");
    if let Some(chunk) = found.chunk {
        let _ = writeln!(text, "chunk = {}                  # tokens that one run of the prefill graph takes (its AR)", chunk.min(context));
    }
    let _ = writeln!(text, "geometry = {}   # what is known of its shape", quoted(&format!("models/{}.toml", found.name)));
    if let Some(tokenizer) = &found.tokenizer {
        let _ =
            writeln!(text, "tokenizer = {}   # prompts of exactly the asked number of tokens are made with it", quoted(&file(tokenizer)));
    }
    let _ = writeln!(text, "\n[[artifact]]\nmodel = {}", quoted(&found.name));
    let _ = writeln!(text, "quant = {}\nbackend = {}", quoted(quant.as_str()), quoted(found.backend));
    if let Some(config) = &found.config {
        let _ = writeln!(text, "config = {}", quoted(&file(config)));
    }
    let _ = writeln!(text, "files = [");
    for name in &found.files {
        // Files are patterns: what means something in one is taken as it is.
        let _ = writeln!(text, "    {},", quoted(&glob::Pattern::escape(&file(name))));
    }
    let _ = writeln!(text, "]\n\n# Every combination of these lists is measured.\n[matrix]");
    let _ = writeln!(text, "backend = [{}]\nmodel = {}\nquant = {}", quoted(found.backend), quoted(&found.name), quoted(quant.as_str()));
    let _ = writeln!(text, "prompt-tokens = [{}]   # prefilled, BOS included", prompts.join(", "));
    let _ = writeln!(text, "gen-tokens = {generated}                 # the first of them comes from the prefill\n");
    let _ = writeln!(text, "[measure]\nqueries = 3                      # measured in each launch, after one that is thrown away");
    let _ = writeln!(text, "repetitions = {{ min = 5 }}        # launches of each cell");
    let _ = writeln!(text, "timeout = \"10m\"                  # of one launch, loading included\n");
    let _ = writeln!(text, "# There is no reference to compare the tokens of a real model with.\n[verify]\nreference = \"none\"");
    Ok(text)
}

/// Prompt lengths and generated tokens for which a context has room, beside a last chunk that is not full.
fn lengths(context: u32, chunk: u32) -> (Vec<u32>, u32) {
    let fits = |prompt: &u32| prompt + GENERATED <= context && *prompt <= context.saturating_sub(chunk.min(context)) + 1;
    let prompts: Vec<u32> = PROMPTS.into_iter().filter(fits).collect();
    if prompts.is_empty() { (vec![(context / 4).max(1)], (context / 8).max(1)) } else { (prompts, GENERATED) }
}

/// The device: the chip that the files were made for, else every phone there is; `None` if only a part of the chip is known.
fn device(chip: &Chip) -> Option<String> {
    // A compiler that was told no SoC leaves a name that is none: then the number of the HTP's configuration tells it.
    let named = || chip.soc.as_deref().and_then(soc::find);
    let numbered = || soc::catalogue().iter().find(|s| Some(s.soc_model) == chip.soc_model);
    let known = named().or_else(numbered).map(|s| s.soc.clone());
    let Some(part) = known.or_else(|| chip.soc.clone()) else {
        let files_are_for_any = chip.soc_model.is_none() && chip.htp_arch.is_none();
        return files_are_for_any
            .then(|| "[device]\nall = true                       # every phone that adb lists; or soc = \"SM8650\"\n".to_owned());
    };
    let mut text = format!("[device]\nsoc = {}                   # phones and boards with this SoC, over adb\n", quoted(&part));
    if soc::find(&part).is_none() {
        // A chip that the catalogue does not have is stated in full.
        let _ = writeln!(text, "soc-model = {}\nhexagon = \"v{}\"", chip.soc_model?, chip.htp_arch?);
    }
    Some(text)
}

/// The way from one folder to another, `/` between folders; absolute where there is none.
fn relative(from: &Path, to: &Path) -> Result<String, ImportError> {
    // The folder of the scenario may be about to be made.
    fs::create_dir_all(from).map_err(ImportError::io(from))?;
    let real = |path: &Path| fs::canonicalize(path).map_err(ImportError::io(path));
    let (base, target) = (real(from)?, real(to)?);
    let utf8 = |path: &Path| path.to_str().map(str::to_owned).ok_or_else(|| ImportError::bad(path, "a path that is not UTF-8"));
    let (mut a, mut b) = (base.components().peekable(), target.components().peekable());
    if a.peek() != b.peek() {
        return utf8(&target);
    }
    while a.peek().is_some() && a.peek() == b.peek() {
        a.next();
        b.next();
    }
    let up = a.filter(|c| matches!(c, Component::Normal(_))).map(|_| "..".to_owned());
    let down = b.map(|c| utf8(Path::new(c.as_os_str()))).collect::<Result<Vec<_>, _>>()?;
    Ok(up.chain(down).collect::<Vec<_>>().join("/"))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A class by its word, for the option of the command line.
pub fn quant_of(word: &str) -> Result<Quant, String> {
    let known: Vec<&str> = Quant::ALL.iter().map(|q| q.as_str()).collect();
    Quant::parse(word).ok_or_else(|| format!("one of {}", known.join(", ")))
}
