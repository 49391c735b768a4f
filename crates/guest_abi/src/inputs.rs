//! Files for a run, on their way below /input: for each a block with its name and a block with its content.
use alloc::vec::Vec;

use crate::block::{self, Malformed, Reader};

/// Size of the encoded inputs, in bytes.
pub fn encoded_bytes<'a>(inputs: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> usize {
    inputs.into_iter().map(|(name, content)| 2 * block::OVERHEAD + name.len() + content.len()).sum()
}

/// Encodes names and contents.
pub fn encode<'a>(inputs: impl IntoIterator<Item = (&'a str, &'a [u8])> + Clone) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(encoded_bytes(inputs.clone()));
    for (name, content) in inputs {
        block::put(&mut bytes, name.as_bytes());
        block::put(&mut bytes, content);
    }
    bytes
}

/// Names and contents, one after the other, up to the first that is malformed.
pub fn decode(bytes: &[u8]) -> impl Iterator<Item = Result<(&str, &[u8]), Malformed>> {
    let mut reader = Reader(bytes);
    core::iter::from_fn(move || {
        if reader.is_empty() {
            return None;
        }
        let input = one(&mut reader);
        if input.is_err() {
            reader = Reader(&[]);
        }
        Some(input)
    })
}

fn one<'a>(reader: &mut Reader<'a>) -> Result<(&'a str, &'a [u8]), Malformed> {
    let name = core::str::from_utf8(reader.block()?).map_err(|_| Malformed)?;
    Ok((name, reader.block()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUTS: [(&str, &[u8]); 3] = [("a.txt", b"xy"), ("b/世", b""), ("", &[0xff, 0])];

    #[test]
    fn inputs_come_back_as_they_were() {
        let encoded = encode(INPUTS);
        assert_eq!(encoded.len(), encoded_bytes(INPUTS));
        assert_eq!(decode(&encoded).collect::<Result<Vec<_>, _>>().unwrap(), INPUTS);
        assert_eq!(decode(&[]).count(), 0);
    }

    #[test]
    fn cut_inputs_end_in_one_error() {
        let encoded = encode(INPUTS);
        let whole = [0, encode(INPUTS[..1].iter().copied()).len(), encode(INPUTS[..2].iter().copied()).len()];
        for end in (0..encoded.len()).filter(|end| !whole.contains(end)) {
            let decoded: Vec<_> = decode(&encoded[..end]).collect();
            assert_eq!(decoded.last(), Some(&Err(Malformed)), "{end} bytes");
            assert_eq!(decoded.iter().filter(|input| input.is_err()).count(), 1);
        }
    }
}
