/**
 * Whether a caller is like this process: then it gains nothing by having its call done here. What the kernel says of it
 * counts, not what it says of itself.
 */
import { readTextFile } from "../ffi/files.ts";
import { bind, check, cString, fromUtf8 } from "../ffi/libc.ts";
import { FFIType } from "../ffi/native.ts";

const { readlink } = bind({ readlink: { args: ["ptr", "ptr", "usize"], returns: FFIType.i64_fast } });

const target = new Uint8Array(4096);

function targetOf(path: string): string {
  return fromUtf8(
    target.subarray(0, check("readlink", Number(readlink(cString(path), target, target.length)), path)),
  );
}

/** A path means the same to both when root and mount namespace are the same. */
const LINKS = ["ns/mnt", "ns/net", "ns/user", "ns/pid", "root"];

interface Nature {
  links: readonly string[];
  uids: string;
  capabilities: string;
}

function natureOf(pid: number | "self"): Nature {
  const status = readTextFile(`/proc/${pid}/status`) ?? "";
  const line = (name: string) => {
    const at = status.indexOf(`\n${name}:`);
    return at < 0 ? "" : status.slice(at + 1, status.indexOf("\n", at + 1));
  };
  return {
    links: LINKS.map((link) => targetOf(`/proc/${pid}/${link}`)),
    uids: `${line("Uid")} ${line("Gid")}`,
    capabilities: `${line("CapEff")} ${line("CapBnd")} ${line("Seccomp")}`,
  };
}

let own: Nature | undefined;

/** Why the process is served elsewhere, or undefined. */
export function whyUnlike(pid: number): "uid" | "namespace" | "capabilities" | undefined {
  own ??= natureOf("self");
  try {
    const { links, uids, capabilities } = natureOf(pid);
    if (uids !== own.uids) return "uid";
    if (links.some((link, index) => link !== own!.links[index])) return "namespace";
    return capabilities === own.capabilities ? undefined : "capabilities";
  } catch {
    // It is gone, or hidden.
    return "namespace";
  }
}
