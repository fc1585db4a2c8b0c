/** Sysctls as netavark sets them: only where they differ, so that a /proc/sys without write access may be right already. */
import { readSysctl, writeSysctl } from "../../../ffi/sysctl.ts";
import { systemText } from "./netavark-text.ts";

export function ensureSysctl(key: string, value: string): void {
  try {
    if (readSysctl(key) !== value) writeSysctl(key, value);
  } catch (error) {
    throw new Error(`set sysctl ${key}: ${systemText(error)}`, { cause: error });
  }
}
