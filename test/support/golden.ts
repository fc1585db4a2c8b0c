/** Bytes from a file under test/golden: rows of four in hexadecimal, `*N` repeats a row, `#` starts a comment. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

function textOf(name: string): string {
  return readFileSync(resolve(import.meta.dir, "../golden", `${name}.txt`), "utf8");
}

export function golden(name: string): Uint8Array {
  const rows = textOf(name).split("\n").filter((line) => line !== "" && !line.startsWith("#")).map((line) => {
    const [, bytes, times] = /^((?:[0-9a-f]{2} ?)+)(?: +\*(\d+))?/.exec(line)!;
    return bytes!.replaceAll(" ", "").repeat(Number(times ?? 1));
  });
  return Uint8Array.fromHex(rows.join(""));
}

/** Four bytes a row, so that a comparison shows where the difference is. */
export function inRows(bytes: Uint8Array): string[] {
  return bytes.toHex().match(/.{1,8}/g) ?? [];
}

/** The command the file was captured from. */
export function commandOf(name: string): string {
  return textOf(name).split("\n")[0]!.replace(/^# /, "");
}
