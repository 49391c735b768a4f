//! How a run is handed to the guest.
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use guest_abi::function::guest::{EXECUTE, PLACE_INPUTS};
use guest_abi::inputs;
use guest_abi::outcome::is_plain;
use hyperlight_host::HyperlightError;

use crate::clock;
use crate::error::BridgeError;
use crate::machine::Machine;
use crate::run::RunLimits;
use crate::stop::Stop;

/// What one call can carry, with room for its envelope.
const MAX_MESSAGE_BYTES: usize = 3 << 20;

/// Longest part of the name of a file in the guest.
const MAX_PART_BYTES: usize = 255;

/// Code and inputs as they travel.
pub(crate) struct Message {
    code: String,
    inputs: Vec<u8>,
    /// Names of the tools, one a line.
    tools: String,
}

impl Message {
    /// Checks and encodes.
    ///
    /// # Errors
    /// [`BridgeError::InputName`], [`BridgeError::InputNameTooLong`], [`BridgeError::InputBelowFile`],
    /// [`BridgeError::InputsTooLarge`], [`BridgeError::CodeTooLong`].
    pub fn new(code: String, inputs: &[(String, Vec<u8>)], tools: &[String]) -> Result<Self, BridgeError> {
        let inputs = encode_inputs(inputs)?;
        let limit = MAX_MESSAGE_BYTES - inputs.len();
        if code.len() > limit {
            return Err(BridgeError::CodeTooLong { bytes: code.len(), limit });
        }
        Ok(Self { code, inputs, tools: tools.join("\n") })
    }

    /// Code alone.
    pub fn of(code: &str) -> Self {
        Self { code: code.to_owned(), inputs: Vec::new(), tools: String::new() }
    }
}

/// Has the guest run it. Returns the length of the outcome in the output window.
pub(crate) fn execute(
    machine: &mut Machine,
    stop: &Arc<Stop>,
    deadline: Instant,
    run_id: u64,
    limits: &RunLimits,
    message: Message,
) -> Result<u64, HyperlightError> {
    if !message.inputs.is_empty() {
        machine.call::<u64>(stop, deadline, PLACE_INPUTS, message.inputs)?;
    }
    let [a, b, c, d] = rand::random::<[u64; 4]>();
    let (wall_clock, tsc_hz) = (clock::wall_clock_ns(), clock::tsc_hz());
    let (memory, output) = (limits.memory_bytes, limits.output_bytes);
    let arguments = (run_id, wall_clock, tsc_hz, a, b, c, d, memory, output, message.tools, message.code);
    machine.call(stop, deadline, EXECUTE, arguments)
}

fn check_names(inputs: &[(String, Vec<u8>)]) -> Result<(), BridgeError> {
    let mut names = HashSet::new();
    for (name, _) in inputs {
        if !is_plain(name) || !names.insert(name.as_str()) {
            return Err(BridgeError::InputName { name: name.clone() });
        }
        if name.split('/').any(|part| part.len() > MAX_PART_BYTES) {
            let begin = name.chars().take(100).collect();
            return Err(BridgeError::InputNameTooLong { begin, limit: MAX_PART_BYTES });
        }
    }
    for &name in &names {
        let mut above = name.match_indices('/').map(|(end, _)| &name[..end]);
        if let Some(file) = above.find(|folder| names.contains(folder)) {
            return Err(BridgeError::InputBelowFile { name: name.to_owned(), file: file.to_owned() });
        }
    }
    Ok(())
}

fn encode_inputs(inputs: &[(String, Vec<u8>)]) -> Result<Vec<u8>, BridgeError> {
    check_names(inputs)?;
    let inputs = inputs.iter().map(|(name, content)| (name.as_str(), content.as_slice()));
    let bytes = inputs::encoded_bytes(inputs.clone());
    if bytes > MAX_MESSAGE_BYTES {
        return Err(BridgeError::InputsTooLarge { bytes, limit: MAX_MESSAGE_BYTES });
    }
    Ok(inputs::encode(inputs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_fit_into_one_message_under_plain_names() {
        let encoded = encode_inputs(&[("a".into(), b"xy".to_vec())]).unwrap();
        assert_eq!(inputs::decode(&encoded).collect::<Vec<_>>(), [Ok(("a", b"xy".as_slice()))]);
        for names in [["a", "a"], ["a", "../b"]] {
            let inputs = names.map(|name| (name.to_owned(), Vec::new()));
            assert!(matches!(encode_inputs(&inputs), Err(BridgeError::InputName { name }) if name == names[1]));
        }
        for names in [["a/b", "a"], ["a", "a/b/c"]] {
            let inputs = names.map(|name| (name.to_owned(), Vec::new()));
            assert!(matches!(encode_inputs(&inputs), Err(BridgeError::InputBelowFile { file, .. }) if file == "a"));
        }
        let long = |bytes| encode_inputs(&[(format!("d/{}", "x".repeat(bytes)), Vec::new())]);
        assert!(long(MAX_PART_BYTES).is_ok());
        assert!(
            matches!(long(MAX_PART_BYTES + 1), Err(BridgeError::InputNameTooLong { begin, .. }) if begin.len() == 100)
        );
        let large = encode_inputs(&[("a".into(), vec![0; MAX_MESSAGE_BYTES])]);
        assert!(matches!(large, Err(BridgeError::InputsTooLarge { .. })));
    }
}
