/**
 * Restores the rules that another program has flushed, from the ledgers. A container that netavark attached, before this
 * program took its place, has no ledger: its rules are restored from netavark's files.
 */
import { whileDirectoryLocked } from "../../../process/lock.ts";
import { errorText } from "../../../cni/error.ts";
import { attempt, throwJoined } from "../../../contract/failures.ts";
import { listAllLedgers } from "../../../engine/ledger/ledger.ts";
import type { LedgerRecord } from "../../../engine/ledger/record.ts";
import { onHost } from "../../../engine/on-host.ts";
import { openSession } from "../../../engine/run.ts";
import { idAt } from "../../../ffi/files.ts";
import { warn } from "../../../process/warn.ts";
import netavarkBridge from "../../../plugins/netavark/netavark-bridge/netavark-bridge.ts";
import { firewallStateKind, type FirewallStateSpec } from "../../../resources/netavark/firewall-state.ts";
import { loadKind } from "../../../resources/table.ts";
import { readDriver, readState, type State } from "./state-files.ts";

/** The rules of networks come first, because the others go into their chains. */
const OF_NETWORKS = { nftables: ["network-rules", "trusted-subnets"], firewalld: ["firewalld-network"] };
const OF_CONTAINERS = { nftables: ["published-ports"], firewalld: ["firewalld-ports"] };
const KINDS = [...Object.values(OF_NETWORKS), ...Object.values(OF_CONTAINERS), "localhost-access"].flat();

/** `directory` is that of --config. */
export function reloadFirewall(directory: string): void {
  const failures: unknown[] = [];
  // Otherwise rules that a teardown has just removed would come back.
  whileDirectoryLocked(directory, () => {
    onHost((opened) => {
      const host = openSession().hostOf(opened), ledgers = ledgersOf(directory);
      const repair = (kind: string, spec: unknown) => attempt(failures, () => loadKind(kind)!.repair!(spec, host));
      for (const kind of KINDS) {
        for (const spec of ledgers.flatMap((ledger) => lastOf(ledger, kind))) repair(kind, spec);
      }
      const { networks, containers } = withoutLedgers(directory, ledgers);
      if (networks.length + containers.length === 0) return;
      const driver = readDriver(directory) === "firewalld" ? "firewalld" : "nftables";
      for (const kind of OF_NETWORKS[driver]) for (const spec of networks) repair(kind, spec);
      for (const kind of OF_CONTAINERS[driver]) for (const spec of containers) repair(kind, spec);
    });
  });
  throwJoined(failures);
}

/**
 * The ledgers of containers that were attached with this directory, by whatever path. A port goes to the first that wants
 * it, so those come last whose setup did not come to its end.
 */
function ledgersOf(directory: string): LedgerRecord[] {
  const id = idAt(directory);
  const ledgers = listAllLedgers().filter(({ header }) => {
    if (header.plugin !== netavarkBridge.name) return false;
    const own = netavarkBridge.lockedDirectory!(JSON.parse(header.stdin));
    return own !== undefined && idAt(own) === id;
  });
  return [true, false].flatMap((isFinished) =>
    ledgers.filter(({ adds }) => (adds.at(-1)!.answer !== undefined) === isFinished)
  );
}

/**
 * The last specification of the kind, or none: a container may have been attached again without a teardown, or a teardown
 * may have begun.
 */
function lastOf({ entries }: LedgerRecord, kind: string): unknown[] {
  const last = entries.findLast((entry) => entry.kind === kind);
  return last === undefined || last.givenUp ? [] : [last.spec];
}

function withoutLedgers(directory: string, ledgers: readonly LedgerRecord[]): State {
  const refuse = (path: string, reason: unknown) => warn(`${path} is left out: ${errorText(reason)}`);
  const own = ledgers.flatMap((ledger) => lastOf(ledger, firewallStateKind.kind)) as FirewallStateSpec[];
  const { networks, containers } = readState(directory, refuse);
  return {
    networks: networks.filter(({ networkId }) => !own.some((each) => each.networkId === networkId)),
    containers: containers.filter((spec) =>
      !own.some(({ networkId, containerId }) => networkId === spec.networkId && containerId === spec.containerId)
    ),
  };
}
