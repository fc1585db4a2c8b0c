/**
 * Restores the rules that another program has flushed, from the ledgers. A container that netavark attached, before this
 * program took its place, has no ledger: its rules are restored from netavark's files.
 */
import { errorText } from "../../cni/error.ts";
import { attempt, throwJoined } from "../../contract/failures.ts";
import type { Host } from "../../contract/host.ts";
import type { ResourceKind } from "../../contract/resource.ts";
import { listLedgers } from "../../engine/ledger/ledger.ts";
import { openSession } from "../../engine/run.ts";
import { whileDirectoryLocked } from "../../ffi/lock.ts";
import { warn } from "../../ffi/warn.ts";
import { networkRulesKind } from "../../resources/netavark/network-rules.ts";
import { publishedPortsKind, type PublishedPortsSpec } from "../../resources/netavark/published-ports.ts";
import type { NetworkRulesSpec } from "../../resources/netavark/shared/network-rules-spec.ts";
import { trustedSubnetsKind } from "../../resources/netavark/trusted-subnets.ts";
import { localhostAccessKind, type LocalhostAccessSpec } from "../../resources/packets/localhost-access.ts";
import { readState } from "./state-files.ts";

/** `directory`: of --config. */
export function reloadFirewall(directory: string): void {
  const failures: unknown[] = [];
  const refuse = (path: string, reason: unknown) => warn(`${path} is left out: ${errorText(reason)}`);
  // What a teardown has just removed must not come back.
  whileDirectoryLocked(directory, () => {
    const { driver, networks, containers } = readState(`${directory}/firewall`, refuse);
    const kinds = driver === "firewalld" ? firewalldKinds() : nftablesKinds;
    onHost((host) => {
      for (const spec of networks) {
        for (const kind of kinds.ofNetwork) attempt(failures, () => kind.apply(spec, host));
      }
      for (const spec of containers) {
        for (const each of recorded(spec, kinds.ofPorts)) attempt(failures, () => kinds.ofPorts.apply(each, host));
      }
      for (const network of new Set(networks.map((spec) => spec.network))) {
        for (const spec of recordedIn(network, localhostAccessKind.kind) as LocalhostAccessSpec[]) {
          attempt(failures, () => localhostAccessKind.repair!(spec, host));
        }
      }
    });
  });
  throwJoined(failures);
}

interface Kinds {
  ofNetwork: readonly ResourceKind<NetworkRulesSpec>[];
  ofPorts: ResourceKind<PublishedPortsSpec>;
}

const nftablesKinds: Kinds = { ofNetwork: [networkRulesKind, trustedSubnetsKind], ofPorts: publishedPortsKind };

function firewalldKinds(): Kinds {
  const { firewalldNetworkKind } = require(
    "../../resources/netavark/firewalld-network.ts",
  ) as typeof import("../../resources/netavark/firewalld-network.ts");
  const { firewalldPortsKind } = require(
    "../../resources/netavark/firewalld-ports.ts",
  ) as typeof import("../../resources/netavark/firewalld-ports.ts");
  return { ofNetwork: [firewalldNetworkKind], ofPorts: firewalldPortsKind };
}

function onHost(work: (host: Host) => void): void {
  const invocation = { command: "DEL" as const, containerId: "", netnsPath: "", ifName: "", cniArgs: "", path: "" };
  openSession().withHost({ ...invocation, stdin: "{}" }, true, work);
}

/** With the owner that DEL will look for: the files do not name the interface. */
function recorded(spec: PublishedPortsSpec, { kind }: Kinds["ofPorts"]): PublishedPortsSpec[] {
  const found = (recordedIn(spec.network, kind) as PublishedPortsSpec[]).filter(({ containerId }) =>
    containerId === spec.containerId
  );
  return found.length > 0 ? found : [spec];
}

/** The specifications of this kind in the ledgers of the network's containers: of each, the last one. */
function recordedIn(network: string, wanted: string): unknown[] {
  return listLedgers(network, "netavark-bridge").flatMap(({ entries }) =>
    entries.filter(({ kind }) => kind === wanted).slice(-1).map(({ spec }) => spec)
  );
}
