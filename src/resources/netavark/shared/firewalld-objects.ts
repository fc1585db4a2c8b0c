/**
 * What netavark's driver `firewalld` has in firewalld: a zone whose sources are the subnets of podman's networks, policies
 * between it and the others, and published ports in two of the policies. Only the sources and ports are not permanent.
 */
import { DbusError } from "../../../interop/firewalld/bus.ts";
import { type FirewalldCall, whyNotRunning, withFirewalld } from "../../../interop/firewalld/client.ts";
import { isV6 } from "../../../net/address.ts";
import { bare, type Value } from "../../../interop/firewalld/marshal.ts";

export const ZONE = "netavark_zone";
/** From anywhere to the host. */
export const PORTS = "netavark_portfwd";
/** From the host itself. */
export const LOCAL_PORTS = "netavark_host_fwd";

interface Policy {
  name: string;
  from: string;
  to: string;
  target: "ACCEPT" | "CONTINUE";
  masquerades: boolean;
}

const policies: readonly Policy[] = [
  { name: "netavark_policy", from: ZONE, to: "ANY", target: "ACCEPT", masquerades: true },
  { name: PORTS, from: "ANY", to: "HOST", target: "CONTINUE", masquerades: false },
  { name: LOCAL_PORTS, from: "HOST", to: "ANY", target: "CONTINUE", masquerades: false },
  { name: "netavark_zone_acc", from: "ANY", to: ZONE, target: "CONTINUE", masquerades: true },
];

/** Throws when firewalld cannot be asked. */
export function inFirewalld(work: (call: FirewalldCall) => void): void {
  const reason = whyNotRunning();
  if (reason !== undefined) {
    throw new Error(`${reason}; the firewall driver firewalld needs it. Start it, or take the driver nftables`);
  }
  withFirewalld(work);
}

/** Does nothing when firewalld does not run: then it has no objects either. */
export function whereItRuns(work: (call: FirewalldCall) => void): void {
  if (whyNotRunning() === undefined) withFirewalld(work);
}

/** Reloads firewalld only when an object is missing: a reload drops what other programs have added at run time. */
export function ensureObjects(call: FirewalldCall): void {
  const running = new Set([...namesIn(call, "zone", "getZones"), ...namesIn(call, "policy", "getPolicies")]);
  if ([ZONE, ...policies.map(({ name }) => name)].every((name) => running.has(name))) return;
  if (!namesIn(call, "config", "getZoneNames").includes(ZONE)) {
    naming(`Error creating zone ${ZONE}`, () => call("config", "addZone2", [ZONE, []], "sa{sv}"));
  }
  const permanent = namesIn(call, "config", "getPolicyNames");
  for (const { name, from, to, target, masquerades } of policies) {
    if (permanent.includes(name)) continue;
    const settings: Value = [
      ["egress_zones", { signature: "as", value: [to] }],
      ["ingress_zones", { signature: "as", value: [from] }],
      ["target", { signature: "s", value: target }],
      ...masquerades ? [["masquerade", { signature: "b", value: true }]] : [],
    ];
    naming(`Error creating policy ${name}`, () => call("config", "addPolicy", [name, settings], "sa{sv}"));
  }
  call("", "reload");
}

function namesIn(call: FirewalldCall, where: "zone" | "policy" | "config", member: string): string[] {
  return call(where, member) as string[];
}

function naming(what: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    if (error instanceof DbusError) throw new Error(`${what}: DBus error: ${error.message}`, { cause: error });
    throw error;
  }
}

/** The two lists of a policy with ports. */
export interface PolicyPorts {
  /** `port, protocol, to port, to address`. */
  forwards: (readonly [string, string, string, string])[];
  /** firewalld.richlanguage(5) */
  rich: string[];
}

/** Changes the lists of a policy. Callers hold netavark's lock, so that nobody else changes them meanwhile. */
export function changePolicy(call: FirewalldCall, name: string, change: (ports: PolicyPorts) => PolicyPorts): void {
  const present = readPolicy(call, name), wanted = change(present), settings: Value[] = [];
  if (!isEqual(present.forwards, wanted.forwards)) {
    settings.push(["forward_ports", { signature: "a(ssss)", value: wanted.forwards }]);
  }
  if (!isEqual(present.rich, wanted.rich)) settings.push(["rich_rules", { signature: "as", value: wanted.rich }]);
  if (settings.length === 0) return;
  const set = (more: Value[] = []) => call("policy", "setPolicySettings", [name, [...settings, ...more]], "sa{sv}");
  naming(`Failed to update firewalld policy ${name} port forwarding rules`, () => {
    try {
      set();
    } catch (error) {
      if (!(error instanceof DbusError) || !error.message.includes(NOT_TO_HOST)) throw error;
      set([["egress_zones", { signature: "as", value: ["ANY"] }]]);
    }
  });
}

/**
 * firewalld before 2.2 forwards ports to other addresses only in a policy to `ANY`, later ones only in a policy to `HOST`.
 * The permanent configuration stays as netavark writes it.
 */
const NOT_TO_HOST = "is invalid for egress zone 'HOST'";

export function readPolicy(call: FirewalldCall, name: string): PolicyPorts {
  const settings = new Map(call("policy", "getPolicySettings", [name]) as [string, Value][]);
  const list = (key: string) => (bare(settings.get(key)) ?? []) as readonly Value[];
  return { forwards: list("forward_ports") as PolicyPorts["forwards"], rich: list("rich_rules") as string[] };
}

function isEqual(some: readonly unknown[], others: readonly unknown[]): boolean {
  return JSON.stringify(some) === JSON.stringify(others);
}

/** A port of one address, with the spelling of netavark, which firewalld returns, too. */
export function richRule(
  { hostIp, hostPort, protocol, containerPort, address }: {
    hostIp: string;
    hostPort: string;
    protocol: string;
    containerPort: string;
    address: string;
  },
): string {
  const family = isV6(address) ? "ipv6" : "ipv4";
  return `rule family="${family}" destination address="${hostIp}" forward-port port="${hostPort}" ` +
    `protocol="${protocol}" to-port="${containerPort}" to-addr="${address}"`;
}
