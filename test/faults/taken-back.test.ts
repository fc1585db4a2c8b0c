/**
 * An ADD undoes what it made when one of its requests to the kernel fails, without any DEL. Unlike in
 * errno-sweep.test.ts, the machine has no shared things yet, or the kernel's state is compared.
 */
import { expect, test } from "bun:test";
import { failAt } from "../support/injection.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { patchbayPlugins } from "../support/plugins.ts";

const made = [
  { what: "bridge", conf: { type: "bridge", bridge: "br0", isDefaultGateway: true }, again: "ip link del br0" },
  // The answer to the request for the gateway's address may be what fails.
  {
    what: "bridge on a link that was there",
    before: "ip link add br1 type bridge; ip link set br1 addrgenmode none",
    conf: { type: "bridge", bridge: "br1", isGateway: true },
    again: "ip -4 address flush dev br1",
  },
  // The first bridge of such a host refuses redirects for all its links, before it is set up.
  {
    what: "bridge of a host that forwards nothing",
    conf: { type: "bridge", bridge: "br0" },
    again: "ip link del br0; sysctl -qw net.ipv4.conf.all.accept_redirects=1",
  },
  {
    what: "macvlan",
    before: "ip link add m0 type veth peer name m1; ip link set m1 up; ip link set m0 up",
    conf: { type: "macvlan", mode: "passthru", master: "m0" },
    again: "true",
  },
];

test.each(made)("what a failed ADD made is gone: $what", async ({ before = "true", conf, again }) => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  await machine.sh(before);
  const whole = { ...conf, ipam: { type: "host-local", subnet: "10.20.0.0/24" } };
  const net = network(machine, whole);
  const call = { plugin: conf.type, command: "ADD", container, conf: { cniVersion: "1.1.0", name: "net", ...whole } };
  const clear = async () => {
    await net.del(container);
    await machine.run(["sh", "-c", again]);
  };
  await net.add(container);
  await clear();
  const moment = await quietMoment(machine);
  const wrong: string[] = [];
  let failures = 0;
  for (const [syscall, errno] of [["sendto", "ENOBUFS"], ["recvfrom", "ENOBUFS"], ["ioctl", "ENOMEM"]] as const) {
    for (let nth = 1; nth < 60; nth++) {
      const { hit, code } = await failAt(machine, patchbayPlugins(), call, { syscall, nth }, errno);
      if (!hit) break;
      if (code !== 0) {
        failures++;
        wrong.push(...(await leftSince(moment, machine)).map((line) => `${syscall} ${nth}: ${line}`));
      }
      if (code === 0 || wrong.length > 0) await clear();
    }
    await clear();
  }
  expect(wrong.slice(0, 40)).toEqual([]);
  expect(failures).toBeGreaterThan(10);
}, 300_000);
