/**
 * A machine whose link `m0` leads to the container `out`, as a master for macvlan, ipvlan and vlan. In `out` the addresses
 * 10.20.0.254 and fd20::fe answer, with `tagged` for frames with the VLAN tag 7.
 */
import { type Container, type Machine, openMachine } from "./machine.ts";

export interface Wire extends AsyncDisposable {
  machine: Machine;
  out: Container;
}

export async function openWire(tagged = false): Promise<Wire> {
  const machine = await openMachine();
  const out = await machine.container("out");
  const facing = tagged ? "m1.7" : "m1";
  await machine.sh(`
    ip link add m0 type veth peer name m1 netns out; ip link set m0 up; ip -n out link set m1 up
    ${tagged ? "ip -n out link add link m1 name m1.7 type vlan id 7; ip -n out link set m1.7 up" : ""}
    ip -n out address add 10.20.0.254/24 dev ${facing}; ip -n out -6 address add fd20::fe/64 dev ${facing} nodad
    # The kernel may notice a second late that a link has a carrier, and answers no IPv6 neighbour before.
    until ip -br link show m0 | grep -q UP && ip -n out -br -6 address show dev ${facing} | grep -q fe80; do
      sleep 0.02
    done`);
  return { machine, out, [Symbol.asyncDispose]: () => machine[Symbol.asyncDispose]() };
}

/** An IPAM configuration with the wire's subnets. */
export const wireIpam = {
  type: "host-local",
  ranges: [
    [{ subnet: "10.20.0.0/24", gateway: "10.20.0.254" }],
    [{ subnet: "fd20::/64", gateway: "fd20::fe" }],
  ],
  routes: [{ dst: "192.168.0.0/16" }],
};

/** A link in the container, as `ip -j -d link` prints it. */
// deno-lint-ignore no-explicit-any
export async function linkIn(machine: Machine, container: Container, name = "eth0"): Promise<any> {
  const { code, stdout } = await machine.run(["ip", "-j", "-d", "link", "show", name], { in: container });
  return code === 0 ? JSON.parse(stdout)[0] : undefined;
}
