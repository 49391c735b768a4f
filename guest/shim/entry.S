/* Entry, descriptor tables and trap entries of the guest.
 *
 * Hyperlight enters at shim_entry in ring 0 with rdi = PEB, rsi = seed, rdx = page size, rcx = log filter. Where ring 0 is
 * emulated one instruction at a time, everything but this file and trap.c then runs in ring 3; elsewhere it stays in
 * ring 0. Only integer instructions may be used here: an SSE instruction in emulated ring 0 ends the virtual CPU. */
.intel_syntax noprefix
#include "layout.h"
#include "machine.h"

/* Processor control structures, one page: it is copied out of the read-only snapshot before the first write. */
.section .data.shim, "aw"
.balign 4096
control_page:
gdt:
  .quad 0
  .quad 0x00AF9B000000FFFF      /* 0x08 kernel code */
  .quad 0x00CF93000000FFFF      /* 0x10 kernel data */
  .quad 0, 0
  .quad 0x00CFF3000000FFFF      /* 0x2b user data */
  .quad 0x00AFFB000000FFFF      /* 0x33 user code */
gdt_tss: .quad 0, 0             /* 0x38 task state */
gdt_end:
.balign 16
tss: .fill 104, 1, 0
.balign 16
idt: .fill 32 * 16, 1, 0
idt_end:
.balign 8
.global shim_mode, shim_linear_end
shim_mode: .long 0              /* MODE_RING0 or MODE_RING3 */
.balign 8
shim_linear_end: .fill LINEAR_MEMORIES, 8, 0    /* end of each linear memory, 0: not in use */
.balign 4096

/* Aligned so that all of it is mapped by one table. */
.section shim_text, "ax"
.balign 16384
.global shim_entry, shim_dispatch

shim_entry:
  mov r12, rdi
  mov r13, rsi
  mov r14, rdx
  mov r15, rcx
  mov rsp, EXCEPTION_STACK
  cld
  lea rdi, [rip + control_page]
  call shim_make_writable
  call shim_detect_mode
  mov [rip + shim_mode], eax
  call install_tables
  mov eax, [rip + shim_mode]
  test eax, eax
  jnz enter_ring3

  /* Ring 0: load our own segments, so that an interrupt frame can be returned to. */
  mov ax, KERNEL_DATA
  mov ss, ax
  mov ds, ax
  mov es, ax
  push KERNEL_CODE
  lea rax, [rip + 1f]
  push rax
  rex.w retf
1:
  mov rdi, r12
  mov rsi, r13
  mov rdx, r14
  mov rcx, r15
  movabs r8, STACK_TOP
  jmp pivot_stack

enter_ring3:
  call shim_prepare_ring3
  mov ebp, eax
  mov rdi, r12
  mov rsi, r13
  mov rdx, r14
  mov rcx, r15
  movabs r8, STACK_TOP
  lea r9, [rip + pivot_stack]
  jmp return_to_ring3

/* Every later call of the host, ring-3 mode only: Hyperlight sets rip here, ZF when the TLB must be flushed. */
shim_dispatch:
  jnz 1f
  mov rdi, cr4
  xor rdi, 0x80
  mov cr4, rdi
  xor rdi, 0x80
  mov cr4, rdi
1:
  cld
  call shim_prepare_ring3
  mov ebp, eax
  movabs r8, STACK_TOP
  lea r9, [rip + dispatch_function]

/* ebp: whether the tables were rebuilt since; r8: stack; r9: where to go; rdi, rsi, rdx, rcx: its arguments. */
return_to_ring3:
  push USER_DATA
  push r8
  push 2
  push USER_CODE
  lea rax, [rip + ring3_start]
  push rax
  iretq

ring3_start:
  test ebp, ebp
  jz 1f
  mov r12, rsp
  movabs rsp, HANDLER_STACK
  push rdi
  push rsi
  push rdx
  push rcx
  push r8
  push r9
  call ring3_after_restore
  pop r9
  pop r8
  pop rcx
  pop rdx
  pop rsi
  pop rdi
  mov rsp, r12
1:
  mov eax, 1
  test eax, eax                 /* ZF clear: dispatch_function must not try to flush the TLB itself */
  jmp r9

