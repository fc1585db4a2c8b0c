/** The control groups of this process (cgroups(7)), as far as they limit it. */
import { readTextFile } from "./files.ts";

const MOUNT = "/sys/fs/cgroup";
/** Version 1 has this number where there is no limit, less a page or so. */
const UNLIMITED = 2 ** 62;

/** Whether this process's group, or one above it that is seen here, may have only so much memory. */
export function hasMemoryLimit(): boolean {
  return (readTextFile("/proc/self/cgroup") ?? "").split("\n").some((line) => {
    // `0::/path` is version 2, `5:memory:/path` version 1.
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === undefined) return false;
    if (controllers === "") return isLimited(MOUNT, path, "memory.max");
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
