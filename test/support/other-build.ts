/** The program as another build, which declines the calls of this one. */
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { buildOf } from "../../src/engine/build.ts";
import { PATCHBAY } from "./plugins.ts";

/** Only the bytes differ that say which build it is. Each number from 1 to 255 makes another. */
export function writeOtherBuild(path: string, number: number): string {
  const bytes = readFileSync(PATCHBAY), at = bytes.indexOf(buildOf(PATCHBAY));
  bytes[at] = bytes[at]! ^ number;
  writeFileSync(path, bytes);
  chmodSync(path, 0o755);
  return path;
}
