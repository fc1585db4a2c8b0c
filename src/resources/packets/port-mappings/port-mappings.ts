/**
 * Ports of the host that lead to a container: connections to them get the container's address and port as their
 * destination, and the host's as their source where the answer would not come back otherwise.
 *
 * Written by one of two backends; the files in port-mappings/ are what each of them writes.
 */
import { CniError } from "../../../cni/error.ts";
import { resource, type ResourceKind } from "../../../contract/resource.ts";
import type { Host } from "../../../contract/host.ts";
import type { LinkMatch, Mark, Protocol } from "../../../iptables/rule.ts";
import { parseAddress, parsePrefix } from "../../../net/address.ts";
import { attemptAll } from "../../../contract/failures.ts";
import { netfilterOf } from "../netfilter-socket.ts";
import { undoUnlessRefused } from "../../../contract/undo-unless-refused.ts";

export interface PortMapping {
  protocol: Protocol;
  hostPort: number;
  containerPort: number;
  /** The host's address it is for. Without one every address is meant; with zeros, every one of that family. */
  hostIp?: string;
}

/** What must be besides, for the mappings to apply. */
export interface Conditions {
  /** Of the mapping itself: the others are left out. */
  protocol?: { value: Protocol; not?: true };
  ports?: { first: number; last: number; not?: true };
  /** Of each packet. */
  source?: PrefixCondition;
  destination?: PrefixCondition;
  inLink?: LinkMatch;
  outLink?: LinkMatch;
  mark?: Mark & { not?: true };
}

export interface PrefixCondition {
  prefix: string;
  not?: true;
}

export interface PortMappingsSpec {
  backend: "nftables" | "iptables";
  network: string;
  containerId: string;
  ifName: string;
  /** Of the container, with prefix; one a family at most. */
  addresses: string[];
  mappings: PortMapping[];
  /** Whose connections get the host's address: of the container's subnet and the host's loopback, or of everybody. */
  masquerade?: "own" | "all";
  /** For iptables: the bit that says so, or a chain of others that does. */
  markBit: number;
  setMarkChain?: string;
  conditions?: { 4?: Conditions; 6?: Conditions };
  /**
   * Told again from the configuration, not from what ADD wrote down: the backend may have been another one, or another
   * program's, and addresses and mappings may be unknown.
   */
  restated?: boolean;
}

// Loaded when used: a process needs one of them, if any.
const nftables = () => require("./nftables.ts") as typeof import("./nftables.ts");
const iptables = () => require("./iptables.ts") as typeof import("./iptables.ts");
const referenceNft = () => require("./reference-nft.ts") as typeof import("./reference-nft.ts");

/** The container's address of the family, which mappings lead to. */
export function addressOf(
  { addresses }: PortMappingsSpec,
  family: 4 | 6,
): { bytes: Uint8Array; bits: number } | undefined {
  for (const text of addresses) {
    const address = parsePrefix(text);
    if (address?.bytes.length === (family === 4 ? 4 : 16)) return address;
  }
  return undefined;
}

/** Whether it is one of the family's mappings. */
export function appliesTo({ conditions }: PortMappingsSpec, mapping: PortMapping, family: 4 | 6): boolean {
  return isAllowed(conditions?.[family], mapping) &&
    (mapping.hostIp === undefined || parseAddress(mapping.hostIp)!.length === (family === 4 ? 4 : 16));
}

export function isAllowed(conditions: Conditions | undefined, { protocol, hostPort }: PortMapping): boolean {
  const { protocol: wanted, ports } = conditions ?? {};
  if (wanted !== undefined && (wanted.value === protocol) === (wanted.not === true)) return false;
  return ports === undefined || (hostPort >= ports.first && hostPort <= ports.last) !== (ports.not === true);
}

/** The one address of the host that is meant, or undefined. */
export function hostAddress({ hostIp }: PortMapping): Uint8Array | undefined {
  const bytes = hostIp === undefined ? undefined : parseAddress(hostIp);
  return bytes?.some((byte) => byte !== 0) ? bytes : undefined;
}

/** Flows that still go where the port led before would go on to do so. */
function forgetFlows(spec: PortMappingsSpec, host: Host, isLeaving: boolean): void {
  for (const { protocol } of spec.mappings) {
    if (protocol !== "tcp") {
      return (require("./flows.ts") as typeof import("./flows.ts")).forgetFlows(host, spec, isLeaving);
    }
  }
}

function applyBackend(spec: PortMappingsSpec, host: Host): void {
  const done = spec.backend === "nftables" ? nftables().apply(host.netfilter, spec) : iptables().apply(host, spec);
  if (!done) throw new Error("port mappings need nf_tables, which this kernel does not have");
}

function verifyBackend(backend: PortMappingsSpec["backend"], spec: PortMappingsSpec, host: Host): string[] {
  return backend === "nftables" ? nftables().verify(host.netfilter, spec) : iptables().verify(host, spec);
}

export const portMappingsKind: ResourceKind<PortMappingsSpec> = {
  kind: "port-mappings",
  unmade: undefined,
  apply(spec, host) {
    try {
      applyBackend(spec, host);
      forgetFlows(spec, host, false);
    } catch (error) {
      if (!(error instanceof CniError)) undoUnlessRefused(error, () => portMappingsKind.remove(spec, host));
      throw error;
    }
  },
  verify(told, host, isRestated) {
    const spec = { ...told, restated: isRestated };
    const differences = verifyBackend(spec.backend, spec, host);
    if (differences.length === 0 || !spec.restated) return differences;
    const other = spec.backend === "nftables" ? "iptables" : "nftables";
    const asReference = referenceNft().has(host.netfilter, spec);
    return asReference || verifyBackend(other, spec, host).length === 0 ? [] : differences;
  },
  remove(told, host, isRestated) {
    const spec = { ...told, restated: isRestated };
    const { backend, restated } = spec, socket = netfilterOf(host);
    const steps: (() => void)[] = [];
    if (backend === "iptables" || restated) steps.push(() => iptables().remove(socket, spec));
    if (socket !== undefined && (backend === "nftables" || restated)) {
      steps.push(() => nftables().remove(socket, spec));
    }
    if (socket !== undefined && restated) steps.push(() => referenceNft().remove(socket, spec));
    steps.push(() => forgetFlows(spec, host, true));
    attemptAll(steps);
  },
  repair: applyBackend,
  sweep(network, isValid, host) {
    const socket = netfilterOf(host);
    attemptAll([
      () => iptables().sweep(socket, network, isValid),
      () => socket && nftables().sweep(socket, network, isValid),
    ]);
  },
  ownTable: ({ backend }) => backend === "nftables" ? "inet patchbay_portmap" : undefined,
  gist: ({ mappings }) => ({
    ports: mappings.map(({ hostIp, hostPort, containerPort, protocol }) => {
      const host = hostIp === undefined ? "" : hostIp.includes(":") ? `[${hostIp}]:` : `${hostIp}:`;
      return `${host}${hostPort}->${containerPort}/${protocol}`;
    }),
  }),
  describe({ mappings, addresses, backend }) {
    const ports = mappings.slice(0, 3).map(({ hostPort, protocol, containerPort }) =>
      `${hostPort}/${protocol} → ${containerPort}`
    );
    const more = mappings.length > 3 ? `, and ${mappings.length - 3} more` : "";
    return `port ${ports.join(", ")}${more} of ${addresses.join(" and ")} by ${backend}`;
  },
};

export const portMappings = resource(portMappingsKind);
