//! How a first token was timed: what differs in it is never set beside each other (rule R6).

/// Scope and method of a TTFT, and what the program was started from (rule R6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timing<'a> {
    /// ids or text.
    pub scope: &'a str,
    /// token_event, runtime_reported, derived or composed.
    pub method: &'a str,
    /// shell or app; empty where a run does not say.
    pub context: &'a str,
}

impl Timing<'_> {
    /// In words.
    pub fn words(self) -> String {
        let scope = match self.scope {
            "ids" => "from token ids",
            "text" => "from text, tokenisation included",
            _ => "start of the clock unknown",
        };
        let method = match self.method {
            "token_event" => "timed at the token's arrival",
            "runtime_reported" => "as the runtime reports it",
            "derived" => "derived from other figures",
            "composed" => "composed from graph times, a bound that no engine reaches",
            _ => "method unknown",
        };
        let context = match self.context {
            "" => String::new(),
            "shell" => ", started from a shell".to_owned(),
            "app" => ", started by an app".to_owned(),
            other => format!(", started from {other}"),
        };
        format!("{scope}, {method}{context}")
    }

    /// How the decode rates beside it came about: a tool without a time for each token reports its own.
    pub fn decode_words(self) -> &'static str {
        match self.method {
            "token_event" => "(N−1) tokens over the time from the first to the last",
            "runtime_reported" | "derived" => "as the runtime reports it",
            "composed" => "composed from graph times: one step takes the sum over all decode graphs, a bound that no engine reaches",
            _ => "method unknown",
        }
    }
}
