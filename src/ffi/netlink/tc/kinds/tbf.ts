/** tbf: a token bucket with a queue behind it (tc-tbf(8), linux/pkt_sched.h TCA_TBF_*). */
import { attrTable, custom, u64 } from "../../attrs.ts";
import { TCA_TBF_PARMS, TCA_TBF_RATE64 } from "../../uapi/pkt-sched.ts";
import { rate64, RATE_BYTES, readRate, writeRate } from "../rate.ts";
import type { TcKind } from "../tc-header.ts";

export interface Tbf {
  /** In bytes a second. */
  rate: number;
  /** The length of the queue in bytes. */
  limit: number;
  /** The size of the bucket as the time that filling it takes, in ticks. */
  buffer: number;
}

/** struct tc_tbf_qopt: rate, peak rate, limit u32, buffer u32, mtu u32. */
const params = custom<Tbf>(TCA_TBF_PARMS, {
  write(writer, { rate, limit, buffer }) {
    writeRate(writer, rate);
    writeRate(writer, 0);
    writer.u32(limit).u32(buffer).u32(0);
  },
  read(payload) {
    const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
    const limitAt = 2 * RATE_BYTES;
    return {
      rate: readRate(payload),
      limit: view.getUint32(limitAt, true),
      buffer: view.getUint32(limitAt + 4, true),
    };
  },
});

const tbfAttrs = attrTable("TCA_OPTIONS(tbf)", { params, rate64: u64(TCA_TBF_RATE64) });

export function tbf(values: Tbf): TcKind {
  return {
    name: "tbf",
    write: (writer) => tbfAttrs.encode(writer, { params: values, rate64: rate64(values.rate) }),
  };
}

export function readTbf(options: Uint8Array): Tbf {
  const { params, rate64: wide } = tbfAttrs.decode(options);
  const known = params ?? { rate: 0, limit: 0, buffer: 0 };
  return wide === undefined ? known : { ...known, rate: Number(wide) };
}
