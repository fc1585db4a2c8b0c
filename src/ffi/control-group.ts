/** The control groups of this process (cgroups(7)), as far as they limit it. */
import { readTextFile } from "./files.ts";

const MOUNT = "/sys/fs/cgroup";
/** Without a limit, version 1 has 2^63 less a page. */
const UNLIMITED = 2 ** 62;

/** Whether this process's group, or one above it that is seen here, may have only so much memory. */
export function hasMemoryLimit(): boolean {
  return (readTextFile("/proc/self/cgroup") ?? "").split("\n").some((line) => {
    // `0::/path` is version 2, `5:memory:/path` version 1.
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === undefined) return false;
    if (controllers === "") return ["memory.max", "memory.high"].some((file) => isLimited(MOUNT, path, file));
    return controllers!.split(",").includes("memory") && isLimited(`${MOUNT}/memory`, path, "memory.limit_in_bytes");
  });
}

function isLimited(mount: string, path: string, file: string): boolean {
  const names = path.split("/").filter(Boolean);
  return ["", ...names].some((_, depth) => {
    const group = ["", ...names.slice(0, depth)].join("/");
    const limit = readTextFile(`${mount}${group}/${file}`)?.trim() ?? "max";
    return limit !== "max" && Number(limit) < UNLIMITED;
  });
}
