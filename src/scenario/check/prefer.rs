//! `[prefer]`: weights of which at least one counts, or a use case.

use super::{
    super::{prefer::Prefer, value::At, wire},
    Context,
};

impl Context<'_> {
    pub(super) fn prefer(&mut self, at: &At<wire::Prefer>) -> Prefer {
        let written = at.value.weights();
        let weights = written.iter().filter(|(_, weight)| weight.value > 0.0).map(|(word, weight)| ((*word).to_owned(), weight.value));
        let prefer = Prefer { use_case: at.value.r#use.as_ref().map(|word| word.value.clone()), weights: weights.collect() };
        // What is missing may be what was misspelt, which has been said already.
        if prefer.weights.is_empty() && !self.is_damaged("prefer") {
            let help = "give for instance `ttft = 2` and `decode = 1`, or `use = \"chat-assistant\"`".to_owned();
            if !written.is_empty() {
                self.out.error(at.span(), "every weight of [prefer] is 0, so that nothing is preferred", help);
            } else if prefer.use_case.is_none() {
                self.out.error(at.span(), "[prefer] says nothing", help);
            }
        }
        prefer
    }
}
