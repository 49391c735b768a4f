//! Fixed places in the guest's memory.
//!
//! Hyperlight maps all of scratch a constant above its physical addresses, keeps its own words at the very end, and promises
//! never to hand out the topmost pages: in those the shim lives ([`ReservedPages`]). Below them is the output window, below
//! that whatever the page allocator hands out.
//!
//! Scratch is zero after a restore, so a zero in the shim's state means "restored since". The host may write a prepared state
//! there right away.
use core::mem::offset_of;

use hyperlight_common::layout as hyperlight;
pub use hyperlight_common::layout::{
    SCRATCH_TOP_ALLOCATOR_OFFSET, SCRATCH_TOP_SIZE_OFFSET, SCRATCH_TOP_SNAPSHOT_GENERATION_OFFSET,
    SCRATCH_TOP_SNAPSHOT_PT_GPA_BASE_OFFSET, SCRATCH_TOP_TRANSPORT_ARENA_GPA_OFFSET,
};
use hyperlight_common::outb::{OutBAction, VmAction};

/// Size of a page, in bytes.
pub const PAGE: u64 = 4096;
/// End of scratch, guest-virtual.
pub const SCRATCH_END_GVA: u64 = hyperlight::SCRATCH_TOP_GVA as u64 + 1;
/// End of scratch, guest-physical.
pub const SCRATCH_END_GPA: u64 = hyperlight::SCRATCH_TOP_GPA as u64 + 1;
/// Pages at the end of scratch that are never handed out.
pub const RESERVED_PAGES: u64 = hyperlight::SCRATCH_TOP_RESERVED_PAGES as u64;
/// Pages of the output window.
pub const OUTPUT_WINDOW_PAGES: u64 = 1160;

/// Where Hyperlight's guest library maps the buffer of every call.
pub const CALL_BUFFERS: u64 = hyperlight::VIRTQ_BUFFER_GVA_START;
/// Pages of Hyperlight's transport that a call touches.
pub const ARENA_PAGES: u64 = 16;
/// Hyperlight's port for giving up.
pub const PORT_ABORT: u64 = OutBAction::Abort as u64;
/// Hyperlight's port for being done.
pub const PORT_HALT: u64 = VmAction::Halt as u64;

/// Linear memories of the component: so many, 2 to the power of [`LINEAR_SHIFT`] bytes of addresses each, a reservation and
/// a guard, mapped page by page as touched.
pub const LINEAR_MEMORIES: u64 = 4;
/// Where the first one begins.
pub const LINEAR_BASE: u64 = 0x0000_1000_0000_0000;
/// Distance of two, as a power of two.
pub const LINEAR_SHIFT: u64 = 33;
/// Most bytes that one may have. Wasmtime is configured with this and the next, in the guest and ahead of time.
pub const LINEAR_RESERVATION: u64 = 4 << 30;
/// Bytes behind them that are never mapped.
pub const LINEAR_GUARD: u64 = 32 << 20;

/// The runtime's stack grows down from here, page by page as touched.
pub const STACK_TOP: u64 = 0xffff_ff00_0000_0000;
/// The lowest address of the stack.
pub const STACK_LIMIT: u64 = 0xffff_fe00_0000_0000;

/// Everything runs in ring 0.
pub const RING_0: u64 = 0;
/// Everything but the shim runs in ring 3.
pub const RING_3: u64 = 3;

/// A place in scratch, counted from its end as Hyperlight counts its own words there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(u64);

impl Place {
    const fn of_reserved(offset: usize) -> Self {
        Self((size_of::<ReservedPages>() - offset) as u64)
    }

    /// Bytes from here to the end of scratch.
    #[must_use]
    pub const fn from_end(self) -> u64 {
        self.0
    }

    /// Its guest-virtual address.
    #[must_use]
    pub const fn gva(self) -> u64 {
        SCRATCH_END_GVA - self.0
    }
}

