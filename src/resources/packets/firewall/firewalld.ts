/**
 * Containers' addresses as sources of a zone of firewalld, by its D-Bus interface (firewalld.dbus(5),
 * org.fedoraproject.FirewallD1.zone). Changes are firewalld's until it is reloaded; `repair` makes them again.
 */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { type Answer, type Bus, DbusError, nameHasOwner, openSystemBus } from "../../../firewalld/bus.ts";
import { warn } from "../../../ffi/warn.ts";
import type { FirewallSpec } from "./firewall.ts";

const SERVICE = "org.fedoraproject.FirewallD1";

/** For the question whether firewalld runs: the bus itself answers it, and where nothing is configured all calls ask. */
const QUESTION_PATIENCE_MS = 3000;

let answered: { reason: string | undefined } | undefined;

/** Undefined when firewalld runs, or why it counts as not running. Asked once a process. */
export function whyNotRunning(): string | undefined {
  answered ??= { reason: askWhyNotRunning() };
  return answered.reason;
}

/** A bus that does not let us ask, or does not answer, is as good as none. */
function askWhyNotRunning(): string | undefined {
  try {
    const runs = withBus((bus) => bus.call(nameHasOwner, [SERVICE]) === true, QUESTION_PATIENCE_MS);
    return runs ? undefined : "firewalld does not run";
  } catch (error) {
    const reason = `firewalld counts as not running: ${(error as Error).message}`;
    warn(reason);
    return reason;
  }
}

/** Undefined where there is no bus. */
function withBus<T>(work: (bus: Bus) => T, patienceMs?: number): T | undefined {
  const bus = openSystemBus(patienceMs);
  if (bus === undefined) return undefined;
  try {
    return work(bus);
  } finally {
    bus.close();
  }
}

function zoneCall(bus: Bus, member: string, zone: string, address: string): Answer {
  const path = "/org/fedoraproject/FirewallD1", method = { path, interface: `${SERVICE}.zone`, member };
  return bus.call({ destination: SERVICE, ...method }, [zone, sourceOf(address)]);
}

function sourceOf(address: string): string {
  return `${address}/${address.includes(":") ? 128 : 32}`;
}

/** Calls `work` with each address and the bus. */
function forEachAddress(spec: FirewallSpec, work: (bus: Bus, address: string) => void): boolean {
  const done = withBus((bus) => {
    for (const address of spec.addresses) work(bus, address);
    return true;
  });
  return done ?? false;
}

export function apply(spec: FirewallSpec): void {
  const reached = forEachAddress(spec, (bus, address) => {
    try {
      zoneCall(bus, "addSource", spec.zone, address);
    } catch (error) {
      if (error instanceof DbusError && error.message.includes("ZONE_ALREADY_SET")) return;
      const text = `failed to add the address ${sourceOf(address)} to ${spec.zone} zone`;
      throw new CniError(INTERNAL, `${text}: ${(error as Error).message}`, "", { cause: error });
    }
  });
  if (!reached) throw new CniError(INTERNAL, "firewalld cannot be reached: there is no D-Bus system bus");
}

/** What firewalld refuses to remove is not there, or will be gone with it: it keeps no record of these. */
export function remove(spec: FirewallSpec, claimed: () => ReadonlySet<string>): void {
  forEachAddress(spec, (bus, address) => {
    if (claimed().has(address)) return;
    try {
      zoneCall(bus, "removeSource", spec.zone, address);
    } catch (error) {
      if (!(error instanceof DbusError)) throw error;
    }
  });
}

export function verify(spec: FirewallSpec): string[] {
  const differences: string[] = [];
  const reached = forEachAddress(spec, (bus, address) => {
    if (zoneCall(bus, "querySource", spec.zone, address) === true) return;
    differences.push(`failed to find the address ${sourceOf(address)} in ${spec.zone} zone`);
  });
  return reached ? differences : ["firewalld cannot be reached: there is no D-Bus system bus"];
}
