/**
 * Sysctls of the container's network namespace. The ledger has the earlier values, and DEL restores them, because the
 * namespace may live on. DEL leaves a sysctl that somebody has changed since ADD, and does nothing when the namespace is
 * gone.
 */
import { CniError, INVALID_CONFIG } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import { EACCES, EBUSY, EINVAL, EISDIR, ENOENT, EOPNOTSUPP, ERANGE, isErrno, SyscallError } from "../../ffi/errno.ts";
import { exists, identify } from "../../ffi/files.ts";
import { readSysctl, writeSysctl } from "../../ffi/sysctl.ts";
import { warn } from "../../process/warn.ts";

/** By key below /proc/sys, with slashes: `net/core/somaxconn`. */
export type SysctlValues = Record<string, string>;

interface SysctlsSpec {
  values: SysctlValues;
  /** The earlier values, without write-only sysctls. Undefined when another program did ADD. */
  before?: SysctlValues;
}

export const sysctlsKind: ResourceKind<SysctlsSpec> = {
  kind: "sysctls",
  judge({ values }, host) {
    host.container!.inside(() => {
      for (const key in values) {
        if (!mayExist(key)) {
          throw writeFailed(key, values[key]!, new SyscallError("open", ENOENT, `/proc/sys/${key}`));
        }
      }
    });
  },
  apply(spec, host) {
    host.container!.inside(() => {
      const written: SysctlValues = {};
      for (const key in spec.values) {
        const value = spec.values[key]!;
        written[key] = value;
        try {
          writeSysctl(key, value);
        } catch (error) {
          undoAfter(error, () => putBack({ ...spec, values: written }));
          throw writeFailed(key, value, error);
        }
      }
    });
  },
  verify: ({ values }, host) =>
    host.container!.inside(() => {
      const differences: string[] = [];
      for (const key in values) {
        const wanted = values[key]!, current = valueOf(key);
        if (current !== WRITE_ONLY && !isSameValue(wanted, current)) {
          const file = `/proc/sys/${key}`;
          differences.push(
            `Error: Tuning configured value of ${file} is ${wanted}, current value is ${current ?? "missing"}`,
          );
        }
      }
      return differences;
    }),
  remove(spec, host) {
    if (spec.before !== undefined) host.container?.inside(() => putBack(spec));
  },
  repair({ values }, host) {
    host.container!.inside(() => {
      for (const key in values) if (!isSameValue(values[key]!, valueOf(key))) writeSysctl(key, values[key]!);
    });
  },
  describe: ({ values }) => Object.entries(values).map(([key, value]) => `sysctl ${key} = ${value}`).join(", "),
};

export const sysctls = resource(sysctlsKind);

/** The container's current values of the keys of `values`. */
export function currentSysctls(values: SysctlValues, host: Host): SysctlValues {
  return host.container!.inside(() => {
    const current: SysctlValues = {};
    for (const key in values) {
      const value = valueOf(key);
      if (value !== undefined && value !== WRITE_ONLY) current[key] = value;
    }
    return current;
  });
}

/** Stands for the value of a sysctl that cannot be read, like net/ipv4/route/flush. No sysctl has this value. */
const WRITE_ONLY = "\0";

/** Undefined when the kernel has no such key. */
function valueOf(key: string): string | undefined {
  try {
    return readSysctl(key);
  } catch (error) {
    if (isErrno(error, EISDIR)) return undefined;
    if (isErrno(error, EACCES) && (identify(`/proc/sys/${key}`).mode & 0o444) === 0) return WRITE_ONLY;
    throw error;
  }
}

/** Restores in reverse order, because one sysctl may change others, as conf/all does. */
function putBack({ values, before = {} }: SysctlsSpec): void {
  for (const key of Object.keys(values).reverse()) {
    const old = before[key];
    if (old === undefined || isSameValue(old, values[key]) || !isSameValue(values[key]!, valueOf(key))) continue;
    try {
      writeSysctl(key, old);
    } catch (error) {
      // Gone with its link, or the kernel does not accept the text that it reported. Trying again would not help.
      if (!isErrno(error, ENOENT, EINVAL, ERANGE, EBUSY, EOPNOTSUPP)) throw error;
      warn(`sysctl ${key} stays ${values[key]}: ${(error as Error).message}`);
    }
  }
}

/** The kernel reads several values with spaces between them and reports them with tabs. Numbers may have other bases. */
function isSameValue(wanted: string, current: string | undefined): boolean {
  if (current === undefined || wanted === current) return wanted === current;
  const one = wanted.trim().split(/\s+/), other = current.trim().split(/\s+/);
  if (one.length !== other.length) return false;
  for (let index = 0; index < one.length; index++) {
    if (one[index] !== other[index] && Number(one[index]) !== Number(other[index])) return false;
  }
  return true;
}

const OF_LINK = /^(net\/ipv[46]\/(?:conf|neigh)\/)([^/]+)(\/.*)$/;

/** A link that is not there yet will have the keys of every link. */
function mayExist(key: string): boolean {
  const [, begin, link, end] = OF_LINK.exec(key) ?? [];
  const isLinkThere = link === undefined || exists(`/proc/sys/${begin}${link}`);
  return exists(`/proc/sys/${isLinkThere ? key : `${begin}default${end}`}`);
}

function writeFailed(key: string, value: string, error: unknown): unknown {
  const reason = whyRefused(error);
  if (reason === undefined) return error;
  return new CniError(
    INVALID_CONFIG,
    `failed to set sysctl "${key}" to "${value}": ${(error as Error).message}`,
    reason,
    { cause: error },
  );
}

function whyRefused(error: unknown): string | undefined {
  if (isErrno(error, ENOENT, EISDIR)) return "this kernel has no such key";
  if (isErrno(error, EINVAL, ERANGE)) return "the kernel refuses the value";
  if (isErrno(error, EACCES)) return "the kernel does not let it be written";
  return undefined;
}
