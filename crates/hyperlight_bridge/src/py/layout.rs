//! Places in the guest's memory, for tests that play a hostile guest.
use guest_abi::layout;
use guest_abi::output_window;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Addresses are guest-physical, distances from the end of scratch.
pub fn layout(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in [
        ("page", layout::PAGE),
        ("scratch_end", layout::SCRATCH_END_GPA),
        ("scratch_size_from_end", layout::SCRATCH_SIZE.from_end()),
        ("root_table_from_end", layout::SHIM_STATE.from_end()),
        ("window_from_end", layout::OUTPUT_WINDOW.from_end()),
        ("window_magic", output_window::MAGIC),
        ("stdout_in_window", output_window::stream(false)),
        ("linear_memory", layout::LINEAR_BASE),
    ] {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}
