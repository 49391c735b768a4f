/* The processor's side of the shim: registers, frames, selectors, bits. For C and assembly; needs nothing of the layout. */
#ifndef WCPOD_MACHINE_H
#define WCPOD_MACHINE_H

#define KERNEL_CODE 0x08
#define KERNEL_DATA 0x10
#define USER_DATA 0x2b /* Linux's selectors: with these the hypervisor returns from ring 3 to ring 3 natively */
#define USER_CODE 0x33
#define TASK_STATE 0x38
#define SELECTOR_RING 3 /* bits of a code selector: the ring */

#define VECTOR_GENERAL_PROTECTION 13
#define VECTOR_PAGE_FAULT 14
#define NO_VECTOR 0xff

/* What the processor pushes when ring 3 (or, with an interrupt stack, ring 0) is interrupted, from the top of the stack down;
 * behind it the entry stubs push rax, and for a page fault CR2. */
#define AT_SS -8
#define AT_RSP -16
#define AT_RFLAGS -24
#define AT_CS -32
#define AT_RIP -40
#define AT_ERROR -48
#define AT_RAX -56
#define AT_CR2 -64
/* The same, seen from the error code. */
#define RIP_ABOVE_ERROR 8
#define CS_ABOVE_ERROR 16

#define REX 0x40
#define REX_R 4
#define REX_B 1
#define TWO_BYTES 0x0f     /* begins a two-byte opcode */
#define MOV_FROM_CR 0x20   /* second bytes */
#define MOV_TO_CR 0x22
#define INVLPG_GROUP 0x01
#define INVLPG 7           /* the group's number of it */
#define OUT_DX_EAX 0xef

#ifndef __ASSEMBLER__

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

#define SHIM __attribute__((section("shim_text")))

/* What the processor and an entry stub leave on the exception stack. */
struct trap_frame {
  u64 r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
  u64 error, rip, cs, rflags, rsp, ss;
};
struct fault_frame {
  u64 cr2, rax, error, rip, cs, rflags, rsp, ss;
};
_Static_assert(sizeof(struct fault_frame) == -AT_CR2, "the frame of a page fault is what the stubs push");

/* decode.c */
enum privileged { NOT_OURS, READ_CR0, READ_CR3, WRITE_CR0, INVALIDATE };
struct instruction {
  enum privileged what;
  int reg; /* number of the register that it reads or writes */
  int length;
};
struct instruction decode_privileged(const u8 *code);
u64 *register_of(struct trap_frame *frame, int number);

#endif
#endif
