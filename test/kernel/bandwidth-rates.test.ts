/**
 * The configured rates of bandwidth, measured: in each direction, over IPv4 and IPv6, for all traffic, for all but
 * some subnets, and for some subnets only.
 */
import { expect, test } from "bun:test";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { floodServer } from "../support/throughput.ts";

/** A queue of several of the large pieces that TCP hands over: with one or two, what is measured is how TCP recovers. */
const RATE_BITS = 48_000_000, BURST_BITS = 4_000_000;
/** The machine's addresses: on the link to the container, and one behind. */
const NEAR = { v4: "10.9.0.1", v6: "fd09::1" }, FAR = { v4: "172.16.5.1", v6: "fd05::1" };
const FAR_SUBNETS = ["172.16.0.0/12", "fd05::/60"];
/** The share of a packet of 1,514 bytes that TCP carries. */
const PAYLOAD = { v4: 1448 / 1514, v6: 1428 / 1514 };

const cases = [
  { name: "all traffic", conf: {}, limited: [NEAR], free: [] },
  { name: "all but unshapedSubnets", conf: { unshapedSubnets: FAR_SUBNETS }, limited: [NEAR], free: [FAR] },
  { name: "shapedSubnets alone", conf: { shapedSubnets: FAR_SUBNETS }, limited: [FAR], free: [NEAR] },
];
const ATTEMPTS = 20;

const limits = {
  ingressRate: RATE_BITS,
  ingressBurst: BURST_BITS,
  egressRate: RATE_BITS / 2,
  egressBurst: BURST_BITS,
};
const rates = { receive: RATE_BITS / 8, send: RATE_BITS / 16 };

async function attach(machine: Machine, conf: Record<string, unknown>): Promise<Container> {
  const container = await machine.container("c1");
  await machine.sh(`
    ip link add host1 txqueuelen 0 type veth peer name eth0 netns c1
    ip address add ${NEAR.v4}/24 dev host1; ip address add ${NEAR.v6}/64 dev host1 nodad
    ip address add ${FAR.v4}/32 dev lo; ip address add ${FAR.v6}/128 dev lo
    ip link set host1 up
    ip -n c1 address add 10.9.0.2/24 dev eth0; ip -n c1 address add fd09::2/64 dev eth0 nodad
    ip -n c1 link set eth0 up
    ip -n c1 route add default via ${NEAR.v4}; ip -n c1 route add default via ${NEAR.v6}`);
  const interfaces = [{ name: "host1" }, { name: "eth0", sandbox: container.netnsPath }];
  const prevResult = { cniVersion: "1.1.0", interfaces };
  await network(machine, { type: "bandwidth", ...limits, ...conf, prevResult }).add(container);
  return container;
}

test.each(cases)("$name: what gets through is what was asked for", async ({ conf, limited, free }) => {
  await using machine = await openMachine();
  const container = await attach(machine, conf);
  await using server = await floodServer(machine);
  const wrong: string[] = [];
  const skip = 2 * BURST_BITS / 8;
  for (const verb of ["receive", "send"] as const) {
    for (const family of ["v4", "v6"] as const) {
      const told = (address: string, rate: number) => `${verb} ${address}: ${Math.round(rate * 8 / 1000)} kbit/s`;
      for (const { [family]: address } of limited) {
        let rate = 0;
        // Too slow a few times may be a machine with other things to do; too fast never.
        for (let attempt = 0; attempt < ATTEMPTS && rate < 0.9 * rates[verb]; attempt++) {
          rate = await server.measure(container, { verb, address, skip, windowMs: 1000 }) / PAYLOAD[family];
        }
        if (Math.abs(rate / rates[verb] - 1) > 0.1) wrong.push(told(address, rate));
      }
      for (const { [family]: address } of free) {
        let rate = 0;
        for (let attempt = 0; attempt < ATTEMPTS && rate < 3 * rates[verb]; attempt++) {
          rate = await server.measure(container, { verb, address, skip, windowMs: 200 });
        }
        if (rate < 3 * rates[verb]) wrong.push(told(address, rate));
      }
    }
  }
  expect(wrong).toEqual([]);
});
