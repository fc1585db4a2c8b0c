/**
 * Classic BPF: programs for the kernel that look at one packet, as sockets and filters of tc(8) take them (bpf(4), linux/filter.h,
 * linux/bpf_common.h). Pure.
 */

/** Code, jumps if true and if false, value: struct sock_filter. */
export type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

/** The place of struct sock_filter in bytes. */
const INSTRUCTION_BYTES = 8;

export function assembled(instructions: readonly (readonly number[])[]): Uint8Array {
  const code = new DataView(new ArrayBuffer(instructions.length * INSTRUCTION_BYTES));
  instructions.forEach(([operation, ifTrue, ifFalse, value], index) => {
    code.setUint16(index * INSTRUCTION_BYTES, operation!, true);
    code.setUint8(index * INSTRUCTION_BYTES + 2, ifTrue!);
    code.setUint8(index * INSTRUCTION_BYTES + 3, ifFalse!);
    code.setUint32(index * INSTRUCTION_BYTES + 4, value!, true);
  });
  return new Uint8Array(code.buffer);
}
