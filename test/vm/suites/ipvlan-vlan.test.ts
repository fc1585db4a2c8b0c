/**
 * ipvlan and vlan, one test each because everything is slow in the virtual machine: attached, pinged through,
 * checked, broken and deleted. test/kernel/macvlan.test.ts has what they share with macvlan, master.test.ts their
 * refusals.
 */
import { expect, test } from "bun:test";
import { type Feature, lacks } from "../../support/kernel-features.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { network } from "../../support/network.ts";
import { GO_PLUGINS } from "../../support/plugins.ts";
import { ping } from "../../support/traffic.ts";
import { linkIn, openWire, wireIpam as ipam } from "../../support/wire.ts";

interface Subject {
  conf: Record<string, unknown> & { type: string };
  needs: Feature;
  tagged?: boolean;
  options: { name: string; conf: Record<string, unknown>; link: Record<string, unknown> }[];
  /** A command in the container. */
  broken: [how: string, says: RegExp][];
}

const info = (data: Record<string, unknown>) => ({ linkinfo: { info_data: data } });
const lease = { ips: [{ address: "10.20.0.77/24" }], routes: [{ dst: "10.0.0.0/8", gw: "10.20.0.254" }] };
const chained = { cniVersion: "1.1.0", interfaces: [{ name: "m0" }], ...lease };

const subjects: Subject[] = [
  {
    conf: { type: "ipvlan", master: "m0", ipam },
    needs: "ipvlan links",
    options: [
      { name: "l3", conf: { mode: "l3" }, link: info({ mode: "l3" }) },
      { name: "l3s", conf: { mode: "l3s", mtu: 1400 }, link: { ...info({ mode: "l3s" }), mtu: 1400 } },
      {
        name: "chained",
        conf: { master: undefined, ipam: undefined, prevResult: chained },
        link: info({ mode: "l2" }),
      },
    ],
    broken: [["ip link set eth0 type ipvlan mode l3", /container ipvlan mode l3 does not match expected value: l2/]],
  },
  {
    conf: { type: "vlan", master: "m0", vlanId: 7, mtu: 1500, ipam },
    needs: "VLAN links",
    tagged: true,
    options: [{ name: "another tag", conf: { vlanId: 4094, mtu: 1400 }, link: { ...info({ id: 4094 }), mtu: 1400 } }],
    broken: [
      ["ip link set eth0 mtu 1300", /configured MTU of eth0 is 1500, current value is 1300/],
      ["ip link set eth0 down", /eth0 in the container is down/],
    ],
  },
];

for (const { conf, needs, tagged, options, broken } of subjects) {
  test.skipIf(lacks(needs))(`${conf.type}: from ADD to DEL`, async () => {
    await using wire = await openWire(tagged);
    const { machine } = wire;
    const container = await machine.container("c1");
    const net = network(machine, conf);
    const gone = async () => expect(await linkIn(machine, container)).toBeUndefined();
    await net.add(container);
    await net.del(container);
    const before = await quietMoment(machine);

    const result = await net.add(container);
    const link = await linkIn(machine, container);
    const [master] = JSON.parse(await machine.sh("ip -j link show m0"));
    expect(link).toMatchObject({ mtu: 1500, address: master.address, link_index: master.ifindex });
    expect(link.linkinfo.info_kind).toBe(conf.type);
    expect(result).toMatchObject({
      interfaces: [{ name: "eth0", mac: link.address, sandbox: container.netnsPath }],
      ips: [{ address: "10.20.0.2/24", interface: 0 }, { address: "fd20::2/64", interface: 0 }],
    });
    // First packets: nothing waits for duplicate address detection.
    expect(await Promise.all(["10.20.0.254", "fd20::fe"].map((to) => ping(machine, container, to)))).toEqual([
      true,
      true,
    ]);
    await net.check(container);
    expect((await net.call("ADD", container)).json.msg).toContain('"eth0" already exists in the container');
    for (const [how, says] of broken) {
      await machine.sh(how, { in: container });
      expect(await net.call("CHECK", container)).toMatchObject({
        code: 1,
        json: { msg: expect.stringMatching(says) },
      });
    }
    for (let count = 0; count < 2; count++) await net.del(container);
    await gone();

    // This kernel does not let a link be born under a name that the host has.
    await machine.sh("ip link add eth0 type veth peer name eth1");
    for (const { name, conf, link } of options) {
      await net.add(container, { conf });
      expect({ name, link: await linkIn(machine, container) }).toMatchObject({ name, link });
      const { prevResult: _before, ...later } = conf;
      await net.check(container, { conf: later });
      await net.del(container, { conf: later });
      await gone();
    }
    await machine.sh("ip link del eth0");

    // The ledger lost, and a configuration that knows nothing any more; the Go plugin's.
    await net.add(container);
    await machine.sh("rm -r /run/patchbay");
    await net.del(container, { conf: { prevResult: undefined, master: "gone", mode: "nonesuch", vlanId: 9 } });
    await gone();
    const old = { ...conf, cniVersion: "1.0.0" };
    const prevResult = await network(machine, old, GO_PLUGINS).add(container);
    await net.check(container, { conf: { cniVersion: "1.0.0", prevResult } });
    await net.del(container, { conf: { cniVersion: "1.0.0", prevResult } });
    await gone();
    await net.add(container);
    await net.gc([]);
    expect(await leftSince(before, machine, /last_reserved_ip|networks\/net\/lock/)).toEqual([]);

    if (conf.type === "vlan") {
      const layer2 = { conf: { ipam: {} } };
      const { interfaces, ...rest } = await net.add(container, layer2);
      expect([interfaces, rest]).toEqual([[result.interfaces[0]], { cniVersion: "1.1.0" }]);
      await machine.sh("ip address add 10.20.0.9/24 dev eth0", { in: container });
      expect(await ping(machine, container, "10.20.0.254")).toBe(true);
      await net.check(container, layer2);
      expect((await net.call("STATUS", container, layer2)).code).toBe(0);
      await net.del(container, layer2);
      expect(await leftSince(before, machine, /last_reserved_ip|networks\/net\/lock/)).toEqual([]);

      await machine.sh("ip link add link m0 name m0.7 type vlan id 7");
      expect((await net.call("ADD", container)).json.msg).toMatch(/failed to create vlan on "m0": .*already exists/);
      await gone();
    }
    await machine.sh("ip link del m0");
    await net.del(container);
  });
}
