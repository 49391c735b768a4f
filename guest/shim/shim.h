/* Types and small primitives of the shim. Integer instructions only: see entry.S. */
#ifndef WCPOD_SHIM_H
#define WCPOD_SHIM_H

#include "layout.h"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

#define SHIM __attribute__((section("shim_text")))
#define PAGE 4096UL

/* Page-table entries. Bits 9 and 2 are Hyperlight's: bit 9 marks copy-on-write, and in a non-present entry bit 2 marks a
 * page that is made of zeros when first touched, with its rights in bits 8 to 10. */
#define PRESENT 1UL
#define WRITABLE 2UL
#define USER 4UL
#define ACCESSED 0x20UL
#define DIRTY 0x40UL
#define COPY_ON_WRITE 0x200UL
#define NO_EXECUTE (1UL << 63)
#define ADDRESS_MASK 0x000ffffffffff000UL

/* Zero after a restore, unless the host has written back what was prepared (prepared.rs). */
struct shim_state {
  u64 root;         /* physical address of the root table */
  u64 mode;         /* MODE_RING3 once the tables were prepared for it; 0 is MODE_RING0 */
  u64 ready;        /* 1 once the tables and the known pages were prepared */
  u64 *alias;       /* the entry that maps the first table page (ring-3 mode) */
  u64 only_prepare; /* set by the host: halt once prepared */
  u64 stale_count;  /* set by the host (ring-3 mode): so many entries to write anew, listed in STALE_ENTRIES */
};
/* What a run is known to touch; set by the runtime before the snapshot. As long as nothing is known, faults are logged. */
struct known_touches {
  u64 page_count;
  u64 *pages;       /* pages that it dirties */
  u64 table_count;
  u64 *tables;      /* first address of each 2 MiB that it uses */
} __attribute__((aligned(32)));
extern struct known_touches known;
#define STATE ((volatile struct shim_state *)SHIM_STATE)

/* What the processor and an entry stub leave on the exception stack. */
struct trap_frame {
  u64 r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
  u64 error, rip, cs, rflags, rsp, ss;
};
struct fault_frame {
  u64 cr2, rax, error, rip, cs, rflags, rsp, ss;
};

/* What ring 3 reads as CR0: paging, write protection, protected mode. Writes are ignored. */
#define CR0 0x80010033UL

extern u32 shim_mode;
extern u64 shim_linear_end[LINEAR_MEMORIES];

static inline u64 *physical(u64 address) { return (u64 *)(address + (SCRATCH_TOP_GVA - SCRATCH_TOP_GPA)); }
static inline u64 read_cr3(void) {
  u64 value;
  __asm__ volatile("mov %%cr3, %0" : "=r"(value));
  return value & ADDRESS_MASK;
}
static inline void invalidate(u64 address) { __asm__ volatile("invlpg (%0)" ::"r"(address) : "memory"); }
static inline void out32(u16 port, u32 value) { __asm__ volatile("outl %0, %1" ::"a"(value), "d"(port)); }

/* trap.c */
__attribute__((noreturn)) void shim_abort(u64 vector, u64 rip, u64 address, u64 error, const char *text);

#endif