/* Fills the TSS, its descriptor and the interrupt gates, and loads them. Clobbers rax, rbx, rcx, rdx, rdi. */
install_tables:
  movabs rax, EXCEPTION_STACK
  lea rbx, [rip + tss]
  mov [rbx + 4], rax            /* stack of ring 0 */
  mov [rbx + 0x24], rax         /* IST1 */
  mov word ptr [rbx + 0x66], 104
  lea rcx, [rip + gdt_tss]
  mov word ptr [rcx], 103
  mov [rcx + 2], bx
  mov rax, rbx
  shr rax, 16
  mov [rcx + 4], al
  mov byte ptr [rcx + 5], 0x89
  mov byte ptr [rcx + 6], 0
  shr rax, 8
  mov [rcx + 7], al
  shr rax, 8
  mov [rcx + 8], eax

  lea rbx, [rip + idt]
  lea rdi, [rip + vectors]
  cmp dword ptr [rip + shim_mode], MODE_RING3
  je 2f
  lea rdi, [rip + vectors_ring0]
2:
  xor ecx, ecx
1:
  movsxd rax, dword ptr [rdi + rcx * 4]
  add rax, rdi
  mov rdx, rcx
  shl rdx, 4
  mov [rbx + rdx], ax
  mov word ptr [rbx + rdx + 2], KERNEL_CODE
  mov byte ptr [rbx + rdx + 4], 1         /* IST1 */
  mov byte ptr [rbx + rdx + 5], 0x8e      /* interrupt gate */
  shr rax, 16
  mov [rbx + rdx + 6], ax
  shr rax, 16
  mov [rbx + rdx + 8], eax
  inc ecx
  cmp ecx, 32
  jne 1b

  sub rsp, 16
  mov word ptr [rsp], gdt_end - gdt - 1
  lea rax, [rip + gdt]
  mov [rsp + 2], rax
  lgdt [rsp]
  mov word ptr [rsp], idt_end - idt - 1
  lea rax, [rip + idt]
  mov [rsp + 2], rax
  lidt [rsp]
  add rsp, 16
  mov ax, TASK_STATE
  ltr ax
  ret

.macro PUSH_REGISTERS
  push rax
  push rbx
  PUSH_OTHER_REGISTERS
.endm
.macro PUSH_OTHER_REGISTERS
  push rcx
  push rdx
  push rsi
  push rdi
  push rbp
  push r8
  push r9
  push r10
  push r11
  push r12
  push r13
  push r14
  push r15
.endm

pop_registers_and_return:
  pop r15
  pop r14
  pop r13
  pop r12
  pop r11
  pop r10
  pop r9
  pop r8
  pop rbp
  pop rdi
  pop rsi
  pop rdx
  pop rcx
  pop rbx
  pop rax
  add rsp, 8
  iretq

.macro RESOLVE_PAGE_FAULT
  push rbx
  push rcx
  push rdx
  push rsi
  push rdi
  push r8
  push r9
  push r10
  push r11
  movabs rdi, EXCEPTION_STACK + AT_CR2
  cld
  call resolve_page_fault
  test eax, eax
.endm
.macro POP_VOLATILE_REGISTERS
  pop r11
  pop r10
  pop r9
  pop r8
  pop rdi
  pop rsi
  pop rdx
  pop rcx
.endm

/* Page fault in ring-3 mode. The handler is too slow in ring 0: leave at once for ring3_page_fault through the prepared
 * frame; what was interrupted stays on the exception stack. */
page_fault_ring3:
  push rax
  mov rax, cr2
  push rax
  movabs rsp, FAULT_FRAME
  iretq

/* The same in ring-0 mode, where the handler runs right here. */
page_fault_ring0:
  push rax
  mov rax, cr2
  push rax
  RESOLVE_PAGE_FAULT
  jz 2f
  POP_VOLATILE_REGISTERS
  pop rbx
  add rsp, 8                    /* cr2 */
  pop rax
  add rsp, 8                    /* error code */
  iretq
2:
  jmp page_fault_to_payload

.global ring3_page_fault
ring3_page_fault:
  RESOLVE_PAGE_FAULT
  jz 1f
  POP_VOLATILE_REGISTERS
  movabs rbx, EXCEPTION_STACK
  mov rax, [rbx + AT_RAX]
  pop rbx
  movabs rsp, EXCEPTION_STACK + AT_RIP
  iretq
1:
page_fault_to_payload:
  movabs rdi, EXCEPTION_STACK + AT_CR2
  call page_fault_is_fatal      /* does not return when the shim itself faulted */
  movabs rbx, EXCEPTION_STACK
  mov rdi, [rbx + AT_RIP] /* rip */
  mov rsi, rbp
  mov edx, 1
  mov rcx, [rbx + AT_CR2] /* cr2 */
  mov r8d, VECTOR_PAGE_FAULT
  mov rsp, [rbx + AT_RSP] /* the payload's stack, past its red zone */
  sub rsp, 128
  and rsp, -16
  jmp trap_thunk

