/* Page tables: copy-on-write, pages of zeros, stack and linear memory on demand, and the user bits that ring 3 needs.
 *
 * Hyperlight rebuilds the tables at every snapshot and drops the user bit from every entry. In ring-3 mode the bit is put
 * back after each restore: at once in the tables that a run is known to use, in the others when they are first used. */
#include "shim.h"

extern char ring3_page_fault[], ring3_privileged_move[];
extern char __start_shim_text[], __stop_shim_text[];

struct known_touches known;

SHIM static u64 allocate_page(void) {
  u64 page = PAGE;
  __asm__ volatile("lock xaddq %0, %1" : "+r"(page), "+m"(WORD(NEXT_PAGE))::"memory");
  if (page >= SCRATCH_END_GPA - (RESERVED_PAGES + OUTPUT_WINDOW_PAGES) * PAGE)
    shim_abort(ABORT_OUT_OF_SCRATCH, NO_VECTOR, 0, page, 0, "out of scratch memory");
  return page;
}

SHIM static void copy_page(u64 *to, const u64 *from) {
  u64 words = PAGE / 8;
  __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words)::"memory");
}

SHIM static void clear_page(u64 *page) {
  u64 words = PAGE / 8;
  __asm__ volatile("rep stosq" : "+D"(page), "+c"(words) : "a"(0UL) : "memory");
}

/* The user bit for entries made in ring-3 mode. */
SHIM static u64 user_bit(void) { return STATE->mode == MODE_RING3 ? USER : 0; }

/* Address of the last-level entry for `address`, or 0 where a table is missing. */
SHIM static u64 *entry_of(u64 root, u64 address) {
  u64 *table = physical(root);
  for (int shift = 39; shift > 12; shift -= 9) {
    u64 *entry = &table[(address >> shift) & (ENTRIES - 1)];
    if (!(*entry & PRESENT)) return 0;
    if (user_bit() && !(*entry & USER)) *entry |= USER;
    table = physical(*entry & ADDRESS_MASK);
  }
  return &table[(address >> 12) & (ENTRIES - 1)];
}

/* A fresh page that ring 3 can reach through the mapping of all of scratch, too. */
SHIM static u64 allocate_reachable(u64 root) {
  u64 page = allocate_page();
  if (user_bit()) {
    u64 *alias = entry_of(root, (u64)physical(page));
    if (alias && !(*alias & USER)) *alias |= USER;
  }
  return page;
}

/* The same entry, with the missing tables made. */
SHIM static u64 *entry_made_for(u64 root, u64 address) {
  u64 *table = physical(root);
  for (int shift = 39; shift > 12; shift -= 9) {
    u64 *entry = &table[(address >> shift) & (ENTRIES - 1)];
    if (!(*entry & PRESENT)) {
      u64 page = allocate_reachable(root);
      clear_page(physical(page)); /* it is zero, but a hypervisor with shadow tables must see it become a table */
      *entry = page | PRESENT | WRITABLE | ACCESSED | user_bit();
    } else if (user_bit() && !(*entry & USER)) {
      *entry |= USER;
    }
    table = physical(*entry & ADDRESS_MASK);
  }
  return &table[(address >> 12) & (ENTRIES - 1)];
}

SHIM static void copy_on_write(u64 root, u64 address, u64 *entry) {
  *entry |= user_bit(); /* the copy reads through it */
  u64 page = allocate_reachable(root);
  copy_page(physical(page), (const u64 *)(address & ~(PAGE - 1)));
  *entry = page | PRESENT | WRITABLE | ACCESSED | DIRTY | user_bit() | (*entry & NO_EXECUTE);
}

SHIM static void make_of_zeros(u64 root, u64 *entry) {
  u64 rights = *entry;
  u64 page = allocate_reachable(root);
  *entry = page | PRESENT | ACCESSED | DIRTY | user_bit() | (rights & ZEROS_WRITABLE ? WRITABLE : 0) |
           (rights & ZEROS_EXECUTABLE ? 0 : NO_EXECUTE);
}

/* Boot, ring 0: makes one page of the image writable before the exception tables are there. */
SHIM void shim_make_writable(u64 address) {
  u64 *entry = entry_of(read_cr3(), address);
  if (entry && (*entry & PRESENT) && !(*entry & WRITABLE)) {
    copy_on_write(read_cr3(), address, entry);
    invalidate(address);
  }
}

/* The host keeps what the preparation makes of scratch, and writes it back after every later restore: see prepared.rs. */
SHIM static void prepared(void) {
  STATE->ready = 1;
  if (STATE->only_prepare) {
    STATE->only_prepare = 0;
    out32(PORT_HALT, 0);
  }
}

