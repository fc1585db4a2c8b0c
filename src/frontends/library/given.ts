/** Checks the arguments of the library's functions. Each error names the key and the value. */
import { isObject } from "../../cni/json.ts";
import { absolutePath } from "../../ffi/absolute-path.ts";
import { NETNS_DIRECTORY } from "../../runtime/paths.ts";
import type { AttachmentRequest } from "../../runtime/plugin-call.ts";
import { closestKey } from "../../cni/spelling.ts";
import { ArgumentError } from "./argument-error.ts";
import type { Options } from "./documents.ts";

const attachmentKeys = ["containerId", "netns", "ifName", "args", "capabilities"] as const;

/** `netns` may be missing where `needsNetns` is false. */
export function requestFrom(attachment: unknown, needsNetns: boolean): AttachmentRequest {
  const { containerId, netns, ifName = "eth0", args, capabilities } = knownKeys(
    "attachment",
    attachment,
    attachmentKeys,
  );
  return {
    containerId: text("attachment.containerId", containerId),
    netnsPath: netns === undefined && !needsNetns ? "" : netnsPath(netns),
    ifName: text("attachment.ifName", ifName),
    cniArgs: args === undefined ? [] : pairs(args),
    capabilityArgs: capabilities === undefined ? {} : object("attachment.capabilities", capabilities),
  };
}

/** The request of no container in particular, for `plan`. */
export function anyRequest(): AttachmentRequest {
  return { containerId: "any", netnsPath: "", ifName: "eth0", cniArgs: [], capabilityArgs: {} };
}

function netnsPath(value: unknown): string {
  const path = text("attachment.netns", value);
  if (!path.includes("/")) {
    throw new ArgumentError(
      "attachment.netns",
      path,
      `is not a path; ip-netns(8) keeps namespaces in ${NETNS_DIRECTORY}`,
    );
  }
  return absolutePath(path);
}

function pairs(args: unknown): [string, string][] {
  return Object.entries(object("attachment.args", args)).map(([key, value]) => {
    const path = `attachment.args.${key}`;
    if (key === "" || /[=;]/.test(key)) {
      throw new ArgumentError("attachment.args", key, "cannot be the key of a pair");
    }
    if (/[=;]/.test(text(path, value))) throw new ArgumentError(path, value, 'must not contain "=" or ";"');
    return [key, value as string];
  });
}

const optionKeys = ["configDirectory", "pluginPath", "cacheDirectory", "onWarning"] as const;

export function checkedOptions(options: unknown): Options {
  const given = knownKeys("options", options, optionKeys);
  for (const key of ["configDirectory", "pluginPath", "cacheDirectory"] as const) {
    const value = given[key];
    if (value === undefined) continue;
    if (typeof value !== "string") throw new ArgumentError(`options.${key}`, value, "must be a string");
    if (key !== "pluginPath" && !value.startsWith("/")) {
      throw new ArgumentError(`options.${key}`, value, "must be an absolute path");
    }
  }
  if (given.onWarning !== undefined && typeof given.onWarning !== "function") {
    throw new ArgumentError("options.onWarning", given.onWarning, "must be a function");
  }
  return given as Options;
}

/** The value, when it is an object with no other keys. */
export function knownKeys<Key extends string>(
  path: string,
  value: unknown,
  keys: readonly Key[],
): { [K in Key]?: unknown } {
  const given = object(path, value);
  for (const key of Object.keys(given)) {
    if ((keys as readonly string[]).includes(key)) continue;
    const meant = closestKey(key, keys);
    const hint = meant === undefined ? `there are ${keys.join(", ")}` : `did you mean ${meant}?`;
    throw new ArgumentError(`${path}.${key}`, given[key], `is under an unknown key; ${hint}`);
  }
  return given as { [K in Key]?: unknown };
}

function object(path: string, value: unknown): Record<string, unknown> {
  if (!isObject(value)) throw new ArgumentError(path, value, "must be an object");
  return value;
}

export function text(path: string, value: unknown): string {
  if (typeof value !== "string" || value === "") {
    throw new ArgumentError(path, value, "must be a string that is not empty");
  }
  if (value.includes("\0")) throw new ArgumentError(path, value, "must not contain NUL");
  return value;
}