/* A move from or to a control register, in ring 3: copies what was interrupted into a frame on this stack, and returns to
 * what the frame says then. */
.global ring3_privileged_move
ring3_privileged_move:
  push rbx
  movabs rbx, EXCEPTION_STACK
  push [rbx + AT_SS]
  push [rbx + AT_RSP]
  push [rbx + AT_RFLAGS]
  push [rbx + AT_CS]
  push [rbx + AT_RIP]
  push [rbx + AT_ERROR]
  push [rbx + AT_RAX]
  push [rsp + 56]               /* rbx */
  PUSH_OTHER_REGISTERS
  mov rdi, rsp
  cld
  call privileged_move
  jmp pop_registers_and_return

/* Where a trap of the payload continues, on the payload's own stack: rdi = rip, rsi = rbp, edx = is there an address,
 * rcx = address, r8d = vector. Never returns. */
.global trap_thunk
trap_thunk:
  call forward_trap
  ud2

/* General protection in ring-3 mode. Mostly it is one of the moves that Hyperlight's guest library does in every call, from
 * or to a control register: ring 3 does those itself, through its other prepared frame. */
general_protection_ring3:
  push rax
  mov rax, [rsp + 8 + RIP_ABOVE_ERROR]
  cmp byte ptr [rax], TWO_BYTES
  jne 1f
  movzx eax, byte ptr [rax + 1]
  and eax, ~(MOV_FROM_CR ^ MOV_TO_CR) & 0xff
  cmp eax, MOV_FROM_CR & MOV_TO_CR
  jne 1f
  movabs rsp, MOVE_FRAME
  iretq
1:
  pop rax

/* General protection otherwise. From ring 3 it is an instruction that only ring 0 can do: `out`, done here in as few
 * instructions as possible, and what C looks at. */
general_protection_entry:
  push rax
  push rbx
  test byte ptr [rsp + 16 + CS_ABOVE_ERROR], SELECTOR_RING
  jz 2f
  mov rbx, [rsp + 16 + RIP_ABOVE_ERROR]
  cmp byte ptr [rbx], OUT_DX_EAX
  jne 5f
  cmp dx, PORT_HALT
  je 3f
  inc qword ptr [rsp + 16 + RIP_ABOVE_ERROR]
  pop rbx
  pop rax
  add rsp, 8
  out dx, eax
  iretq
5:
  mov eax, [rbx]
  and eax, 0xffffff
  cmp eax, 0x39010f             /* invlpg [rcx] */
  jne 2f
  invlpg [rcx]
  add qword ptr [rsp + 16 + RIP_ABOVE_ERROR], 3
  pop rbx
  pop rax
  add rsp, 8
  iretq
2:
  pop rbx
  pop rax
  PUSH_REGISTERS
  mov rdi, rsp
  cld
  call shim_general_protection
  jmp pop_registers_and_return
3:
  /* Halt: rax is the address of the next dispatch. Ours comes first. */
  pop rbx
  pop rax
  lea rcx, [rip + dispatch_function]
  cmp rax, rcx
  jne 4f
  lea rax, [rip + shim_dispatch]
4:
  movabs rsp, EXCEPTION_STACK
  out dx, eax
  ud2

.macro EXCEPTION number has_error_code
exception_\number:
  .if \has_error_code == 0
  push 0
  .endif
  PUSH_REGISTERS
  mov rdi, rsp
  mov esi, \number
  cld
  call shim_exception
  jmp pop_registers_and_return
.endm
.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 9, 15, 16, 18, 19, 20, 22, 23, 24, 25, 26, 27, 28, 31
EXCEPTION \n 0
.endr
.irp n, 8, 10, 11, 12, 17, 21, 29, 30
EXCEPTION \n 1
.endr

.macro VECTORS base general_protection page_fault
.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
  .long exception_\n - \base
.endr
  .long \general_protection - \base
  .long \page_fault - \base
.irp n, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
  .long exception_\n - \base
.endr
.endm
.balign 4
vectors: VECTORS vectors general_protection_ring3 page_fault_ring3
vectors_ring0: VECTORS vectors_ring0 general_protection_entry page_fault_ring0

.section .note.GNU-stack, "", @progbits
