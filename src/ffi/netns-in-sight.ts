/** The network namespaces that processes are in, or that are mounted here. */
import { closeFile, identify, listDirectory, readTextFile, whileOpen } from "./files.ts";
import { NETLINK_ROUTE, openNetlink } from "./netlink/socket.ts";
import { inNetns, netnsCookie, openNetns, openOwnNetns } from "./netns.ts";

/** Their cookies. What this process may not enter is left out, as are all before Linux 5.14. */
export function cookiesInSight(): Set<string> {
  const cookies = new Set<string>(), seen = new Set<string>();
  whileOpen(openOwnNetns(), (home) => {
    for (const path of pathsInSight()) {
      const cookie = cookieAt(path, seen, home);
      if (cookie !== undefined) cookies.add(cookie);
    }
  });
  return cookies;
}

function pathsInSight(): string[] {
  const processes = listDirectory("/proc").filter((name) => /^[0-9]+$/.test(name));
  return [...processes.map((pid) => `/proc/${pid}/ns/net`), ...mountedNamespaces()];
}

/** proc_pid_mountinfo(5): the fifth field is the path, with some characters in octal, and the type follows ` - `. */
export function mountedNamespaces(): string[] {
  const lines = (readTextFile("/proc/thread-self/mountinfo") ?? "").split("\n");
  return lines.filter((line) => line.includes(" - nsfs ")).map((line) =>
    line.split(" ")[4]!.replace(/\\([0-7]{3})/g, (_, code) => String.fromCharCode(parseInt(code, 8)))
  );
}

/**
 * What decides which namespaces this process sees: those of mounts and of processes that it is in itself. Two processes with
 * the same see the same.
 */
export function ownSight(): string {
  return ["mnt", "pid"].map((kind) => identify(`/proc/self/ns/${kind}`).id).join(" ");
}

/** The cookie of a namespace that is not in `seen` yet. */
function cookieAt(path: string, seen: Set<string>, home: number): string | undefined {
  let netns: number | undefined;
  try {
    const { id } = identify(path);
    if (seen.has(id)) return undefined;
    seen.add(id);
    netns = openNetns(path);
    return cookieOf(netns, home);
  } catch {
    // The process has ended, the namespace is one of another type, or not ours to enter.
    return undefined;
  } finally {
    if (netns !== undefined) closeFile(netns);
  }
}

/** `home` is the namespace that the thread returns to. */
function cookieOf(netns: number, home: number): string | undefined {
  return inNetns(netns, home, () => {
    const socket = openNetlink(NETLINK_ROUTE);
    try {
      return netnsCookie(socket.fd);
    } finally {
      socket.close();
    }
  });
}
