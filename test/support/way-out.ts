/** A host whose default route leads to the container `outside`, for a container `web` with an address of each family. */
import type { Machine } from "./machine.ts";

const OUTSIDE = { 4: "198.18.0.2", 6: "fd99::2" } as const;

/** The router does not know the containers' subnets. The container `outside` is there. */
export const UPLINK = `ip link add eth1 type veth peer name eth0 netns outside; ip link set eth1 up
  ip address add 198.18.0.1/24 dev eth1; ip address add fd99::1/64 dev eth1 nodad
  ip -n outside link set eth0 up
  ip -n outside address add 198.18.0.2/24 dev eth0; ip -n outside address add fd99::2/64 dev eth0 nodad
  ip route add default via 198.18.0.2; ip -6 route add default via fd99::2`;

export const BOTH_FAMILIES = {
  type: "host-local",
  ranges: [[{ subnet: "10.40.0.0/24" }], [{ subnet: "fd40::/64" }]],
  routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }],
};

export async function isAnswered(machine: Machine, family: 4 | 6): Promise<boolean> {
  return (await machine.run(["ip", "netns", "exec", "web", "ping", "-nc1", "-W1", OUTSIDE[family]])).code === 0;
}
