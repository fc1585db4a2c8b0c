/** STATUS as runtimes call it: with the configuration alone, without the parameters of an ADD. */
import { expect, test } from "bun:test";
import { pluginNames } from "../../src/plugins/table.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { type Feature, lacks } from "../support/kernel-features.ts";

const ranges = { ranges: [[{ subnet: "10.1.0.0/24" }]] };

/** What each plugin lets the runtime name at ADD alone is left to the runtime. */
const configurations: Record<string, Record<string, unknown>> = {
  bridge: { ipam: { type: "host-local" }, capabilities: { ipRanges: true, mac: true } },
  "host-device": { ipam: { type: "static" }, capabilities: { deviceID: true, ips: true } },
  dummy: { ipam: { type: "static" } },
  ptp: { ipam: { type: "host-local" } },
  macvlan: { master: "lo", ipam: { type: "host-local", ranges: [] } },
  ipvlan: { ipam: { type: "static" } },
  vlan: { master: "lo", vlanId: 5, ipam: { type: "static" } },
  tap: { ipam: { type: "host-local" } },
  "host-local": { ipam: { type: "host-local" } },
  static: { ipam: { type: "static" } },
  portmap: { capabilities: { portMappings: true } },
  bandwidth: { capabilities: { bandwidth: true } },
  tuning: { capabilities: { mac: true } },
  sbr: {},
  vrf: { vrfname: "blue" },
  firewall: {},
  loopback: {},
  flannel: { subnetFile: "/run/subnet.env" },
};

async function openHost(): Promise<Machine> {
  const machine = await openMachine();
  await machine.sh(
    "printf 'FLANNEL_NETWORK=10.9.0.0/16\\nFLANNEL_SUBNET=10.9.1.1/24\\nFLANNEL_MTU=1450\\nFLANNEL_IPMASQ=true\\n' > /run/subnet.env",
  );
  return machine;
}

/** This kernel may not have what they make. */
const features: Record<string, Feature> = {
  dummy: "dummy links",
  macvlan: "macvlan links",
  ipvlan: "ipvlan links",
  vlan: "VLAN links",
  vrf: "VRF links",
};

// dhcp's depends on a service: test/dhcp/plugin/given-back.test.ts.
for (const type of pluginNames.filter((name) => name !== "dhcp")) {
  test.skipIf(lacks(features[type]))(`${type}: nothing that only ADD gets is missed`, async () => {
    await using machine = await openHost();
    const conf = configurations[type];
    expect(conf).toBeDefined();
    const { code, stdout } = await network(machine, { type, ...conf }).call("STATUS", undefined);
    expect([code, stdout]).toEqual([0, ""]);
  });
}

test("what the configuration does say is judged", async () => {
  await using machine = await openHost();
  const status = async (ipam: Record<string, unknown>) =>
    (await network(machine, { type: "bridge", ipam: { type: "host-local", ...ipam } }).call("STATUS", undefined))
      .json;
  expect(await status(ranges)).toBeUndefined();
  expect(await status({ ranges: [[{ subnet: "10.1.0.0/31" }]] })).toMatchObject({ code: 7 });
  expect(await status({ ranges: [[]] })).toMatchObject({ code: 7 });
});

test("ADD misses the ranges and the device that STATUS did not", async () => {
  await using machine = await openHost();
  const container = await machine.container();
  for (const type of ["bridge", "host-device"]) {
    const net = network(machine, { type, ...configurations[type] });
    expect((await net.call("ADD", container)).json).toMatchObject({ code: 7 });
  }
});
