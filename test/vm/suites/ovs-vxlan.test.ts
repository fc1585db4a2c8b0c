/** ovs with `vxlanID` on the kernel's datapath: two hosts, and a tunnel that the kernel makes. */
import { $ } from "bun";
import { expect, test } from "bun:test";
import { bytesThrough } from "../../support/bytes-through.ts";
import { lacks } from "../../support/kernel-features.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { network } from "../../support/network.ts";
import { PATIENT, startOpenVswitch } from "../../support/open-vswitch.ts";

async function openHost(machine: Machine, number: number) {
  const ovs = await startOpenVswitch(machine);
  await machine.sh(`ip link set wire up; ip address add 192.0.2.${number}/24 dev wire`);
  await ovs.vsctl("add-br", "ovs0");
  const tunnel = ["type=vxlan", `options:remote_ip=192.0.2.${3 - number}`, "options:key=42"];
  await ovs.vsctl("add-port", "ovs0", "vx42", "tag=10", "--", "set", "interface", "vx42", ...tunnel);
  const ranges = [[{ subnet: "10.20.0.0/24", rangeStart: `10.20.0.${number}0` }]];
  const ipam = { type: "host-local", ranges };
  const net = network(machine, { type: "ovs", bridge: "ovs0", vxlanID: 42, ipam, ...PATIENT });
  const container = await machine.container();
  await net.add(container);
  return { machine, ovs, net, container };
}

test.skipIf(lacks("Open vSwitch's datapath"))("packets of any size reach the other host's container", async () => {
  await using one = await openMachine();
  await using two = await openMachine();
  await $`nsenter --net=/proc/${one.pid}/ns/net ip link add wire type veth peer name wire netns ${two.pid}`;
  const here = await openHost(one, 1), there = await openHost(two, 2);
  const receiver = { machine: one, at: here.container, address: "10.20.0.10" };
  const arrived = await bytesThrough(receiver, { machine: two, in: there.container }, 1_000_000);
  for (const { ovs, net, container } of [here, there]) {
    await net.check(container);
    await net.del(container);
    expect(await ovs.portsOf("ovs0")).toEqual(["vx42"]);
    await ovs[Symbol.asyncDispose]();
  }
  expect(arrived).toBe(1_000_000);
});
