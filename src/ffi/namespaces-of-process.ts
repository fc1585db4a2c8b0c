/** The namespaces of another process, for a thread that does not return (setns(2)). */
import { O_RDONLY, openFile } from "./files.ts";
import { bind, check, libc } from "./libc.ts";

// sched.h
const CLONE_FS = 0x200, CLONE_NEWNS = 0x20000, CLONE_NEWNET = 0x40000000;

/** Root and working directory become those of the mount namespace. */
export function enterMountsAndNetworkOf(pid: number): void {
  const { unshare } = bind({ unshare: { args: ["i32"], returns: "i32" } });
  const kinds = [["net", CLONE_NEWNET], ["mnt", CLONE_NEWNS]] as const;
  const namespaces = kinds.map(([name, kind]) => {
    const path = `/proc/${pid}/ns/${name}`;
    return { path, kind, fd: openFile(path, O_RDONLY) };
  });
  // The runtime's other threads share root and working directory with this one, and the kernel refuses that.
  check("unshare", unshare(CLONE_FS), "root directory");
  for (const { path, kind, fd } of namespaces) check("setns", libc.setns(fd, kind), path);
}
