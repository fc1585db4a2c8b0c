/**
 * firewalld's D-Bus interface (firewalld.dbus(5), org.fedoraproject.FirewallD1.zone): addresses as sources of a zone.
 * Changes last until firewalld is reloaded.
 */
import { forgetAfterCall } from "../ffi/calls.ts";
import { warn } from "../ffi/warn.ts";
import { type Answer, type Bus, DbusError, nameHasOwner, openSystemBus } from "./bus.ts";

const SERVICE = "org.fedoraproject.FirewallD1";

/** The bus itself answers whether firewalld runs, so it answers quickly; where nothing is configured, every call asks. */
const QUESTION_PATIENCE_MS = 3000;

let answered: { reason: string | undefined } | undefined;
forgetAfterCall(() => (answered = undefined));

/** Undefined when firewalld runs. Asked once in a call. */
export function whyNotRunning(): string | undefined {
  answered ??= { reason: askWhyNotRunning() };
  return answered.reason;
}

/** A bus that refuses the question, or does not answer, counts as no bus. */
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

/** Sources are addresses with prefix: `10.88.0.5/32`. */
export interface Zone {
  /** One that the zone has already is no error. */
  addSource(source: string): void;
  /** What firewalld refuses to remove is not there. */
  removeSource(source: string): void;
  hasSource(source: string): boolean;
}

/** Returns false where there is no bus. */
export function withZone(name: string, work: (zone: Zone) => void): boolean {
  const done = withBus((bus) => {
    const call = (member: string, source: string) => zoneCall(bus, member, name, source);
    work({
      addSource: (source) => unlessRefused(() => call("addSource", source), "ZONE_ALREADY_SET"),
      removeSource: (source) => unlessRefused(() => call("removeSource", source)),
      hasSource: (source) => call("querySource", source) === true,
    });
    return true;
  });
  return done ?? false;
}

function zoneCall(bus: Bus, member: string, zone: string, source: string): Answer {
  const path = "/org/fedoraproject/FirewallD1", method = { path, interface: `${SERVICE}.zone`, member };
  return bus.call({ destination: SERVICE, ...method }, [zone, source]);
}

/** Ignores a refusal whose text has the reason; without a reason, any refusal. */
function unlessRefused(call: () => void, reason = ""): void {
  try {
    call();
  } catch (error) {
    if (!(error instanceof DbusError) || !error.message.includes(reason)) throw error;
  }
}

/** Returns undefined where there is no bus. */
function withBus<T>(work: (bus: Bus) => T, patienceMs?: number): T | undefined {
  const bus = openSystemBus(patienceMs);
  if (bus === undefined) return undefined;
  try {
    return work(bus);
  } finally {
    bus.close();
  }
}
