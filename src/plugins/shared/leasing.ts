/** What the IPAM plugins with a lease store share: the addresses asked for, one of each set or none, and the result. */
import { invalidArg, parseCniArgs } from "../../cni/args.ts";
import { CniError, errorText, INTERNAL, IO_FAILURE } from "../../cni/error.ts";
import type { Dns, IpConfig, Result } from "../../cni/result.ts";
import { ENOENT, SyscallError } from "../../ffi/errno.ts";
import { readConfiguredFile } from "../../ffi/files.ts";
import { allocate, type Allocated, type AllocationRequest, giveBack } from "../../ipam/allocator.ts";
import { type Range, rangeOf, type RangeSet } from "../../ipam/range.ts";
import type { Store, StoredLease } from "../../ipam/store.ts";
import { formatAddress, parseAddress, parsePrefix } from "../../net/address.ts";
import { parseResolvConf } from "./resolv-conf.ts";

/** What of a call can name addresses. */
interface Asking {
  conf: { args?: { cni?: { ips?: string[] } }; runtimeConfig?: { ips?: string[] } };
  cniArgs: string;
}

/** Without duplicates. A prefix length is allowed and ignored. */
export function requestedAddresses({ conf, cniArgs }: Asking): Uint8Array[] {
  const { IP } = parseCniArgs(cniArgs, ["IP"]);
  const texts = [...conf.args?.cni?.ips ?? [], ...conf.runtimeConfig?.ips ?? []];
  if (IP) {
    if (addressOf(IP) === undefined) throw invalidArg("IP", IP, `invalid IP address ${IP}`);
    texts.unshift(IP);
  }
  if (texts.length === 0) return [];
  const addresses = texts.map((text) => addressOf(text)!);
  return [...new Map(addresses.map((address) => [formatAddress(address), address])).values()];
}

function addressOf(text: string): Uint8Array | undefined {
  return text.includes("/") ? parsePrefix(text)?.bytes : parseAddress(text);
}

/** Removes and returns the first requested address that is in the set. */
export function takeRequested(set: RangeSet, requested: Uint8Array[]): Uint8Array | undefined {
  for (let index = 0; index < requested.length; index++) {
    if (rangeOf(set, requested[index]!) !== undefined) return requested.splice(index, 1)[0];
  }
  return undefined;
}

export function requireNoneLeft(requested: readonly Uint8Array[]): void {
  if (requested.length === 0) return;
  throw new CniError(INTERNAL, `failed to allocate all requested IPs: ${requested.map(formatAddress).join(" ")}`);
}

/** An address for each of so many sets, or none: `requestFor` says which set, when those before it have their address. */
export function allocateEach(
  store: Store,
  lease: StoredLease,
  count: number,
  requestFor: (index: number) => AllocationRequest,
  failureOf: (index: number, error: unknown) => unknown = (_, error) => error,
): Allocated[] {
  const taken: Allocated[] = [];
  try {
    while (taken.length < count) taken.push(allocate(store, requestFor(taken.length)));
    return taken;
  } catch (error) {
    giveBackAll(store, lease, taken);
    throw failureOf(taken.length, error);
  }
}

export function giveBackAll(store: Store, lease: StoredLease, taken: readonly Allocated[]): void {
  for (const one of taken) giveBack(store, lease, one);
}

export function ipConfig(address: Uint8Array, { subnet, gateway }: Range): IpConfig {
  const text = `${formatAddress(address)}/${subnet.bits}`;
  return gateway === undefined ? { address: text } : { address: text, gateway: formatAddress(gateway) };
}

/** The addresses of prevResult, which the attachment probably leases. */
export function hintsOf(prevResult: Result | undefined): Uint8Array[] {
  const hints: Uint8Array[] = [];
  for (const { address } of prevResult?.ips ?? []) {
    const prefix = parsePrefix(address);
    if (prefix !== undefined) hints.push(prefix.bytes);
  }
  return hints;
}

/** What the file says that `ipam.resolvConf` names. */
export function dnsFrom(path: string | undefined): Dns | undefined {
  if (!path) return undefined;
  try {
    const text = readConfiguredFile(path);
    if (text === undefined) throw new SyscallError("open", ENOENT, path);
    return parseResolvConf(text);
  } catch (error) {
    throw leasingFailure("", error);
  }
}

export function leasingFailure(context: string, cause: unknown): CniError {
  const code = cause instanceof CniError ? cause.code : cause instanceof SyscallError ? IO_FAILURE : INTERNAL;
  return new CniError(code, context + errorText(cause), "", { cause });
}
