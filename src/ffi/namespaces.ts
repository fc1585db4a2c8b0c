/**
 * Other namespaces than those that this process began in, and what is mounted in them: unshare(2), setns(2), mount(2),
 * mount_setattr(2). They hold for the calling thread and for the programs that it starts. netns.ts has those of networks.
 */
import { O_RDONLY, openFile, placeOf, whileOpen } from "./files.ts";
import { bindLater, check, cString, libc } from "./libc.ts";
import { FFIType } from "./native.ts";
import { CLONE_NEWNET } from "./netns.ts";

// sched.h
const CLONE_FS = 0x200, CLONE_NEWNS = 0x00020000, CLONE_NEWPID = 0x20000000;
const MS_REC = 0x4000, MS_PRIVATE = 0x40000, MS_BIND = 0x1000, MNT_DETACH = 2;
const SYS_mount_setattr = 442; // the same number on every architecture
const AT_FDCWD = -100, AT_RECURSIVE = 0x8000, MOUNT_ATTR_RDONLY = 1n;
const number = FFIType.i64_fast;

const c = bindLater({
  unshare: { args: ["i32"], returns: "i32" },
  mount: { args: ["ptr", "ptr", "ptr", FFIType.u64_fast, "ptr"], returns: "i32" },
  umount2: { args: ["ptr", "i32"], returns: "i32" },
  syscall: { args: [number, number, "ptr", number, "ptr", number], returns: number },
});

/**
 * What is mounted from here on, nobody else sees, and what others mount does not come here. The process is then in the root
 * directory of the namespace, as after `enterCopyOf`; throws in a chroot, which is another.
 */
export function leaveOthersMounts(): void {
  const root = placeOf("/");
  whileOpen(openOwnMounts(), enter);
  if (placeOf("/") !== root) {
    throw new Error("this is a chroot, and what is mounted outside of it cannot be told apart: run it outside");
  }
  check("unshare", c().unshare(CLONE_NEWNS), "mount namespace");
  mount("none", "/", "none", MS_REC | MS_PRIVATE);
}

/** This process's mounts, to return to. */
export function openOwnMounts(): number {
  return openFile("/proc/thread-self/ns/mnt", O_RDONLY);
}

/** A copy of the mounts: what is mounted and unmounted in it from here on, is not in them. */
export function enterCopyOf(mounts: number): void {
  enter(mounts);
  check("unshare", c().unshare(CLONE_NEWNS), "mount namespace");
}

/** The root and the working directory become those of the namespace. */
function enter(mounts: number): void {
  shareNoDirectories();
  check("setns", libc.setns(mounts, CLONE_NEWNS), "mount namespace");
}

/** For a thread that does not return. Root and working directory become those of the other mount namespace. */
export function enterMountsAndNetworkOf(pid: number): void {
  const kinds = [["net", CLONE_NEWNET], ["mnt", CLONE_NEWNS]] as const;
  const namespaces = kinds.map(([name, kind]) => {
    const path = `/proc/${pid}/ns/${name}`;
    return { path, kind, fd: openFile(path, O_RDONLY) };
  });
  shareNoDirectories();
  for (const { path, kind, fd } of namespaces) check("setns", libc.setns(fd, kind), path);
}

/** The runtime's other threads share root and working directory with this one, and the kernel refuses to change them for all. */
function shareNoDirectories(): void {
  check("unshare", c().unshare(CLONE_FS), "root and working directory");
}

/** The first program that `start` starts is process 1 of a new namespace. When it ends, the kernel ends all others there. */
export function inNewProcessNamespace<T>(start: () => T): T {
  return whileOpen(openFile("/proc/self/ns/pid", O_RDONLY), (home) => {
    check("unshare", c().unshare(CLONE_NEWPID), "process namespace");
    try {
      return start();
    } finally {
      // This process's own threads could not begin otherwise.
      check("setns", libc.setns(home, CLONE_NEWPID), "process namespace");
    }
  });
}

function mount(source: string, target: string, type: string, flags: number): void {
  check("mount", c().mount(cString(source), cString(target), cString(type), flags, null), target);
}

/** A new file system of a kind that needs no device: tmpfs, proc, sysfs. */
export function mountNew(type: "tmpfs" | "proc" | "sysfs", target: string): void {
  mount(type, target, type, 0);
}

export function mountAgain(source: string, target: string): void {
  mount(source, target, "none", MS_BIND);
}

/** With everything that is mounted below it. It ends when nobody uses it any more. */
export function unmount(target: string): void {
  check("umount", c().umount2(cString(target), MNT_DETACH), target);
}

/** Everything that is mounted now. What is mounted later can be written to (Linux 5.12). */
export function makeMountsReadOnly(): void {
  // struct mount_attr: set, clear, propagation, user namespace.
  const attributes = new BigUint64Array([MOUNT_ATTR_RDONLY, 0n, 0n, 0n]);
  const result = c().syscall(SYS_mount_setattr, AT_FDCWD, cString("/"), AT_RECURSIVE, attributes, 32);
  check("mount_setattr", Number(result), "/");
}
