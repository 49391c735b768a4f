/* Exceptions: those that Wasmtime expects go to its handler, everything else ends the run with an error that names it. */
#include "shim.h"

extern char trap_thunk[];
extern char __start_shim_text[], __stop_shim_text[];

/* Set by wasmtime_init_traps; returns when the trap was not in Wasm code. */
void (*trap_handler)(u64 rip, u64 frame_pointer, int has_address, u64 address);

SHIM static void abort_bytes(const char *bytes, int count) {
  while (count > 0) {
    int chunk = count > 3 ? 3 : count;
    u32 value = chunk;
    for (int i = 0; i < chunk; i++) value |= (u32)(u8)bytes[i] << (8 * (i + 1));
    out32(PORT_ABORT, value);
    bytes += chunk;
    count -= chunk;
  }
}

SHIM static void abort_text(const char *text) {
  int length = 0;
  while (text[length]) length++;
  abort_bytes(text, length);
}

SHIM static void abort_number(const char *name, u64 value) {
  char digits[18];
  abort_text(name);
  for (int i = 0; i < 16; i++) {
    u8 digit = (value >> (60 - 4 * i)) & 15;
    digits[i] = digit < 10 ? '0' + digit : 'a' + digit - 10;
  }
  abort_bytes(digits, 16);
}

/* Tells the host: a code that it judges by, the vector unless it is NO_VECTOR, a text, the terminator. Does not return. */
SHIM void shim_abort(u8 code, u64 vector, u64 rip, u64 address, u64 error, const char *text) {
  char head[2] = {(char)code, (char)vector};
  abort_bytes(head, vector == NO_VECTOR ? 1 : 2);
  abort_text(text);
  abort_number(" rip=", rip);
  abort_number(" address=", address);
  abort_number(" error=", error);
  abort_bytes("\xff", 1);
  for (;;) __asm__ volatile("pause");
}

SHIM static int in_shim(u64 rip) { return rip >= (u64)__start_shim_text && rip < (u64)__stop_shim_text; }

/* Boot, ring 0. 256 instructions take well under a microsecond natively, and about a microsecond each where ring 0 is
 * emulated; the best of five tries keeps an interruption from deciding. */
SHIM int shim_detect_mode(void) {
  u64 best = ~0UL;
  for (int i = 0; i < 5; i++) {
    u32 low, high, count = 128;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    u64 begin = low | (u64)high << 32;
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(count));
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    u64 ticks = (low | (u64)high << 32) - begin;
    if (ticks < best) best = ticks;
  }
  return best > 30000 ? MODE_RING3 : MODE_RING0;
}

/* A fault that nobody resolved. Returns when the payload caused it. */
SHIM void page_fault_is_fatal(struct fault_frame *frame) {
  if (in_shim(frame->rip) || (shim_mode == MODE_RING3 && !(frame->cs & SELECTOR_RING)))
    shim_abort(ABORT_EXCEPTION, VECTOR_PAGE_FAULT, frame->rip, frame->cr2, frame->error, "page fault in the shim");
}

SHIM static void continue_in_thunk(struct trap_frame *frame, u64 vector) {
  frame->rdi = frame->rip;
  frame->rsi = frame->rbp;
  frame->rdx = 0;
  frame->rcx = frame->error;
  frame->r8 = vector;
  frame->rip = (u64)trap_thunk;
  frame->rsp = (frame->rsp - 128) & ~15UL;
}

/* Any other exception. Returns to the payload's trap_thunk, or not at all. */
SHIM void shim_exception(struct trap_frame *frame, u64 vector) {
  if (in_shim(frame->rip) || (shim_mode == MODE_RING3 && !(frame->cs & SELECTOR_RING))) {
    u64 address;
    __asm__ volatile("mov %%cr2, %0" : "=r"(address));
    shim_abort(ABORT_EXCEPTION, vector, frame->rip, address, frame->error, "exception in the shim");
  }
  continue_in_thunk(frame, vector);
}

/* Payload side of both. */
void forward_trap(u64 rip, u64 frame_pointer, int has_address, u64 address, u64 vector) {
  if (trap_handler) trap_handler(rip, frame_pointer, has_address, has_address ? address : 0);
  shim_abort(ABORT_EXCEPTION, vector, rip, has_address ? address : 0, has_address ? 0 : address, "exception in the guest runtime");
}

/* Does what a privileged instruction of Hyperlight's guest library is for, and goes on behind it. */
SHIM static int performed(struct trap_frame *frame) {
  struct instruction found = decode_privileged((const u8 *)frame->rip);
  if (found.what == NOT_OURS) return 0;
  u64 *reg = register_of(frame, found.reg);
  if (found.what == READ_CR0)
    *reg = CR0;
  else if (found.what == READ_CR3)
    *reg = STATE->root;
  else if (found.what == INVALIDATE)
    invalidate(*reg);
  frame->rip += found.length;
  return 1;
}

/* Ring 3: moves from and to a control register without a prefix, as in every call of the host. */
SHIM void privileged_move(struct trap_frame *frame) {
  if (!performed(frame)) continue_in_thunk(frame, VECTOR_GENERAL_PROTECTION);
}

/* Ring 0: what is left. */
SHIM void shim_general_protection(struct trap_frame *frame) {
  if ((frame->cs & SELECTOR_RING) && performed(frame)) return;
  shim_exception(frame, VECTOR_GENERAL_PROTECTION);
}
