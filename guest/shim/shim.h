/* Types and small primitives of the shim. Integer instructions only: see entry.S. */
#ifndef WCPOD_SHIM_H
#define WCPOD_SHIM_H

#include "layout.h"
#include "machine.h"

#define PAGE ((u64)PAGE_BYTES)
#define WORD(place) (*(volatile u64 *)(place))

/* Page-table entries. COPY_ON_WRITE and OF_ZEROS are Hyperlight's: a non-present entry with OF_ZEROS stands for a page that is
 * made of zeros when first touched, with its rights in the bits below. */
#define PRESENT 1UL
#define WRITABLE 2UL
#define USER 4UL
#define ACCESSED 0x20UL
#define DIRTY 0x40UL
#define COPY_ON_WRITE 0x200UL
#define NO_EXECUTE (1UL << 63)
#define ADDRESS_MASK 0x000ffffffffff000UL
#define OF_ZEROS 4UL
#define ZEROS_WRITABLE (1UL << 9)
#define ZEROS_EXECUTABLE (1UL << 10)

/* Error code of a page fault. */
#define FAULT_PRESENT 1UL
#define FAULT_WRITE 2UL

/* Tables: entries, and bytes that a last-level one maps. */
#define ENTRIES 512
#define TABLE_BYTES (ENTRIES * PAGE)

/* Zero after a restore, unless the host has written back what was prepared (prepared.rs). */
#define STATE ((volatile struct shim_state *)SHIM_STATE)
/* Within one page. */
extern struct known_touches known __attribute__((aligned(32)));

/* What ring 3 reads as CR0: paging, write protection, protected mode. Writes are ignored. */
#define CR0 0x80010033UL

extern u32 shim_mode;
extern u64 shim_linear_end[LINEAR_MEMORIES];

static inline u64 *physical(u64 address) { return (u64 *)(address + (SCRATCH_END_GVA - SCRATCH_END_GPA)); }
static inline u64 read_cr3(void) {
  u64 value;
  __asm__ volatile("mov %%cr3, %0" : "=r"(value));
  return value & ADDRESS_MASK;
}
static inline void invalidate(u64 address) { __asm__ volatile("invlpg (%0)" ::"r"(address) : "memory"); }
static inline void out32(u16 port, u32 value) { __asm__ volatile("outl %0, %1" ::"a"(value), "d"(port)); }

/* trap.c */
__attribute__((noreturn)) void shim_abort(u8 code, u64 vector, u64 rip, u64 address, u64 error, const char *text);

#endif
