/**
 * The network namespace that a hook is called for: the one of `config.json`, if that has a path, because it outlives the
 * container's process; or else the process's own.
 *
 * Hooks `prestart` and `createRuntime` run in the runtime's namespaces, `createContainer` and `startContainer` in the
 * container's (OCI runtime specification, "POSIX-platform Hooks"). From in there the host's end of a link
 * cannot be made. runc gives those hooks the number that the process has in there, beside a /proc of the host: it names
 * another process. crun gives 0.
 */
import { CniError, errorText, INVALID_CONFIG, INVALID_NETNS } from "../../cni/error.ts";
import { isObject, parseDocument } from "../../cni/json.ts";
import { ownProcessId } from "../../process/calls.ts";
import { closeFile, readConfiguredFile } from "../../ffi/files.ts";
import { isSameNetns, openNetns, openOwnNetns } from "../../ffi/netns.ts";
import type { ContainerState } from "./state.ts";

const LONGEST_BYTES = 64 * 1024 * 1024;

/** `linux.namespaces` of the container's configuration, as far as it is about the network. */
type Configured = { kind: "new" } | { kind: "path"; path: string } | { kind: "none" } | {
  kind: "unknown";
  why: string;
};

/** A path that leads to the container's namespace, and not to this process's. */
export function containerNetns(state: ContainerState): string {
  if (state.status === "stopped") {
    throw refusal(`container ${state.id} has stopped`, "'hook add' is for createRuntime, 'hook del' for poststop");
  }
  if (!ownProcessId().startsWith(`${process.pid} `)) throw insideContainer();
  const configured = readConfigured(state.bundle);
  const path = configured.kind === "path" ? configured.path : netnsOf(state.pid);
  if (path === undefined) {
    throw refusal(
      `the state of container ${state.id} has no pid`,
      "without a path in linux.namespaces, 'hook add' needs the container's process: call it in createRuntime",
    );
  }
  if (isOwn(path)) throw configured.kind === "new" ? insideContainer() : sharedNetns(state, path, configured);
  return path;
}

function netnsOf(pid: number | undefined): string | undefined {
  return pid === undefined ? undefined : `/proc/${pid}/ns/net`;
}

function isOwn(path: string): boolean {
  let there: number;
  try {
    there = openNetns(path);
  } catch (error) {
    const next = path.startsWith("/proc/")
      ? "the container's process has ended"
      : "linux.namespaces of config.json names it";
    throw new CniError(INVALID_NETNS, `the network namespace ${path} cannot be opened: ${errorText(error)}`, next);
  }
  const here = openOwnNetns();
  try {
    return isSameNetns(there, here);
  } finally {
    closeFile(here);
    closeFile(there);
  }
}

function readConfigured(bundle: string): Configured {
  const path = `${bundle}/config.json`;
  let document: unknown;
  try {
    const text = readConfiguredFile(path, LONGEST_BYTES);
    if (text === undefined) return { kind: "unknown", why: `${path} is not there` };
    document = parseDocument(text, path);
  } catch (error) {
    return { kind: "unknown", why: errorText(error) };
  }
  const linux = isObject(document) ? document["linux"] : undefined;
  const namespaces = isObject(linux) ? linux["namespaces"] : undefined;
  const network = Array.isArray(namespaces)
    ? namespaces.find((one) => isObject(one) && one["type"] === "network")
    : undefined;
  if (network === undefined) return { kind: "none" };
  const there: unknown = network["path"] ?? "";
  if (there === "") return { kind: "new" };
  if (typeof there === "string" && there.startsWith("/") && !there.includes("\0")) {
    return { kind: "path", path: there };
  }
  throw refusal(`${path}: the network namespace's "path" is ${JSON.stringify(there)}`, "it must be an absolute path");
}

function insideContainer(): CniError {
  return refusal(
    "this hook runs in the container's own namespaces, where the host's end of a link cannot be made",
    "call 'hook add' in createRuntime (or prestart), not in createContainer or startContainer",
  );
}

function sharedNetns({ id }: ContainerState, path: string, configured: Configured): CniError {
  const what = `container ${id} has the network namespace of this process`;
  switch (configured.kind) {
    case "path":
      return refusal(
        `${what}: config.json has its path ${path}`,
        "name a namespace of the container's own, and call 'hook add' in createRuntime",
      );
    case "none":
      return refusal(
        `${what}: linux.namespaces of config.json has none of type "network"`,
        'add {"type": "network"} there, or take the hook out of a container in the host\'s network',
      );
    default:
      return refusal(
        configured.kind === "unknown" ? `${what} (${configured.why})` : what,
        "a container in the host's network needs no hook; otherwise call 'hook add' in createRuntime",
      );
  }
}

function refusal(message: string, next: string): CniError {
  return new CniError(INVALID_CONFIG, message, next);
}
