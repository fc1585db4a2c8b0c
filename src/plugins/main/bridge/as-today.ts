/**
 * Attachments of older builds. With `portIsolation` they isolated the container's port alone: neighbours reach each other by
 * way of the host. With `macspoofchk` the bridge learned addresses from frames that no rule sees.
 */
import type { Announced } from "../../../contract/plugin.ts";
import type { Host } from "../../../contract/host.ts";
import type { Owner } from "../../../contract/owner.ts";
import { vlanGatewayName } from "../../../resources/address/vlan-gateway.ts";
import { ownBridgeName } from "../../../resources/link/bridge.ts";

export function confinedAsToday(entries: readonly Announced[], owner: Owner, host: Host): readonly Announced[] {
  const check = entries.find(({ kind }) => kind === "mac-spoof-check");
  const pinned = check === undefined
    ? entries
    : entries.map((entry) => withAddress(entry, check.spec as { mac: string }));
  const isIsolated = pinned.some(({ kind, spec }) =>
    kind === "bridge-port" && (spec as { isolated: boolean }).isolated
  );
  if (!isIsolated || pinned.some(({ kind }) => kind === "port-isolation")) return pinned;
  return withPortIsolation(pinned, owner, host);
}

function withAddress(entry: Announced, { mac }: { mac: string }): Announced {
  const spec = entry.spec as { mac?: string };
  return entry.kind !== "bridge-port" || spec.mac !== undefined ? entry : { ...entry, spec: { ...spec, mac } };
}

function withPortIsolation(
  entries: readonly Announced[],
  { network, containerId, ifName }: Owner,
  host: Host,
): readonly Announced[] {
  const link = linkOf(entries, host), place = entries.findIndex(({ kind }) => kind === "veth");
  if (link === undefined || place < 0) return entries;
  return entries.toSpliced(place, 0, { kind: "port-isolation", spec: { network, containerId, ifName, link } });
}

function linkOf(entries: readonly Announced[], host: Host): string | undefined {
  const specOf = <Spec>(name: string) => entries.find(({ kind }) => kind === name)?.spec as Spec | undefined;
  const gateway = specOf<Parameters<typeof vlanGatewayName>[0]>("vlan-gateway");
  if (gateway !== undefined) return vlanGatewayName(gateway);
  const name = specOf<{ name: unknown }>("bridge")?.name;
  return typeof name === "string" ? ownBridgeName(name, host) : undefined;
}
