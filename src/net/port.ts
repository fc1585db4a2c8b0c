/** A port as it stands in a packet. */
export function portBytes(port: number): Uint8Array {
  return new Uint8Array([port >> 8, port & 0xff]);
}
