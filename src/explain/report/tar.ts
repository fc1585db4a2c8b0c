/** A tar of plain files (POSIX.1-1988, "ustar"), the same for the same members. Pure. */
import { utf8 } from "../../ffi/libc.ts";

export interface TarMember {
  /** As `memberName` makes it. */
  name: string;
  bytes: Uint8Array;
}

const BLOCK = 512, LONGEST_PART = 48;

/** A name that leads nowhere else, and that a terminal shows. Names that become alike get a number. */
export function memberName(name: string, taken: Set<string>): string {
  const parts = name.split("/").map((part) => {
    const plain = part.replaceAll(/[^A-Za-z0-9._@~-]/g, "_").replace(/^(?=[.-]|$)/, "_");
    return plain.length <= LONGEST_PART ? plain : `${plain.slice(0, 27)}~${plain.slice(-20)}`;
  });
  const [file, place] = [parts.pop()!, parts.map((part) => `${part}/`).join("")];
  let unique = place + file;
  for (let at = 2; taken.has(unique); at++) unique = `${place}${at}~${file}`;
  taken.add(unique);
  return unique;
}

/** `seconds`: when all of it was written. */
export function tarOf(members: readonly TarMember[], seconds: number): Uint8Array {
  const parts = members.flatMap(({ name, bytes }) => {
    const padding = new Uint8Array(-bytes.length & (BLOCK - 1));
    return [header(name, bytes.length, seconds), bytes, padding];
  });
  return Buffer.concat([...parts, new Uint8Array(2 * BLOCK)]);
}

/** name 100, mode 8, uid 8, gid 8, size 12, time 12, checksum 8, type 1, link 100, magic 6, version 2, user 32, group 32 … */
function header(name: string, size: number, seconds: number): Uint8Array {
  const octal = (value: number, bytes: number) => `${value.toString(8).padStart(bytes - 1, "0")}\0`;
  if (name.length > 100) throw new Error(`${name} is too long for a tar`);
  const before = name.padEnd(100, "\0") + octal(0o600, 8) + octal(0, 8) + octal(0, 8) + octal(size, 12);
  const block = (sum: string) =>
    utf8(
      `${before}${octal(seconds, 12)}${sum}0${"\0".repeat(100)}ustar\x0000${"root".padEnd(32, "\0").repeat(2)}`
        .padEnd(BLOCK, "\0"),
    );
  const sum = block(" ".repeat(8)).reduce((one, other) => one + other, 0);
  return block(`${octal(sum, 7)} `);
}