/// The output window.
pub const OUTPUT_WINDOW: Place = Place((RESERVED_PAGES + OUTPUT_WINDOW_PAGES) * PAGE);

/// Declares words that lie side by side, for Rust and for C.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident as $c:literal { $($(#[doc = $what:literal])* $word:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[repr(C)]
        pub struct $name { $($(#[doc = $what])* pub $word: u64,)* }

        impl $name {
            /// The same in C.
            pub const C: &str = concat!(
                "struct ", $c, " {\n", $($("  /*", $what, " */\n",)* "  u64 ", stringify!($word), ";\n",)* "};\n"
            );
        }
    };
}

words! {
    /// The shim's state.
    ShimState as "shim_state" {
        /// Physical address of the root table.
        root,
        /// `RING_3` once the tables were prepared for it.
        mode,
        /// 1 once the tables and the known pages were prepared.
        ready,
        /// Address of the entry that maps the first table page (ring-3 mode).
        alias,
        /// Set by the host: halt once prepared.
        only_prepare,
        /// Set by the host (ring-3 mode): so many entries to write anew, listed in STALE_ENTRIES.
        stale_count,
    }
}

words! {
    /// What a run is known to touch; set by the runtime before the clean state is taken. As long as nothing is known, faults
    /// are logged.
    KnownTouches as "known_touches" {
        /// How many pages it dirties.
        page_count,
        /// Address of their addresses.
        pages,
        /// How many 2 MiB it uses.
        table_count,
        /// Address of the first address of each.
        tables,
    }
}

/// A log: how many entries there are, and the entries.
#[derive(Debug)]
#[repr(C)]
pub struct Log<const ENTRIES: usize> {
    count: u64,
    entries: [u64; ENTRIES],
}

/// What `iretq` takes off the stack: instruction pointer, code segment, flags, stack pointer, stack segment.
type InterruptFrame = [u64; 5];

/// Entries of the log of faulting pages.
pub const FAULT_LOG_ENTRIES: usize = 7 * 512 - 1;
/// Entries of the log of tables that needed the user bit.
pub const TABLE_LOG_ENTRIES: usize = 512 - 1;
/// Most stale entries that the shim writes anew: they take the place of the log of tables, which is only kept before the
/// clean state is taken.
pub const MOST_STALE: usize = size_of::<Log<TABLE_LOG_ENTRIES>>() / size_of::<u64>();

/// The topmost pages of scratch, in ascending order of addresses.
#[derive(Debug)]
#[repr(C)]
pub struct ReservedPages {
    spare: [u8; PAGE as usize],
    fault_log: Log<FAULT_LOG_ENTRIES>,
    table_log: Log<TABLE_LOG_ENTRIES>,
    /// Of the handlers in ring 3; it grows down from its end.
    handler_stack: [u8; 0x1e00],
    behind_handler_stack: [u8; 0x100],
    /// Prepared: ring 0 returns to the page-fault handler in ring 3 with it.
    fault_frame: InterruptFrame,
    behind_fault_frame: [u64; 3],
    state: ShimState,
    behind_state: [u64; 10],
    /// Prepared: the same for moves from and to control registers.
    move_frame: InterruptFrame,
    behind_move_frame: [u64; 3],
    /// Of ring 0 (IST1); it grows down from its end.
    exception_stack: [u8; (PAGE - hyperlight::SCRATCH_TOP_EXN_STACK_OFFSET) as usize],
    hyperlights_words: [u8; hyperlight::SCRATCH_TOP_EXN_STACK_OFFSET as usize],
}

const _: () = {
    assert!(size_of::<ReservedPages>() as u64 == RESERVED_PAGES * PAGE);
    assert!((offset_of!(ReservedPages, fault_log) as u64).is_multiple_of(PAGE));
    assert!((offset_of!(ReservedPages, table_log) as u64).is_multiple_of(PAGE));
    // What the shim makes reachable for ring 3 first: the page of the frames and the state, and the one behind it.
    assert!(offset_of!(ReservedPages, exception_stack) as u64 == (RESERVED_PAGES - 1) * PAGE);
    assert!(HANDLER_STACK.from_end() / PAGE == 1 && HANDLER_STACK.gva().is_multiple_of(16));
    assert!(EXCEPTION_STACK.gva().is_multiple_of(16), "the processor aligns the frames that it pushes");
    assert!(LINEAR_RESERVATION + LINEAR_GUARD <= 1 << LINEAR_SHIFT);
    assert!(LINEAR_BASE + (LINEAR_MEMORIES << LINEAR_SHIFT) < 1 << 47, "an address of the lower half");
    assert!(STACK_LIMIT >= hyperlight::VIRTQ_BUFFER_GVA_END && STACK_TOP < SCRATCH_END_GVA);
};

/// Log of faulting pages.
pub const FAULT_LOG: Place = Place::of_reserved(offset_of!(ReservedPages, fault_log));
/// Log of tables that needed the user bit.
pub const TABLE_LOG: Place = Place::of_reserved(offset_of!(ReservedPages, table_log));
/// Addresses of table entries to write anew.
pub const STALE_ENTRIES: Place = TABLE_LOG;
/// Where the stack of the handlers in ring 3 begins.
pub const HANDLER_STACK: Place = Place::of_reserved(offset_of!(ReservedPages, behind_handler_stack));
/// Prepared frame of the page-fault handler.
pub const FAULT_FRAME: Place = Place::of_reserved(offset_of!(ReservedPages, fault_frame));
/// Prepared frame of the handler of privileged moves.
pub const MOVE_FRAME: Place = Place::of_reserved(offset_of!(ReservedPages, move_frame));
/// Where the exception stack begins.
pub const EXCEPTION_STACK: Place = Place::of_reserved(offset_of!(ReservedPages, hyperlights_words));
/// The shim's state.
pub const SHIM_STATE: Place = Place::of_reserved(offset_of!(ReservedPages, state));
/// Its word that says whether the guest is prepared.
pub const READY: Place = Place::of_reserved(offset_of!(ReservedPages, state.ready));
/// Its word that has the guest halt once prepared.
pub const ONLY_PREPARE: Place = Place::of_reserved(offset_of!(ReservedPages, state.only_prepare));
/// Its word that says how many table entries are to be written anew.
pub const STALE_COUNT: Place = Place::of_reserved(offset_of!(ReservedPages, state.stale_count));
/// Bytes of both prepared frames and of what lies between them: with the state, what the host keeps of a prepared guest.
pub const PREPARED_BYTES: usize = offset_of!(ReservedPages, exception_stack) - offset_of!(ReservedPages, fault_frame);
/// Hyperlight's word with the size of scratch.
pub const SCRATCH_SIZE: Place = Place(SCRATCH_TOP_SIZE_OFFSET);
/// Hyperlight's word with the next page that the guest will take.
pub const NEXT_PAGE: Place = Place(SCRATCH_TOP_ALLOCATOR_OFFSET);
/// Hyperlight's word with the address of the first page table.
pub const FIRST_TABLE: Place = Place(SCRATCH_TOP_SNAPSHOT_PT_GPA_BASE_OFFSET);
/// Hyperlight's word with the generation of the snapshot; here begin the four words that it writes at every restore:
/// generation, first table, next page, size.
pub const GENERATION: Place = Place(SCRATCH_TOP_SNAPSHOT_GENERATION_OFFSET);
/// Hyperlight's word with the address of the transport's arena.
pub const TRANSPORT_ARENA: Place = Place(SCRATCH_TOP_TRANSPORT_ARENA_GPA_OFFSET);

const _: () = {
    let words = [GENERATION.0, FIRST_TABLE.0, NEXT_PAGE.0, SCRATCH_SIZE.0];
    assert!(
        words[0] == 32 && words[1] == 24 && words[2] == 16 && words[3] == 8,
        "the words that the host reads at once"
    );
};
