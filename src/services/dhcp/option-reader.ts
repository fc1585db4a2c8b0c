/** Reads options of either family's messages. One that is malformed is ignored, and said. Pure. */

/** Undefined when the option is not there, or `read` does not understand it. */
export type OptionReader = <Value>(
  number: number,
  read: (bytes: Uint8Array) => Value | undefined,
) => Value | undefined;

export function optionReader(valueOf: (number: number) => Uint8Array | undefined, ignored: string[]): OptionReader {
  return (number, read) => {
    const bytes = valueOf(number);
    if (bytes === undefined) return undefined;
    const value = read(bytes);
    if (value === undefined) ignored.push(`option ${number} is malformed: ${bytes.subarray(0, 64).toHex()}`);
    return value;
  };
}

/** Addresses one after another, each of `size` bytes. */
export function readAddressList(bytes: Uint8Array, size: number): Uint8Array[] | undefined {
  if (bytes.length === 0 || bytes.length % size !== 0) return undefined;
  return Array.from({ length: bytes.length / size }, (_, index) => bytes.slice(index * size, (index + 1) * size));
}
