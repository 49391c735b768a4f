//! memcpy and its family: the compiler's own exist only for targets without a libc. Long runs use `rep movsb`, short ones
//! 16-byte moves; none may be compiled into a call to itself.
use core::arch::asm;
use core::arch::x86_64::{_mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8, _mm_storeu_si128};

const LONG: usize = 512;

/// # Safety
/// As memcpy; `from` may also lie above `to`.
#[inline(always)]
unsafe fn copy_forward(mut to: *mut u8, mut from: *const u8, mut count: usize) {
    // SAFETY: the caller vouches for `count` bytes on both sides.
    unsafe {
        if count >= LONG {
            asm!("rep movsb", inout("rcx") count => _, inout("rdi") to => _, inout("rsi") from => _,
                 options(nostack, preserves_flags));
            return;
        }
        while count >= 16 {
            _mm_storeu_si128(to.cast(), _mm_loadu_si128(from.cast()));
            to = to.add(16);
            from = from.add(16);
            count -= 16;
        }
        while count > 0 {
            to.write(read_byte(from));
            to = to.add(1);
            from = from.add(1);
            count -= 1;
        }
    }
}

/// # Safety
/// `from` must be readable.
#[inline(always)]
unsafe fn read_byte(from: *const u8) -> u8 {
    let byte: u8;
    // SAFETY: the caller vouches for it. Assembly, because a plain loop becomes a call of memcpy.
    unsafe {
        asm!("mov {byte}, byte ptr [{from}]", byte = out(reg_byte) byte, from = in(reg) from, options(nostack, readonly, preserves_flags));
    }
    byte
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { copy_forward(to, from, count) };
    to
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the caller's promise; an overlap with `to` above `from` is copied backwards.
    unsafe {
        if (to as usize).wrapping_sub(from as usize) >= count {
            copy_forward(to, from, count);
        } else {
            let mut left = count;
            while left >= 16 {
                left -= 16;
                let chunk = _mm_loadu_si128(from.add(left).cast());
                _mm_storeu_si128(to.add(left).cast(), chunk);
            }
            while left > 0 {
                left -= 1;
                to.add(left).write(read_byte(from.add(left)));
            }
        }
    }
    to
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memset(to: *mut u8, byte: i32, count: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        if count >= LONG {
            asm!("rep stosb", inout("rcx") count => _, inout("rdi") to => _, in("al") byte as u8,
                 options(nostack, preserves_flags));
            return to;
        }
        let chunk = _mm_set1_epi8(byte as i8);
        let mut at = 0;
        while at + 16 <= count {
            _mm_storeu_si128(to.add(at).cast(), chunk);
            at += 16;
        }
        while at < count {
            asm!("mov byte ptr [{to}], {byte}", to = in(reg) to.add(at), byte = in(reg_byte) byte as u8, options(nostack, preserves_flags));
            at += 1;
        }
    }
    to
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, count: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        let mut at = 0;
        while at + 16 <= count {
            let equal = _mm_cmpeq_epi8(_mm_loadu_si128(a.add(at).cast()), _mm_loadu_si128(b.add(at).cast()));
            let mask = _mm_movemask_epi8(equal) as u32;
            if mask != 0xffff {
                let first = at + (!mask).trailing_zeros() as usize;
                return i32::from(a.add(first).read()) - i32::from(b.add(first).read());
            }
            at += 16;
        }
        while at < count {
            let (x, y) = (read_byte(a.add(at)), read_byte(b.add(at)));
            if x != y {
                return i32::from(x) - i32::from(y);
            }
            at += 1;
        }
    }
    0
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, count: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { memcmp(a, b, count) }
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let mut count = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while read_byte(text.add(count)) != 0 {
            count += 1;
        }
    }
    count
}

/// Named by the precompiled core library; panics abort, so it is never called.
#[unsafe(no_mangle)]
pub extern "C" fn rust_eh_personality() {}

/// As above.
#[unsafe(no_mangle)]
pub extern "C" fn _Unwind_Resume() -> ! {
    hyperlight_guest::exit::abort()
}
