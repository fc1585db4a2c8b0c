/**
 * The published ports of a container in firewalld: forwarded ports of a policy, or rich rules for ports of one address and
 * for connections from the host itself.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import type { Host } from "../../contract/host.ts";
import { type FirewalldCall, unlessRefused, whyNotRunning } from "../../interop/firewalld/client.ts";
import { parseAddress } from "../../net/address.ts";
import {
  isForFamily,
  isOfOneAddress,
  type PublishedPort,
  publishedPortsKind,
  type PublishedPortsSpec,
  runText,
} from "./published-ports.ts";
import {
  changePolicy,
  inFirewalld,
  LOCAL_PORTS,
  type PolicyPorts,
  PORTS,
  readPolicy,
  richRule,
  whereItRuns,
} from "./shared/firewalld-objects.ts";

export const firewalldPortsKind: ResourceKind<PublishedPortsSpec> = {
  kind: "firewalld-ports",
  apply(spec) {
    inFirewalld((call) =>
      forEachPolicy(spec, (name, own) =>
        changePolicy(call, name, (present) => {
          const others = without(present, own);
          return { forwards: [...others.forwards, ...own.forwards], rich: [...others.rich, ...own.rich] };
        }))
    );
  },
  verify(spec) {
    const reason = whyNotRunning(), differences: string[] = [];
    if (reason !== undefined) return [reason];
    whereItRuns((call) =>
      forEachPolicy(spec, (name, own) => {
        const { forwards, rich } = without(own, readPolicy(call, name));
        for (const each of [...forwards.map((forward) => forward.join(", ")), ...rich]) {
          differences.push(`firewalld's policy ${name} lacks ${each}`);
        }
      })
    );
    return differences;
  },
  remove(spec, host, isRestated) {
    whereItRuns((call) => remove(call, spec, host, isRestated === true));
  },
  repair: (spec, host) => firewalldPortsKind.apply(spec, host),
  gist: (spec) => publishedPortsKind.gist!(spec),
  describe: (spec) => `${publishedPortsKind.describe(spec)} in firewalld`,
};

export const firewalldPorts = resource(firewalldPortsKind);

const NONE: PolicyPorts = { forwards: [], rich: [] };
const UNKNOWN_POLICY = "INVALID_POLICY";

/** Calls `work` for each policy that has a part of these ports. */
function forEachPolicy(spec: PublishedPortsSpec, work: (name: string, own: PolicyPorts) => void): void {
  for (const [name, own] of Object.entries(policyPorts(spec))) {
    if (own.forwards.length + own.rich.length > 0) work(name, own);
  }
}

/**
 * With `isRestated`, removes like netavark everything that leads to the container's addresses. firewalld does not record
 * owners, so entries stay that the ledger of another container claims: podman may have given it the address.
 */
function remove(call: FirewalldCall, spec: PublishedPortsSpec, host: Host, isRestated: boolean): void {
  const addresses = spec.targets.map(({ address }) => address);
  const isOfAddress = (to: string) => addresses.includes(to);
  const claimed = (host.claimedByOthers(firewalldPortsKind.kind, spec) as PublishedPortsSpec[]).map(policyPorts);
  for (const [name, own] of Object.entries(policyPorts(spec))) {
    const others = claimed.map((ports) => ports[name] ?? NONE);
    unlessRefused(() =>
      changePolicy(call, name, (present) => {
        const going: PolicyPorts = isRestated
          ? {
            forwards: present.forwards.filter(([, , , to]) => isOfAddress(to)),
            rich: present.rich.filter((rule) => isOfAddress(/ to-addr="([^"]*)"/.exec(rule)?.[1] ?? "")),
          }
          : own;
        return without(present, others.reduce(without, going));
      }), UNKNOWN_POLICY);
  }
}

function without(some: PolicyPorts, others: PolicyPorts): PolicyPorts {
  const forwards = new Set(others.forwards.map(String)), rich = new Set(others.rich);
  return {
    forwards: some.forwards.filter((each) => !forwards.has(String(each))),
    rich: some.rich.filter((each) => !rich.has(each)),
  };
}

/** The part of each policy. */
export function policyPorts({ targets, ports }: PublishedPortsSpec): Record<string, PolicyPorts> {
  const forwards: PolicyPorts["forwards"] = [], rich: string[] = [], local: string[] = [];
  for (const { address } of targets) {
    const { length } = parseAddress(address)!, isV4 = length === 4;
    for (const port of ports.flatMap(inPieces)) {
      if (!isForFamily(port, length)) continue;
      const hostPort = runText(port.hostPort, port.range), containerPort = runText(port.containerPort, port.range);
      const ruleFor = (hostIp: string) =>
        richRule({ hostIp, hostPort, protocol: port.protocol, containerPort, address });
      const ofAll = !isOfOneAddress(port);
      if (ofAll) forwards.push([hostPort, port.protocol, containerPort, address]);
      // The kernel translates no connection to ::1.
      if (isV4 && (ofAll || port.hostIp === LOOPBACK)) local.push(ruleFor(LOOPBACK));
      if (!ofAll && port.hostIp !== LOOPBACK && port.hostIp !== "::1") rich.push(ruleFor(port.hostIp!));
    }
  }
  return { [PORTS]: { forwards, rich }, [LOCAL_PORTS]: { forwards: [], rich: local } };
}

/**
 * For a range firewalld gives the kernel only the first and the last port of the container. The kernel then takes any of
 * them, unless the destination port is in the range.
 */
function inPieces(port: PublishedPort): PublishedPort[] {
  const { range, hostPort, containerPort } = port;
  if (range === 1 || hostPort === containerPort) return [port];
  return Array.from({ length: range }, (_, at) => ({
    ...port,
    range: 1,
    hostPort: hostPort + at,
    containerPort: containerPort + at,
  }));
}

const LOOPBACK = "127.0.0.1";
