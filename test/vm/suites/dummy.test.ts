/** dummy attached, checked, broken and deleted, in few tests because everything is slow in the virtual machine. */
import { expect, test } from "bun:test";
import { lacks } from "../../support/kernel-features.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { openMachine } from "../../support/machine.ts";
import { network } from "../../support/network.ts";

const ipam = {
  type: "host-local",
  ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]],
  resolvConf: "/run/dns",
};
const dummy = { type: "dummy", dns: { domain: "ignored" }, ipam };

test.skipIf(lacks("dummy links"))("dummy: from ADD to DEL", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  await machine.sh("echo search example.org >/run/dns");
  const net = network(machine, dummy);
  expect((await net.call("STATUS", undefined)).code).toBe(0);
  const result = await net.add(container);
  expect(result).toMatchObject({
    interfaces: [{ name: "eth0", sandbox: container.netnsPath }],
    ips: [{ address: "10.20.0.2/24", interface: 0 }, { address: "fd20::2/64", interface: 0 }],
    dns: { search: ["example.org"] },
  });
  expect(result.dns.domain).toBeUndefined();
  await machine.sh("ip link set lo up; ping -nc1 10.20.0.2; ping -nc1 fd20::2", { in: container });
  await net.check(container);
  await machine.sh("ip link set eth0 down", { in: container });
  expect((await net.call("CHECK", container)).json.msg).toMatch(/eth0 in the container is down/);
  await net.del(container);
  await net.del(container);
  const moment = await quietMoment(machine);

  await net.add(container);
  await machine.sh("rm -r /run/patchbay");
  await net.del(container, { conf: { prevResult: undefined } });
  await net.add(container);
  await net.del(container, { env: { CNI_NETNS: undefined } });
  await machine.sh("ip link del eth0", { in: container });
  const refused = [
    { conf: { ipam: undefined }, code: 7, says: /^dummy interface requires an IPAM configuration/ },
    { conf: { ipam: { type: "nothing" } }, code: 999, says: /nothing/ },
    { conf: { ipam: { ...ipam, routes: [{ dst: "192.168.1.1/16" }] } }, code: 999, says: /192\.168\.1\.1\/16/ },
  ];
  for (const { conf, code, says } of refused) {
    const { json } = await net.call("ADD", container, { conf });
    expect({ code: json.code, text: `${json.msg}` }).toEqual({ code, text: expect.stringMatching(says) });
  }
  expect(await leftSince(moment, machine, /file \/var\/lib\/cni\/networks/)).toEqual([]);
});
