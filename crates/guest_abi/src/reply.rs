//! What a host function answers, as one text: a sign, then a JSON value or a JSON error.
use alloc::format;
use alloc::string::String;

const VALUE: char = '+';
const ERROR: char = '-';

/// Longest reply that fits through the transport, with room for its envelope, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// A reply with a JSON value, or with a JSON error.
#[must_use]
pub fn encode(reply: Result<&str, &str>) -> String {
    match reply {
        Ok(value) => format!("{VALUE}{value}"),
        Err(error) => format!("{ERROR}{error}"),
    }
}

/// The JSON value or the JSON error of a reply; `None` for a text that is none.
#[must_use]
pub fn decode(mut reply: String) -> Option<Result<String, String>> {
    match reply.chars().next()? {
        VALUE => Some(Ok(reply.split_off(VALUE.len_utf8()))),
        ERROR => Some(Err(reply.split_off(ERROR.len_utf8()))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_comes_back_as_it_was() {
        for text in ["", "{}", "+1", "-1", "世"] {
            assert_eq!(decode(encode(Ok(text))), Some(Ok(text.into())));
            assert_eq!(decode(encode(Err(text))), Some(Err(text.into())));
        }
    }

    #[test]
    fn other_texts_are_no_replies() {
        for text in ["", "{}", "世", " +1"] {
            assert_eq!(decode(text.into()), None, "{text:?}");
        }
    }
}
