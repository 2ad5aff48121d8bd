//! Templates of the shapes that published models have, written out here; what they give is written by hand.

use std::fs;

use serde_json::json;

use super::*;

/// ChatML, as in Qwen and many others: no BOS.
const CHATML: &str = "{%- for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\n' + message.content.strip() + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
";
/// With BOS, a default date, a namespace and a check of the roles, as in the models of Llama's and Gemma's kind.
const HEADERS: &str = "{{ bos_token }}
{%- if strftime_now is defined %}{% set date = strftime_now('%d') %}{% else %}{% set date = '26 Jul 2024' %}{% endif %}
{%- set seen = namespace(users=0) -%}
{%- for message in messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}
    {%- set seen.users = seen.users + 1 %}
    {%- if tools is defined %}{{ tools | tojson }}{% endif %}
    {{- '<h>' ~ message.role ~ '</h> ' ~ date ~ ' ' ~ (message['content'] | trim) ~ eos_token }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<h>model</h>' }}{% endif %}";

struct Model(tempfile::TempDir);
impl Model {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        Self(dir)
    }
    fn template(&self) -> Result<ChatTemplate, ChatError> {
        ChatTemplate::beside(&self.0.path().join("tokenizer.json"))
    }
}

#[test]
fn a_message_stands_where_the_template_puts_it() {
    let config = json!({"bos_token": null, "eos_token": "<|im_end|>", "chat_template": CHATML}).to_string();
    let chatml = Model::new(&[("tokenizer_config.json", &config)]).template().unwrap();
    assert_eq!(chatml.render("Say it.").unwrap(), "<|im_start|>user\nSay it.<|im_end|>\n<|im_start|>assistant\n");
    // The file alone is what newer models have; it stands before the configuration's.
    let config = json!({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": [{"name": "tool_use", "template": "x"},
        {"name": "default", "template": HEADERS}]});
    let config = config.to_string();
    let headers = Model::new(&[("tokenizer_config.json", &config)]).template().unwrap();
    assert_eq!(headers.render("Say it.").unwrap(), "<s><h>user</h> 26 Jul 2024 Say it.</s><h>model</h>");
    assert_eq!(headers.bos.as_deref(), Some("<s>"));
    let newer = Model::new(&[("tokenizer_config.json", &config), ("chat_template.jinja", CHATML)]).template().unwrap();
    assert!(newer.render("Say it.").unwrap().starts_with("<|im_start|>user\nSay it."));
    assert_ne!((newer.bytes(), chatml.bytes()), (headers.bytes(), newer.bytes()));
}

#[test]
fn what_is_missing_or_fails_is_named() {
    let says = |files: &[(&str, &str)]| Model::new(files).template().unwrap_err().to_string();
    let missing = says(&[("tokenizer_config.json", r#"{"bos_token": "<s>"}"#)]);
    assert!(missing.contains("no chat template is beside") && missing.contains("chat_template.jinja"), "{missing}");
    assert!(says(&[]).contains("no chat template is beside"));
    assert!(says(&[("tokenizer_config.json", "{")]).contains("not JSON"));
    assert!(says(&[("tokenizer_config.json", r#"{"chat_template": [{"name": "rag", "template": "x"}]}"#)]).contains("no chat template"));
    for (template, words) in [
        ("{% for m in messages %}", "unexpected end"),
        ("{{ raise_exception('no system role') }}", "no system role"),
        ("{{ strftime_now('%d') }}{{ messages[0].content }}", "strftime_now"),
        ("{% generation %}{{ messages[0].content }}{% endgeneration %}", "generation"),
        ("no place for the words", "leaves the message out"),
        ("{{ messages[0].content | upper }}", "leaves the message out, or changes it"),
        ("{% for a in range(9999) %}{% for b in range(9999) %}{{ b }}{% endfor %}{% endfor %}", "fuel"),
    ] {
        let said = says(&[("chat_template.jinja", template)]);
        assert!(said.contains(words) && !said.contains('\n'), "{template}: {said}");
    }
    // Whatever is left of one when it is cut anywhere.
    for end in 0..HEADERS.len() {
        let _ = Model::new(&[("chat_template.jinja", &HEADERS[..end])]).template();
    }
}

#[test]
fn hostile_templates_are_refused_and_end() {
    let chain = |link: &str, n: usize| format!("{{{{ messages[0].content{} }}}}", link.repeat(n));
    let doubled = "{% set ns = namespace(x=messages) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}{{ messages[0].content }}";
    let long = "{% for i in range(90000) %}{{ messages[0].content * 20 }} {% endfor %}";
    let of = |template: &str| Model::new(&[("chat_template.jinja", template)]).template().map(|template| template.render("It").unwrap());
    let why = |template: &str| of(template).unwrap_err().to_string();
    // Thirty thousand levels: more than the stack of a usual thread holds.
    assert_eq!(of(&chain("|e", 30_000)).unwrap(), "It");
    assert!(why(&chain(".b", 30_000)).contains("undefined value"));
    assert!(why(&chain("|e", 200_000)).contains("400025 bytes, more than any"));
    for endless in [doubled, long] {
        assert!(why(endless).contains("the prompt that it makes is longer than 1048576 bytes"), "{}", why(endless));
    }
}