/* Copies the pages that a run is known to dirty before they fault one by one, and makes the tables that it needs. */
SHIM static void copy_known_pages(u64 root) {
  entry_made_for(root, CALL_BUFFERS);
  for (u64 i = 0; i < known.page_count; i++) {
    u64 address = ((const u64 *)known.pages)[i];
    u64 *entry = entry_of(root, address);
    if (!entry) continue;
    u64 bits = *entry;
    if ((bits & (PRESENT | COPY_ON_WRITE | WRITABLE)) == (PRESENT | COPY_ON_WRITE)) {
      copy_on_write(root, address, entry);
      if (!user_bit()) invalidate(address);
    } else if (!(bits & PRESENT) && (bits & OF_ZEROS)) {
      make_of_zeros(root, entry);
    }
  }
}

SHIM static u64 *let_user_reach(u64 root, u64 address) {
  u64 *table = physical(root), *entry = 0;
  for (int shift = 39; shift >= 12; shift -= 9) {
    entry = &table[(address >> shift) & (ENTRIES - 1)];
    *entry |= USER;
    table = physical(*entry & ADDRESS_MASK);
  }
  return entry;
}

/* Ring 0, before each entry to ring 3. Returns 1 when ring 3 must call ring3_after_restore. Every
 * instruction here is emulated, so it does only what ring 3 cannot do for itself: it lets ring 3 reach the shim's code, the
 * stack that it begins on, and the table through which it can reach the other tables. */
SHIM int shim_prepare_ring3(void) {
  if (STATE->ready) return STATE->stale_count != 0;
  u64 root = read_cr3();
  u64 *code = let_user_reach(root, (u64)__start_shim_text); /* aligned so that its pages share a table */
  for (u64 page = (u64)__start_shim_text >> 12; page < ((u64)__stop_shim_text - 1) >> 12; page++) *++code |= USER;
  let_user_reach(root, HANDLER_STACK)[1] |= USER; /* and the page behind it, with the exception stack */
  u64 *alias = let_user_reach(root, (u64)physical(WORD(FIRST_TABLE)));
  let_user_reach(root, (u64)alias);
  STATE->root = root;
  STATE->mode = MODE_RING3;
  STATE->alias = (u64)alias;
  return 1;
}

/* Lets ring 3 reach `count` pages. */
SHIM static void reach(u64 root, u64 address, u64 count) {
  for (u64 i = 0; i < count; i++) {
    u64 *entry = entry_of(root, address + i * PAGE);
    if (entry && (*entry & PRESENT)) *entry |= USER;
  }
}

SHIM static u64 scratch_begin(void) { return SCRATCH_END_GVA - WORD(SCRATCH_SIZE); }

/* Lets ring 3 reach every page of the last-level table that maps `address`. Not so for the mapping of all of scratch,
 * because nearly none of it is touched: pages get the bit when they are handed out. */
SHIM static void reach_table(u64 root, u64 address) {
  if (address >= scratch_begin()) {
    reach(root, address & ~(PAGE - 1), 1);
    return;
  }
  u64 *entry = entry_of(root, address);
  if (!entry) return;
  u64 *table = (u64 *)((u64)entry & ~(PAGE - 1));
  for (int i = 0; i < ENTRIES; i++)
    if (table[i] & PRESENT) table[i] |= USER;
}

/* Writes the entries that the host named with what they hold. A hypervisor with shadow tables follows what the guest writes,
 * not what the host wrote at the restore. */
SHIM static void write_stale_entries(void) {
  u64 *addresses = (u64 *)STALE_ENTRIES;
  for (u64 i = 0; i < STATE->stale_count; i++) {
    volatile u64 *entry = physical(addresses[i]);
    *entry = *entry;
  }
  STATE->stale_count = 0;
}

/* What ring 0 returns to with one iretq. */
SHIM static void prepare_frame(u64 *frame, char *handler) {
  frame[0] = (u64)handler;
  frame[1] = USER_CODE;
  frame[2] = 2; /* flags: none but the one that is always set */
  frame[3] = HANDLER_STACK;
  frame[4] = USER_DATA;
}

/* Ring 3, natively: makes the tables reachable, puts the user bit back where a run is known to need it, copies the known
 * pages. A fault inside this function would overwrite its own stack, so whatever it touches is made reachable first. */
