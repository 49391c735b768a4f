//! A guest that was taken over, for tests of the host (`tests/sandbox/test_hostile_guest.py`): it does, in place of the
//! code of a run, what no guest of ours does. Only with the feature `hostile`; such an image is never packaged.
use alloc::string::String;
use alloc::{format, vec};
use core::arch::asm;
use core::ptr;

use guest_abi::function::guest::EXECUTE;
use guest_abi::function::host::{CALL_TOOL, FETCH_URL, SLEEP};
use guest_abi::layout;
use hyperlight_common::flatbuffer_wrappers::function_call::FunctionCall;
use hyperlight_common::flatbuffer_wrappers::function_types::{ParameterValue, ReturnValue};
use hyperlight_common::flatbuffer_wrappers::guest_error::ErrorCode;
use hyperlight_guest::bail;
use hyperlight_guest::error::Result;
use hyperlight_guest::exit::{debug_print, write_abort};
use hyperlight_guest_bin::host_comm::call_host;

/// What a run's code begins with when it is a command for this guest.
const MARK: &str = "#hostile:";

fn say(text: &str) {
    crate::output_window::write(false, text.as_bytes());
}

/// Answers a call of `Execute`, which is not registered in this guest; some answers are of the wrong type.
pub fn answer(call: &FunctionCall) -> Option<Result<ReturnValue>> {
    if call.function_name != EXECUTE {
        return None;
    }
    let parameters = call.parameters.as_deref().unwrap_or_default();
    let number = |index: usize| match parameters.get(index) {
        Some(ParameterValue::ULong(value)) => *value,
        _ => 0,
    };
    let text = |index: usize| match parameters.get(index) {
        Some(ParameterValue::String(value)) => value.clone(),
        _ => String::new(),
    };
    let code = text(10);
    Some(match code.strip_prefix(MARK).map(str::trim) {
        Some("answer string") => Ok(ReturnValue::String("x".into())),
        Some("answer int") => Ok(ReturnValue::Int(1)),
        Some("answer void") => Ok(ReturnValue::Void(())),
        Some("answer huge") => Ok(ReturnValue::ULong(u64::MAX)),
        Some("answer bytes") => Ok(ReturnValue::VecBytes(vec![7; 3 << 20])),
        Some("answer error") => refuse(&"\x1b[31mred\n".repeat(20_000)),
        _ => Ok(ReturnValue::ULong(crate::execute(
            number(0),
            number(1),
            number(2),
            number(3),
            number(4),
            number(5),
            number(6),
            number(7),
            number(8),
            text(9),
            code,
        ))),
    })
}

fn refuse(text: &str) -> Result<ReturnValue> {
    bail!(ErrorCode::GuestError => "{}", text)
}

/// Does what the code of a run asks for, if it is a command.
pub fn act(code: &str) {
    let Some(command) = code.strip_prefix(MARK).map(str::trim) else { return };
    let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
    match word {
        "print" => say(&format!("{:?}\n", call_host::<i32>("HostPrint", (String::from(rest),)).is_ok())),
        "print-loop" => loop {
            let _ = call_host::<i32>("HostPrint", (rest.repeat(1000),));
        },
        "debug" => debug_print(rest),
        "flood-tools" => {
            let name = "x".repeat(rest.parse().unwrap_or(60_000));
            loop {
                let _ = call_host::<String>(CALL_TOOL, (name.clone(), String::from("{}")));
            }
        }
        "flood-fetches" => loop {
            let _ = call_host::<String>(FETCH_URL, ("https://x/".repeat(5000), 0_u64, String::from("text")));
        },
        "sleep-loop" => loop {
            let _ = call_host::<u64>(SLEEP, (0_u64,));
        },
        "unknown-function" => say(&format!("{}\n", call_host::<String>("NoSuch\x1b[31m", ()).is_err())),
        "wrong-arguments" => say(&format!("{}\n", call_host::<String>(FETCH_URL, (1_i32,)).is_err())),
        "wrong-result" => {
            let answer = call_host::<i32>(CALL_TOOL, (String::from("ping"), String::from("{}")));
            say(&format!("{}\n", answer.is_err()));
        }
        // SAFETY: what these do to the guest is the purpose; it is thrown away afterwards.
        "halt" => unsafe { asm!("hlt") },
        "port" => unsafe { asm!("out dx, eax", in("dx") rest.parse::<u16>().unwrap_or(0), in("eax") 0x41_u32) },
        "abort" => {
            write_abort(&[1]);
            write_abort(rest.repeat(1000).as_bytes());
            write_abort(&[0xff]);
        }
        "ever-more-output" => loop {
            lie(|written| written.wrapping_add(1 << 22), 1 << 19);
        },
        "endless-output" => {
            lie(|_| u64::MAX, u64::MAX);
            loop {
                core::hint::spin_loop();
            }
        }
        "endless-tables" => link_root_to_itself(),
        _ => say("what?\n"),
    }
}

/// Overwrites what the header of the output window says of both streams.
fn lie(written: impl Fn(u64) -> u64, room: u64) {
    let header = layout::OUTPUT_WINDOW.gva() as *mut u64;
    for stream in 0..2 {
        // SAFETY: the window is mapped; nothing but the host reads what is written, which is the purpose.
        unsafe {
            let words = header.add(2 + 3 * stream);
            ptr::write_volatile(words.add(1), room);
            ptr::write_volatile(words.add(2), room);
            ptr::write_volatile(words, written(ptr::read_volatile(words)));
        }
    }
}

/// Has unused entries of the root table lead to the root: whoever follows them never comes to an end.
fn link_root_to_itself() {
    let root: u64;
    // SAFETY: reads a register; in ring 3 the shim does it.
    unsafe { asm!("mov {}, cr3", out(reg) root, options(nomem, nostack)) };
    let root = root & !0xfff;
    let entries = root.wrapping_add(layout::SCRATCH_END_GVA.wrapping_sub(layout::SCRATCH_END_GPA)) as *mut u64;
    for index in 100..200 {
        // SAFETY: tables lie in scratch, which is mapped at a constant distance; the machine is thrown away afterwards.
        unsafe {
            if ptr::read_volatile(entries.add(index)) == 0 {
                ptr::write_volatile(entries.add(index), root | 7);
            }
        }
    }
}
