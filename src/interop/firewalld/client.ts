/**
 * firewalld's D-Bus interface (firewalld.dbus(5)), and a part of it by itself: addresses as sources of a zone. Changes last
 * until firewalld is reloaded.
 */
import { forgetAfterCall } from "../../process/calls.ts";
import { beforeWaitingFor, BRIEF_WAIT_MS, patienceLeftMs, waitingFor } from "../../process/patience.ts";
import { warn } from "../../process/warn.ts";
import {
  type Bus,
  type BusReply,
  DbusError,
  nameHasOwner,
  openSystemBus,
  PATIENCE_MS,
  systemBusAddress,
} from "./bus.ts";
import { bare, type Value } from "./marshal.ts";

const SERVICE = "org.fedoraproject.FirewallD1", PATH = "/org/fedoraproject/FirewallD1";

/** The bus itself answers whether firewalld runs, so it answers quickly; where nothing is configured, every call asks. */
const QUESTION_PATIENCE_MS = 3000;

let answered: { reason: string | undefined } | undefined;
forgetAfterCall(() => (answered = undefined));

/** Undefined when firewalld runs. Asked once in a call, and again when the bus has not said no at once. */
export function whyNotRunning(): string | undefined {
  if (mayFirewalldRun()) beforeWaitingFor("firewalld");
  answered ??= { reason: askWhyNotRunning() };
  return answered.reason;
}

/** A bus that refuses the question, or does not answer, counts as no bus. */
function askWhyNotRunning(): string | undefined {
  try {
    return reasonWithin(QUESTION_PATIENCE_MS);
  } catch (error) {
    const reason = `firewalld counts as not running: ${(error as Error).message}`;
    warn(reason);
    return reason;
  }
}

function reasonWithin(patienceMs: number): string | undefined {
  const runs = withBus((bus) => bus.call(nameHasOwner, [SERVICE]), patienceMs);
  return runs === true ? undefined : "firewalld does not run";
}

/** Asks for at most `BRIEF_WAIT_MS`. A clear answer counts for the whole call. */
export function mayFirewalldRun(): boolean {
  try {
    answered ??= { reason: reasonWithin(BRIEF_WAIT_MS) };
    return answered.reason === undefined;
  } catch {
    return true;
  }
}

/** Throws where there is no message bus. */
export function requireBus(): void {
  if (withBus(() => true, QUESTION_PATIENCE_MS) === undefined) {
    throw new Error(
      `nobody listens at ${systemBusAddress()}; start dbus-daemon and firewalld, or take another driver`,
    );
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

/**
 * A call of firewalld: `zone` is `org.fedoraproject.FirewallD1.zone`. `config` is what it has on disk, and the empty text
 * what runs.
 */
export type FirewalldCall = (
  where: "" | "zone" | "policy" | "config",
  member: string,
  args?: readonly Value[],
  signature?: string,
) => BusReply;

/** Returns undefined where there is no bus. */
export function withFirewalld<T>(work: (call: FirewalldCall) => T): T | undefined {
  return withBus((bus) => work((where, ...call) => callOf(bus, where, ...call)));
}

function callOf(bus: Bus, where: string, member: string, args?: readonly Value[], signature?: string): BusReply {
  const path = `${PATH}${where === "config" ? "/config" : ""}`;
  const method = { path, interface: where === "" ? SERVICE : `${SERVICE}.${where}`, member };
  return bus.call({ destination: SERVICE, ...method }, args, signature);
}

/** The value of a property of firewalld's configuration; undefined where it has no such property. */
export function firewalldProperty(name: string): Value | undefined {
  return withBus((bus) => {
    const method = { path: `${PATH}/config`, interface: "org.freedesktop.DBus.Properties", member: "Get" };
    try {
      return bare(bus.call({ destination: SERVICE, ...method }, [`${SERVICE}.config`, name]));
    } catch (error) {
      if (error instanceof DbusError) return undefined;
      throw error;
    }
  });
}

/** Returns false where there is no bus. */
export function withZone(name: string, work: (zone: Zone) => void): boolean {
  const done = withFirewalld((call) => {
    work({
      addSource: (source) => unlessRefused(() => call("zone", "addSource", [name, source]), "ZONE_ALREADY_SET"),
      removeSource: (source) => unlessRefused(() => call("zone", "removeSource", [name, source])),
      hasSource: (source) => call("zone", "querySource", [name, source]) === true,
    });
    return true;
  });
  return done ?? false;
}

/** Ignores a refusal whose text has the reason; without a reason, any refusal. */
export function unlessRefused(call: () => void, reason = ""): void {
  try {
    call();
  } catch (error) {
    if (!(error instanceof DbusError) || !error.message.includes(reason)) throw error;
  }
}

/** Returns undefined where there is no bus. */
function withBus<T>(work: (bus: Bus) => T, patienceMs = PATIENCE_MS): T | undefined {
  // What asks briefly is asked as if nobody had waited for longer answers.
  const whom = `D-Bus, ${patienceMs}`;
  return waitingFor(whom, () => {
    const bus = openSystemBus(patienceMs, patienceLeftMs(whom, patienceMs));
    if (bus === undefined) return undefined;
    try {
      return work(bus);
    } finally {
      bus.close();
    }
  });
}
