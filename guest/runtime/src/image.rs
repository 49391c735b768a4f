//! What is linked into the image: the compiled component and the Python standard library.
use core::arch::global_asm;
use core::ptr::NonNull;

// Wasmtime runs the component's code where it lies, so it is in an executable section, on a page of its own.
global_asm!(
    ".pushsection .text.component, \"ax\", @progbits",
    ".balign 4096",
    ".global wcpod_component, wcpod_component_end",
    "wcpod_component:",
    concat!(".incbin \"", env!("WCPOD_COMPONENT"), "\""),
    "wcpod_component_end:",
    ".balign 4096",
    ".popsection",
    ".pushsection .rodata.stdlib, \"a\", @progbits",
    ".balign 4096",
    ".global wcpod_stdlib, wcpod_stdlib_end",
    "wcpod_stdlib:",
    concat!(".incbin \"", env!("WCPOD_STDLIB"), "\""),
    "wcpod_stdlib_end:",
    ".balign 4096",
    ".popsection",
);

unsafe extern "C" {
    static wcpod_component: u8;
    static wcpod_component_end: u8;
    static wcpod_stdlib: u8;
    static wcpod_stdlib_end: u8;
}

/// The ahead-of-time compiled component.
pub fn component() -> NonNull<[u8]> {
    let begin = &raw const wcpod_component;
    let length = &raw const wcpod_component_end as usize - begin as usize;
    NonNull::slice_from_raw_parts(NonNull::new(begin.cast_mut()).unwrap_or(NonNull::dangling()), length)
}

/// The archive of the standard library, in the format of `guest/wasi`.
pub fn stdlib() -> &'static [u8] {
    let begin = &raw const wcpod_stdlib;
    let length = &raw const wcpod_stdlib_end as usize - begin as usize;
    // SAFETY: the two symbols delimit read-only bytes of the image.
    unsafe { core::slice::from_raw_parts(begin, length) }
}

/// What the host looks for before it boots an image.
#[used]
static INTERFACE: &str = guest_abi::interface::MARKED;
