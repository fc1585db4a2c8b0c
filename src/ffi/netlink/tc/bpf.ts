/**
 * bpf: a filter that runs a program of classic BPF on each packet (tc-bpf(8), linux/pkt_cls.h TCA_BPF_*). What the program
 * returns is what becomes of the packet, so no action is needed.
 */
import { attrTable, binary, u16, u32 } from "../attrs.ts";
import { TCA_BPF_FLAG_ACT_DIRECT, TCA_BPF_FLAGS, TCA_BPF_OPS, TCA_BPF_OPS_LEN } from "../uapi/traffic-control.ts";
import type { TcKind } from "./tc-object.ts";

const INSTRUCTION_BYTES = 8;

const bpfAttrs = attrTable("TCA_OPTIONS(bpf)", {
  length: u16(TCA_BPF_OPS_LEN),
  program: binary(TCA_BPF_OPS),
  flags: u32(TCA_BPF_FLAGS),
});

/** The program returns one of TC_ACT_*. */
export function bpfProgram(program: Uint8Array): TcKind {
  const length = program.length / INSTRUCTION_BYTES;
  return {
    name: "bpf",
    write: (writer) => bpfAttrs.encode(writer, { length, program, flags: TCA_BPF_FLAG_ACT_DIRECT }),
  };
}

/** The program that decides what becomes of packets; undefined for one that only assigns them to a class. */
export function readBpfProgram(options: Uint8Array): Uint8Array | undefined {
  const { program, flags = 0 } = bpfAttrs.decode(options);
  return (flags & TCA_BPF_FLAG_ACT_DIRECT) === 0 ? undefined : program;
}
