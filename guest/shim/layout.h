/* Fixed guest addresses. Shared by the assembly and the C of the shim.
 *
 * Hyperlight maps all of scratch so that virtual = physical + (SCRATCH_TOP_GVA - SCRATCH_TOP_GPA), keeps its own words in
 * the topmost page, and promises never to hand out the topmost 12 pages. The shim lives in those:
 *
 *   ...fff000  end of scratch
 *   ...ffe000  Hyperlight's metadata words; below them the exception stack (IST1), which grows down from EXCEPTION_STACK
 *   ...ffd000  shim state, two prepared interrupt frames, the stack of the ring-3 handlers
 *   ...ff4000  log of faulting pages, 7 pages; ...ffb000 log of tables that needed the user bit, 1 page
 *   below      the output window (output_window.rs), then whatever the page allocator hands out
 *
 * Scratch is zero after a restore, so a zero in the shim state means "restored since". The host may write a prepared state
 * there right away (crates/hyperlight_bridge/src/prepared.rs). */
#ifndef WCPOD_LAYOUT_H
#define WCPOD_LAYOUT_H

#define SCRATCH_TOP_GVA 0xffffffffffffefff
#define SCRATCH_TOP_GPA 0x0000000fffffffff

#define EXCEPTION_STACK 0xffffffffffffef90
#define SHIM_STATE 0xffffffffffffdf40
#define PREPARED_FRAME 0xffffffffffffdf00
#define PREPARED_MOVE_FRAME 0xffffffffffffdfc0
#define FAULT_STACK 0xffffffffffffde00
#define FAULT_LOG 0xffffffffffff4000
#define FAULT_LOG_ENTRIES 3583
#define TABLE_LOG 0xffffffffffffb000
#define TABLE_LOG_ENTRIES 511
#define STALE_ENTRIES TABLE_LOG /* the log is only kept before the clean state is taken */

/* Linear memories of the component, 8 GiB of addresses each (4 GiB and a guard), mapped page by page as touched. */
#define LINEAR_BASE 0x0000100000000000
#define LINEAR_SHIFT 33
#define LINEAR_MEMORIES 4

/* Where Hyperlight's guest library maps the buffer of every call. */
#define CALL_BUFFERS 0xfffffc0000000000

#define STACK_TOP 0xffffff0000000000
#define STACK_LIMIT 0xfffffe0000000000

#define OUTPUT_WINDOW_PAGES 1160
#define RESERVED_PAGES 12
#define ARENA_PAGES 16 /* of Hyperlight's transport: what a call touches */

#define KERNEL_CODE 0x08
#define KERNEL_DATA 0x10
#define USER_DATA 0x2b /* Linux's selectors: with these the hypervisor returns from ring 3 to ring 3 natively */
#define USER_CODE 0x33
#define TASK_STATE 0x38

#define MODE_RING0 0
#define MODE_RING3 3

#define PORT_ABORT 102
#define PORT_HALT 108

#define VECTOR_GENERAL_PROTECTION 13
#define VECTOR_PAGE_FAULT 14
#define NO_VECTOR 0xff

#endif
