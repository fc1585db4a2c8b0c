/** From ovs-cni to ovs, and back: what the one has made, and the other removes or says. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Container } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { PATIENT } from "../support/open-vswitch.ts";
import { openOvsStage, type OvsStage } from "../support/ovs-stage.ts";
import { PATCHBAY, patchbayPlugins } from "../support/plugins.ts";

const ovs0 = { type: "ovs", bridge: "ovs0", ipam: { type: "host-local", subnet: "10.20.0.0/24" }, ...PATIENT };

let shared: OvsStage;
beforeAll(async () => void (shared = await openOvsStage()));
afterAll(async () => await shared[Symbol.asyncDispose]());

test.each(["with prevResult", "without it"])("DEL takes over what ovs-cni has left, %s", async (how) => {
  const { machine, ovs } = shared,
    [container, neighbour] = [await shared.machine.container(), await shared.machine.container()];
  // What ovs-cni makes, and the same of another container.
  const make = async ({ name, netnsPath }: Container) => {
    const ids =
      `external_ids={owner=ovs-cni.network.kubevirt.io,contNetns="${netnsPath}",contIface=eth0,contPodUid=""}`;
    await machine.sh(`ip link add v-${name} type veth peer name eth0 netns ${name}`);
    await ovs.vsctl("add-port", "ovs0", `v-${name}`, "--", "set", "port", `v-${name}`, ids);
  };
  await make(container);
  await make(neighbour);
  const [{ address: mac }] = JSON.parse(await machine.sh("ip -j link show eth0", { in: container }));
  const prevResult = {
    cniVersion: "1.1.0",
    interfaces: [{ name: `v-${container.name}` }, { name: "eth0", mac, sandbox: container.netnsPath }],
  };
  const conf = how === "with prevResult" ? { prevResult } : {};
  await machine.sh(`mkdir -p /run/bin; ln -sf ${patchbayPlugins()}/ovs /run/bin/ovs-cni`);
  await network(machine, { type: "ovs-cni", bridge: "ovs0" }, "/run/bin").del(container, { conf });
  expect(await ovs.portsOf("ovs0")).toEqual([`v-${neighbour.name}`]);
  expect((await machine.run(["ip", "link", "show", `v-${container.name}`])).code).toBe(1);
  await ovs.vsctl("del-port", `v-${neighbour.name}`);
});

test("DEL of a container of ovs-cni's goes on without a file that cannot be read", async () => {
  const { machine, ovs } = shared, container = await shared.machine.container();
  await machine.sh(
    `echo nothing >/run/ovs.conf; ip link add v-lost type veth peer name eth0 netns ${container.name}`,
  );
  const ids = `external_ids={owner=ovs-cni.network.kubevirt.io,contNetns="${container.netnsPath}",contIface=eth0}`;
  await ovs.vsctl("add-port", "ovs0", "v-lost", "--", "set", "port", "v-lost", ids);
  const net = network(machine, { type: "ovs", bridge: "ovs0", configuration_path: "/run/ovs.conf" });
  const refused = await net.call("ADD", container);
  expect(refused.json).toMatchObject({ code: 6, msg: expect.stringContaining("/run/ovs.conf") });
  await net.del(container);
  expect(await ovs.portsOf("ovs0")).not.toContain("v-lost");
});

test("whoever goes back to other plugins is told that they leave the port", async () => {
  const { machine } = shared, container = await shared.machine.container(), net = network(machine, ovs0);
  await net.add(container);
  await machine.sh(
    `mkdir /run/back; touch /run/back/ovs; chmod 755 /run/back/ovs; ${PATCHBAY} install --no-resident /run/back`,
  );
  const refused = await machine.run([PATCHBAY, "install", "--uninstall", "/run/back"]);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain("its port in Open vSwitch");
  await net.del(container);
});
