/* Privileged instructions of Hyperlight's guest library, which fault in ring 3. Pure: also compiled and tested on the host. */
#include "machine.h"

/* The place of a register in a frame. No table in memory: ring 3 may not be able to read it yet. Nibble n says where register
 * n lies, counted from r15: rax is the fifteenth, rcx the thirteenth; 4 is rsp, which the processor pushes. */
SHIM u64 *register_of(struct trap_frame *frame, int number) {
  if (number == 4) return &frame->rsp;
  int place = number >= 8 ? 15 - number : (int)(0x9a80dbceU >> (4 * number) & 15);
  return &frame->r15 + place;
}

/* Reads CR3 and CR0, writes CR0, or drops a page from the TLB; with an optional prefix that names one of the upper registers.
 * Prefixes that would name another control register are not ours. */
SHIM struct instruction decode_privileged(const u8 *code) {
  struct instruction found = {NOT_OURS, 0, 0};
  int prefix = (code[0] & (0xf0 | REX_R)) == REX;
  if (code[prefix] != TWO_BYTES) return found;
  u8 opcode = code[prefix + 1], operand = code[prefix + 2];
  int mode = operand >> 6, number = operand >> 3 & 7, low = operand & 7;
  found.reg = low | (prefix && (code[0] & REX_B) ? 8 : 0);
  found.length = prefix + 3;
  if (opcode == MOV_FROM_CR && number == 0)
    found.what = READ_CR0;
  else if (opcode == MOV_FROM_CR && number == 3)
    found.what = READ_CR3;
  else if (opcode == MOV_TO_CR && number == 0)
    found.what = WRITE_CR0;
  else if (opcode == INVLPG_GROUP && number == INVLPG && mode == 0 && low != 4 && low != 5) /* the address is a register */
    found.what = INVALIDATE;
  return found;
}
