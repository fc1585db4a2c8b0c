/** The parts of an ELF file for 64 bits that the build reads and changes. See elf(5). */

export const PT_NULL = 0, PT_LOAD = 1, PT_INTERP = 3, PT_NOTE = 4, PT_PHDR = 6;
export const PF_X = 1, PF_R = 4;

const MACHINES: Record<number, string> = { 62: "x86-64", 183: "arm64" };

/** A program header: where it is in the file, and what it says. */
export interface Segment {
  at: number;
  type: number;
  flags: number;
  offset: number;
  address: number;
  fileBytes: number;
  memoryBytes: number;
  /** File offset and address agree modulo this: the largest page that the processor's kernels may use. */
  alignment: number;
}

export class Elf {
  readonly view: DataView<ArrayBufferLike>;

  constructor(readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (bytes.length < 64 || this.view.getUint32(0) !== 0x7f454c46 || this.machine === undefined) {
      throw new Error("this is no ELF file for x86-64 or arm64");
    }
  }

  get machine(): string | undefined {
    return MACHINES[this.view.getUint16(18, true)];
  }

  u64(at: number): number {
    return Number(this.view.getBigUint64(at, true));
  }

  setU64(at: number, value: number): void {
    this.view.setBigUint64(at, BigInt(value), true);
  }

  get entry(): number {
    return this.u64(24);
  }

  set entry(address: number) {
    this.setU64(24, address);
  }

  get segments(): Segment[] {
    const first = this.u64(32), size = this.view.getUint16(54, true), count = this.view.getUint16(56, true);
    return Array.from({ length: count }, (_, index) => {
      const at = first + index * size;
      return {
        at,
        type: this.view.getUint32(at, true),
        flags: this.view.getUint32(at + 4, true),
        offset: this.u64(at + 8),
        address: this.u64(at + 16),
        fileBytes: this.u64(at + 32),
        memoryBytes: this.u64(at + 40),
        alignment: this.u64(at + 48),
      };
    });
  }

  setSegment({ at, type, flags, offset, address, fileBytes, memoryBytes, alignment }: Segment): void {
    this.view.setUint32(at, type, true);
    this.view.setUint32(at + 4, flags, true);
    [offset, address, address, fileBytes, memoryBytes, alignment].forEach((value, index) =>
      this.setU64(at + 8 + index * 8, value)
    );
  }
}

export function roundUp(value: number, unit: number): number {
  return Math.ceil(value / unit) * unit;
}
