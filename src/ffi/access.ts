/** What this process may do with a file, by access(2). */
import { bind, cString } from "./libc.ts";

const { access } = bind({ access: { args: ["ptr", "i32"], returns: "i32" } });

const W_OK = 2;

export function mayWrite(path: string): boolean {
  return access(cString(path), W_OK) === 0;
}
