//! What a page may do in a browser: run our script, use our style sheet, and nothing else.

use sha2::{Digest, Sha256};

/// The Content-Security-Policy of a page that holds exactly this style sheet and this script, both named by their hash: what a device or a
/// model might bring in is neither run nor applied, and nothing is loaded from anywhere.
pub fn policy(style: &str, script: &str) -> String {
    let (style, script) = (source(style), source(script));
    format!("default-src 'none'; script-src {script}; style-src {style}; base-uri 'none'; form-action 'none'")
}

/// A hash source as CSP level 3 writes it.
fn source(text: &str) -> String {
    format!("'sha256-{}'", base64(&Sha256::digest(text)))
}

/// RFC 4648, section 4: six bits a letter, padded.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letters = |three: &[u8]| {
        let bits = (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(three.get(at).copied().unwrap_or(0)));
        let letter = move |at: usize| char::from(LETTERS[(bits >> (18 - 6 * at) & 63) as usize]);
        let known = three.len() + 1;
        (0..4).map(move |at| if at < known { letter(at) } else { '=' })
    };
    bytes.chunks(3).flat_map(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::{base64, source};

    #[test]
    fn hashes_are_those_of_other_programs() {
        // printf 'alert(1)' | openssl dgst -sha256 -binary | base64
        assert_eq!(source("alert(1)"), "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='");
        // The test vectors of RFC 4648, section 10.
        assert_eq!(
            ["", "f", "fo", "foo", "foob", "foobar"].map(|text| base64(text.as_bytes())),
            ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmFy"]
        );
    }
}