SHIM void ring3_after_restore(void) {
  if (STATE->ready) return write_stale_entries();
  u64 root = STATE->root, base = WORD(FIRST_TABLE);
  u64 end = WORD(NEXT_PAGE);
  /* The tables lie side by side. Their first one's alias is reachable, and so are its neighbours in the same 2 MiB; where
   * there are more, the entry of the next 2 MiB is found through tables that are reachable by then. */
  u64 *alias = (u64 *)STATE->alias;
  for (u64 page = base; page < end; page += PAGE) {
    if (page != base && ((u64)physical(page) % TABLE_BYTES) == 0) alias = entry_of(root, (u64)physical(page));
    *alias++ |= USER;
  }
  prepare_frame((u64 *)FAULT_FRAME, ring3_page_fault);
  prepare_frame((u64 *)MOVE_FRAME, ring3_privileged_move);
  reach(root, (u64)&shim_mode, 1);
  reach(root, (u64)physical(WORD(TRANSPORT_ARENA)), ARENA_PAGES);
  reach(root, SCRATCH_END_GVA - RESERVED_PAGES * PAGE, RESERVED_PAGES);
  reach(root, OUTPUT_WINDOW, 2);
  reach(root, (u64)&known, 1);
  reach(root, known.pages, (known.page_count * 8 >> 12) + 2);
  reach(root, known.tables, (known.table_count * 8 >> 12) + 2);
  for (u64 i = 0; i < known.table_count; i++) reach_table(root, ((const u64 *)known.tables)[i]);
  copy_known_pages(root);
  prepared();
}

SHIM static void record_table(u64 address) {
  volatile u64 *log = (volatile u64 *)TABLE_LOG;
  u64 count = log[0];
  if (count < TABLE_LOG_ENTRIES) {
    log[1 + count] = address & ~(TABLE_BYTES - 1);
    log[0] = count + 1;
  }
}

SHIM static void record_fault(u64 address) {
  volatile u64 *log = (volatile u64 *)FAULT_LOG;
  u64 count = log[0];
  if (count < FAULT_LOG_ENTRIES) {
    log[1 + count] = address & ~(PAGE - 1);
    log[0] = count + 1;
  }
}

SHIM static int made_on_demand(u64 address) {
  if (address >= STACK_LIMIT && address < STACK_TOP) return 1;
  u64 memory = (address - LINEAR_BASE) >> LINEAR_SHIFT;
  return address >= LINEAR_BASE && memory < LINEAR_MEMORIES && address < shim_linear_end[memory];
}

/* Ring 3 in ring-3 mode, ring 0 in ring-0 mode. Returns 1 when the access can be tried again. */
SHIM int resolve_page_fault(struct fault_frame *frame) {
  u64 address = frame->cr2, error = frame->error, root = STATE->root;
  if (!user_bit()) {
    if (!root) root = STATE->root = read_cr3();
    if (!STATE->ready) {
      copy_known_pages(root);
      prepared();
    }
  } else if (!(frame->cs & SELECTOR_RING)) {
    return 0;
  }
  if (!(error & FAULT_PRESENT)) {
    int on_demand = made_on_demand(address);
    u64 *entry = on_demand ? entry_made_for(root, address) : entry_of(root, address);
    if (!entry) return 0;
    if (*entry & PRESENT) return 1;
    if (*entry & OF_ZEROS) {
      make_of_zeros(root, entry);
    } else if (on_demand) {
      *entry = allocate_reachable(root) | PRESENT | WRITABLE | ACCESSED | DIRTY | user_bit() | NO_EXECUTE;
    } else {
      return 0;
    }
  } else {
    u64 *entry = entry_of(root, address);
    if (!entry) return 0;
    if (user_bit() && !(*entry & USER)) {
      reach_table(root, address);
      if (!known.page_count && address < scratch_begin()) record_table(address);
      return 1;
    }
    if (!(error & FAULT_WRITE)) return 0;
    if (*entry & WRITABLE) return 1;
    if (!(*entry & COPY_ON_WRITE)) return 0;
    copy_on_write(root, address, entry);
    if (!user_bit()) invalidate(address);
  }
  if (!known.page_count) record_fault(address);
  return 1;
}

/* Runtime: what was logged since the restore. */
u64 shim_recorded_pages(u64 **pages) {
  *pages = (u64 *)FAULT_LOG + 1;
  return ((volatile u64 *)FAULT_LOG)[0];
}
u64 shim_recorded_tables(u64 **tables) {
  *tables = (u64 *)TABLE_LOG + 1;
  return ((volatile u64 *)TABLE_LOG)[0];
}
