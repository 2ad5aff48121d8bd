//! A model's own chat template: the Jinja text that its publisher ships beside `tokenizer.json`, rendered as Hugging Face's `transformers`
//! does (`apply_chat_template` with one user message and `add_generation_prompt`).

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::Duration,
};

use minijinja::{Environment, Error, ErrorKind, context, syntax::SyntaxConfig};
use serde_json::Value;
use thiserror::Error as ThisError;

/// The file that holds the template alone, in models published since 2025.
const TEMPLATE: &str = "chat_template.jinja";
/// The file that holds the special tokens, and the template in older ones.
const CONFIG: &str = "tokenizer_config.json";
/// Larger than any; one that lists its added tokens has some MB.
const MAX_BYTES: u64 = 64 << 20;
/// Steps of the template's program for one prompt: it may be anybody's, and must end.
const FUEL: u64 = 1 << 20;
/// The longest template that is read: published ones have some kB.
const MAX_SOURCE: usize = 256 << 10;
/// The longest prompt that one may give. Real ones add some hundred characters to the message.
const MAX_RENDERED: usize = 1 << 20;
/// Templates nest, and values that they make too: reading and writing them takes stack for each level.
const STACK: usize = 512 << 20;
/// Fuel counts steps, and one step can write a value that doubled sixty times.
const LONGEST: Duration = Duration::from_secs(10);
/// Name of the template in messages.
const NAME: &str = "chat template";

/// Why there is no chat template that can be used.
#[derive(Debug, ThisError)]
pub enum ChatError {
    /// None is there.
    #[error("no chat template is beside {0}: it would be {TEMPLATE}, or `chat_template` in {CONFIG}, of the model's publisher")]
    Missing(PathBuf),
    /// A file can't be used.
    #[error("{}: {why}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The template fails.
    #[error("the chat template beside {} can't be applied: {why}", .tokenizer.display())]
    Template {
        /// The model's tokenizer.
        tokenizer: PathBuf,
        /// In the words of the template's engine.
        why: String,
    },
}

/// A chat template with the special tokens that it may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatTemplate {
    source: String,
    /// Text of the token that begins texts.
    pub bos: Option<String>,
    eos: Option<String>,
    tokenizer: PathBuf,
}

impl ChatTemplate {
    /// The template beside a `tokenizer.json`, tried once.
    ///
    /// # Errors
    /// [`ChatError`].
    pub fn beside(tokenizer: &Path) -> Result<Self, ChatError> {
        let config: Value = match read(&tokenizer.with_file_name(CONFIG))? {
            None => Value::Null,
            Some(text) => serde_json::from_str(&text)
                .map_err(|e| ChatError::Unreadable { path: tokenizer.with_file_name(CONFIG), why: format!("not JSON: {e}") })?,
        };
        // A special token is a text, or an object that has it.
        let token = |key: &str| config[key].as_str().or(config[key]["content"].as_str()).map(str::to_owned);
        let source = read(&tokenizer.with_file_name(TEMPLATE))?.or_else(|| default(&config["chat_template"]).map(str::to_owned));
        let source = source.ok_or_else(|| ChatError::Missing(tokenizer.to_owned()))?;
        let template = Self { source, bos: token("bos_token"), eos: token("eos_token"), tokenizer: tokenizer.to_owned() };
        template.render("It").map(|_| template)
    }

    /// A user's message as the model is to see it, up to where its answer begins.
    ///
    /// # Errors
    /// The template fails, or does not hold the message.
    pub fn render(&self, message: &str) -> Result<String, ChatError> {
        let failed = |why: String| ChatError::Template { tokenizer: self.tokenizer.clone(), why };
        if self.source.len() > MAX_SOURCE {
            return Err(failed(format!("it has {} bytes, more than any", self.source.len())));
        }
        let (send, receive) = mpsc::channel();
        let (own, text) = (self.clone(), message.to_owned());
        let work = move || send.send(own.rendered(&text)).unwrap_or_default();
        // One that does not end is left behind: it ends with bench.
        thread::Builder::new().stack_size(STACK).spawn(work).map_err(|e| failed(e.to_string()))?;
        let why = |_| failed(format!("it did not end within {} s", LONGEST.as_secs()));
        let text = receive.recv_timeout(LONGEST).map_err(why)?.map_err(failed)?;
        if text.contains(message.trim()) { Ok(text) } else { Err(failed("it leaves the message out, or changes it".to_owned())) }
    }

    fn rendered(&self, message: &str) -> Result<String, String> {
        let mut environment = Environment::new();
        let trimmed = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(trimmed.expect("the usual marks"));
        environment.set_fuel(Some(FUEL));
        // Templates call methods of Python's texts and lists. There is no `strftime_now`: a prompt must not depend on the day.
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |words: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, words))
        });
        let words = |e: &Error| e.to_string().lines().next().unwrap_or_default().to_owned();
        let mut text = Bounded::default();
        let rendered = environment.template_from_named_str(NAME, &self.source).and_then(|template| {
            let messages = minijinja::Value::from_iter([context! { role => "user", content => message }]);
            let mut words = BTreeMap::from([("messages", messages), ("add_generation_prompt", true.into())]);
            // A token that the model does not have is no variable either.
            let tokens = [("bos_token", &self.bos), ("eos_token", &self.eos)];
            words.extend(tokens.into_iter().filter_map(|(name, token)| Some((name, token.as_deref()?.into()))));
            template.render_captured_to(words, &mut text).map(drop)
        });
        // The engine says of it no more than that it could not write.
        if text.full {
            return Err(format!("the prompt that it makes is longer than {MAX_RENDERED} bytes"));
        }
        rendered.map_err(|e| words(&e))?;
        String::from_utf8(text.bytes).map_err(|e| e.to_string())
    }

    /// The template's text and special tokens, for whoever has to know that they are still the same.
    pub fn bytes(&self) -> Vec<u8> {
        format!("{}\0{:?}\0{:?}", self.source, self.bos, self.eos).into_bytes()
    }
}

/// A text of bounded length.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    full: bool,
}
impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_RENDERED {
            self.full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The template of a configuration: a text, or several by name.
fn default(value: &Value) -> Option<&str> {
    let named = |all: &'_ Vec<Value>| all.iter().position(|one| one["name"] == "default");
    value.as_str().or_else(|| value.as_array().and_then(|all| all[named(all)?]["template"].as_str()))
}

/// A file's text; `None` where it is not there.
fn read(path: &Path) -> Result<Option<String>, ChatError> {
    let bad = |why: String| ChatError::Unreadable { path: path.to_owned(), why };
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(bad(e.to_string())),
        Ok(found) if found.len() > MAX_BYTES => return Err(bad(format!("{} bytes are more than any has", found.len()))),
        Ok(_) => {}
    }
    fs::read_to_string(path).map(Some).map_err(|e| bad(e.to_string()))
}

#[cfg(test)]
#[path = "chat/tests.rs"]
mod tests;
