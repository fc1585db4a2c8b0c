/**
 * The first packet reaches an address that another container had before: neighbours whose caches hold the old MAC are
 * told.
 */
import { expect, test } from "bun:test";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { network } from "../support/network.ts";
import { untilTrue } from "../support/until-true.ts";
import { ping } from "../support/traffic.ts";
import { openWire } from "../support/wire.ts";

const ipam = (last: string) => ({
  type: "static",
  addresses: [{ address: `10.20.0.${last}/24` }, { address: `fd20::${last}/64` }],
});
const ADDRESSES = ["10.20.0.5", "fd20::5"];
// On the wire, so that a neighbour outside is there too.
const bridge = { type: "bridge", bridge: "br0" };
const onTheBridge = "ip link add br0 type bridge; ip link set m0 master br0; ip link set br0 up";
const macvlan = { type: "macvlan", master: "m0" };
const ipvlan = { type: "ipvlan", master: "m0" };

interface Row {
  name: string;
  needs?: Feature;
  before?: string;
  conf: Record<string, unknown> & { type: string };
  /** What the container before had; a MAC of its own, or there would be nothing to tell. */
  old?: Record<string, unknown> & { type: string };
}

const rows: Row[] = [
  { name: "bridge", conf: bridge, before: onTheBridge },
  { name: "macvlan", conf: macvlan, needs: "macvlan links" },
  { name: "ipvlan, after a macvlan", conf: ipvlan, old: macvlan, needs: "ipvlan links" },
];

for (const { name, needs, before = "true", conf, old = conf } of rows) {
  test.skipIf(lacks(needs))(`a reused address is reached by the first packet: ${name}`, async () => {
    await using wire = await openWire();
    const { machine, out } = wire;
    await machine.sh(before);
    const [gone, heir] = [await machine.container("gone"), await machine.container("heir")];
    const neighbours = [out];
    // ipvlan and macvlan cannot share a master: then out alone is asked.
    if (old === conf) {
      const beside = await machine.container("beside");
      await network(machine, conf).add(beside, { conf: { ipam: ipam("9") } });
      neighbours.push(beside);
    }
    const everyone = async () =>
      await Promise.all(neighbours.flatMap((one) => ADDRESSES.map((to) => ping(machine, one, to))));
    const all = neighbours.flatMap(() => [true, true]);

    await network(machine, old).add(gone, { conf: { ipam: ipam("5") } });
    expect(await everyone()).toEqual(all);
    await network(machine, old).del(gone, { conf: { ipam: ipam("5") } });

    const caches = (state = "") => {
      const list = `ip neigh show ${state}; ip -6 neigh show ${state}`;
      return Promise.all(neighbours.map((one) => machine.sh(list, { in: one })));
    };
    for (const cache of await caches("nud reachable")) {
      for (const address of ADDRESSES) expect(cache).toContain(`${address} `);
    }
    await network(machine, conf).add(heir, { conf: { ipam: ipam("5") } });
    const [{ address: mac }] = JSON.parse(await machine.sh("ip -j link show eth0", { in: heir }));
    const isTold = (cache: string) =>
      ADDRESSES.every((address) => new RegExp(`^${address} dev \\S+ lladdr ${mac} `, "m").test(cache));
    // A busy kernel takes what was announced from its queue a moment later, and receives for an IPv6 address when a
    // thread of its own has made the route for it. Nothing else is sent until then.
    await untilTrue(() => caches(), (all) => all.every(isTold));
    const local = () => machine.sh("ip -6 route show table local dev eth0", { in: heir });
    await untilTrue(local, (routes) => routes.includes("local fd20::5 "));
    expect(await everyone()).toEqual(all);
  });
}
