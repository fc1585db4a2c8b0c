/**
 * When firewalld runs: the subnets of a network of podman's in its zone `trusted`, so that it does not drop the containers'
 * packets. As with netavark, a refusal is only a warning.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { whyNotRunning, withZone, type Zone } from "../../interop/firewalld/client.ts";
import { warn } from "../../process/warn.ts";
import type { NetworkRulesSpec } from "./shared/nft-rules.ts";
import { isSpare } from "./shared/bridge.ts";

const ZONE = "trusted";

type TrustedSubnetsSpec = Pick<NetworkRulesSpec, "bridge" | "subnets">;

export const trustedSubnetsKind: ResourceKind<TrustedSubnetsSpec> = {
  kind: "trusted-subnets",
  apply: (spec) => forEach(spec, (zone, subnet) => zone.addSource(subnet)),
  verify(spec) {
    const differences: string[] = [];
    forEach(spec, (zone, subnet) => {
      if (!zone.hasSource(subnet)) differences.push(`${subnet} is not in firewalld's zone ${ZONE}`);
    });
    return differences;
  },
  remove(spec, host) {
    if (isSpare(spec.bridge, host)) forEach(spec, (zone, subnet) => zone.removeSource(subnet));
  },
  repair: (spec, host) => trustedSubnetsKind.apply(spec, host),
  describe: ({ subnets }) =>
    `${subnets.map(({ subnet }) => subnet).join(", ")} in firewalld's zone ${ZONE}, where firewalld runs`,
};

export const trustedSubnets = resource(trustedSubnetsKind);

function forEach({ subnets }: TrustedSubnetsSpec, work: (zone: Zone, subnet: string) => void): void {
  if (whyNotRunning() !== undefined) return;
  try {
    withZone(ZONE, (zone) => {
      for (const { subnet } of subnets) work(zone, subnet);
    });
  } catch (error) {
    warn(`firewalld's zone ${ZONE}: ${(error as Error).message}`);
  }
}
