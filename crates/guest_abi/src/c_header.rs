//! The layout for the C and the assembly of the shim: `guest/shim` compiles against what this returns.
use alloc::format;
use alloc::string::String;

use crate::abort::Abort;
use crate::layout;

/// Words of scratch and places in it, as guest-virtual addresses.
const PLACES: [(&str, layout::Place); 13] = [
    ("FAULT_LOG", layout::FAULT_LOG),
    ("TABLE_LOG", layout::TABLE_LOG),
    ("STALE_ENTRIES", layout::STALE_ENTRIES),
    ("HANDLER_STACK", layout::HANDLER_STACK),
    ("FAULT_FRAME", layout::FAULT_FRAME),
    ("MOVE_FRAME", layout::MOVE_FRAME),
    ("EXCEPTION_STACK", layout::EXCEPTION_STACK),
    ("SHIM_STATE", layout::SHIM_STATE),
    ("OUTPUT_WINDOW", layout::OUTPUT_WINDOW),
    ("SCRATCH_SIZE", layout::SCRATCH_SIZE),
    ("NEXT_PAGE", layout::NEXT_PAGE),
    ("FIRST_TABLE", layout::FIRST_TABLE),
    ("TRANSPORT_ARENA", layout::TRANSPORT_ARENA),
];

const NUMBERS: [(&str, u64); 20] = [
    ("PAGE_BYTES", layout::PAGE),
    ("SCRATCH_END_GVA", layout::SCRATCH_END_GVA),
    ("SCRATCH_END_GPA", layout::SCRATCH_END_GPA),
    ("RESERVED_PAGES", layout::RESERVED_PAGES),
    ("OUTPUT_WINDOW_PAGES", layout::OUTPUT_WINDOW_PAGES),
    ("FAULT_LOG_ENTRIES", layout::FAULT_LOG_ENTRIES as u64),
    ("TABLE_LOG_ENTRIES", layout::TABLE_LOG_ENTRIES as u64),
    ("LINEAR_BASE", layout::LINEAR_BASE),
    ("LINEAR_SHIFT", layout::LINEAR_SHIFT),
    ("LINEAR_MEMORIES", layout::LINEAR_MEMORIES),
    ("CALL_BUFFERS", layout::CALL_BUFFERS),
    ("ARENA_PAGES", layout::ARENA_PAGES),
    ("STACK_TOP", layout::STACK_TOP),
    ("STACK_LIMIT", layout::STACK_LIMIT),
    ("MODE_RING0", layout::RING_0),
    ("MODE_RING3", layout::RING_3),
    ("PORT_ABORT", layout::PORT_ABORT),
    ("PORT_HALT", layout::PORT_HALT),
    ("ABORT_EXCEPTION", Abort::Exception as u64),
    ("ABORT_OUT_OF_SCRATCH", Abort::OutOfScratch as u64),
];

/// The text of `layout.h`.
#[must_use]
pub fn c_header() -> String {
    let places = PLACES.map(|(name, place)| (name, place.gva()));
    let defines: String =
        NUMBERS.iter().chain(&places).map(|(name, value)| format!("#define {name} {value:#x}\n")).collect();
    format!(
        "/* Made by crates/guest_abi, which says what these are. */\n#ifndef WCPOD_LAYOUT_H\n#define WCPOD_LAYOUT_H\n\n\
         {defines}\n#ifndef __ASSEMBLER__\ntypedef unsigned long u64;\n\n{}\n{}#endif\n\n#endif\n",
        layout::ShimState::C,
        layout::KnownTouches::C,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_numbers_and_words() {
        let header = c_header();
        for line in [
            "#define SHIM_STATE 0xffffffffffffdf40",
            "#define NEXT_PAGE 0xffffffffffffeff0",
            "#define PORT_ABORT 0x66",
            "struct shim_state {",
            "  /* Physical address of the root table. */",
            "  u64 root;",
            "  u64 stale_count;",
        ] {
            assert!(header.lines().any(|found| found == line), "{line} in\n{header}");
        }
    }
}
