/** What of an attachment has no effect, although it is as ADD made it. */
import type { Host } from "../../contract/host.ts";
import type { Owner } from "../../contract/owner.ts";
import type { ResourceKind } from "../../contract/resource.ts";
import type { IdlePorts } from "../../resources/host-ports/rivals.ts";
import { loadKind } from "../../resources/table.ts";
import { listLedgersOf } from "../ledger/ledger.ts";
import { openSession } from "../run.ts";
import { invocationOf } from "./known-attachment.ts";

// Not part of the program for plugins.
const rivals = () =>
  require("../../resources/host-ports/rivals.ts") as typeof import("../../resources/host-ports/rivals.ts");

/** CHECK does not ask, because the reference plugin's succeeds. */
export function idlePorts(kind: ResourceKind<unknown, unknown> | undefined, spec: unknown, host: Host): IdlePorts {
  const claimant = kind?.claimedPorts?.(spec);
  return claimant === undefined ? { here: [], elsewhere: [] } : rivals().idleBecauseOfRivals(claimant, host);
}

/** What has no effect of this resource, and of others because of it. */
export function idleLines(kind: ResourceKind<unknown, unknown> | undefined, spec: unknown, host: Host): string[] {
  const { here, elsewhere } = idlePorts(kind, spec, host);
  return [...here, ...elsewhere];
}

/** Reads the ledgers of the ADD that was just made. */
export function whatIsIdle(owner: Owner, pluginPath: string): string[] {
  const session = openSession({ keepsOpen: true }), lines: string[] = [];
  try {
    for (const { adds } of listLedgersOf(owner)) {
      const add = adds.at(-1)!;
      session.withHost({ ...invocationOf(add, pluginPath), netnsPath: "" }, true, (host) => {
        for (const { kind, spec } of add.entries) lines.push(...idleLines(loadKind(kind), spec, host));
      });
    }
    return lines;
  } finally {
    session.close();
  }
}
