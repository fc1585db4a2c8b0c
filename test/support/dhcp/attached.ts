/** A container whose address comes from DHCPv6 alone, when the address has the lease's lifetime. */
import type { Container } from "../machine.ts";
import type { Network } from "../network.ts";
import type { Segment } from "./link.ts";
import { type Service, untilAddresses } from "./service.ts";

export const ONLY_V6 = { ipv4: false, ipv6: true };

export interface Attached {
  container: Container;
  net: Network;
  ip: string;
}

export async function attachV6(segment: Segment, service: Service): Promise<Attached> {
  const container = await segment.machine.container("c1"), net = service.network({}, ONLY_V6);
  const { ips: [{ address }] } = await net.add(container);
  await untilAddresses(segment, container, ([one]) => one !== undefined && one.valid < Infinity);
  return { container, net, ip: address.split("/")[0] };
}
