/**
 * A container does to a device that the host lent it whatever it can: takes its names, hides it in a namespace of its own,
 * changes its settings, puts another one in its place. DEL brings the device back as it was, and no other.
 *
 * Cards are in test/vm/suites/physical-device.test.ts.
 */
import { expect, test } from "bun:test";
import { inInner, innerNamespace } from "../support/inner-namespace.ts";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { type Network, network } from "../support/network.ts";

const conf = { type: "host-device", device: "nic0" };

interface Stage extends AsyncDisposable {
  machine: Machine;
  container: Container;
  net: Network;
  /** What the host has called nic0. */
  device(): Promise<unknown>;
  before: unknown;
}

async function lent(): Promise<Stage> {
  const machine = await openMachine();
  await machine.sh(`
    ip link add far type veth peer name nic0
    ip link set nic0 alias "cable" group 7 txqueuelen 500 promisc on; ip link property add dev nic0 altname attic`);
  const container = await machine.container("c1"), net = network(machine, conf);
  const device = async () => {
    const { code, stdout } = await machine.run(["ip", "-j", "-d", "link", "show", "nic0"]);
    if (code !== 0) return undefined;
    const { stdout: features } = await machine.run(["ethtool", "-k", "nic0"]);
    return { ...JSON.parse(stdout)[0], operstate: "", flags: "", features };
  };
  const before = await device();
  await net.add(container);
  return { machine, container, net, device, before, [Symbol.asyncDispose]: () => machine[Symbol.asyncDispose]() };
}

const occupations: [how: string, script: string][] = [
  ["lo has its name", "ip link set lo name nic0"],
  ["lo has its name as an alternative name", "ip link property add dev lo altname nic0"],
  ["a bridge has its name", "ip link add nic0 type bridge"],
  [
    "a bridge has it as an alternative name",
    "ip link add br7 type bridge; ip link property add dev br7 altname nic0",
  ],
  ["it has that as an alternative name itself", "ip link property add dev eth0 altname nic0"],
  ["it has a name of the host's", "ip link set eth0 name far; ip link property add dev far altname lo0"],
];

test.each(occupations)("%s: DEL brings the device back", async (_, script) => {
  for (const isLost of [false, true]) {
    await using stage = await lent();
    const { machine, container, net } = stage;
    await machine.sh(`ip link set lo down; ip link set eth0 down; ${script}`, { in: container });
    if (isLost) await machine.sh("rm -r /run/patchbay");
    expect(await net.call("DEL", container)).toMatchObject({ code: 0 });
    const back = await stage.device();
    // Without a ledger nothing says what it was.
    if (isLost) expect(back).toBeDefined();
    else expect(back).toEqual(stage.before);
  }
});

test("what the container has set on the device is undone", async () => {
  await using stage = await lent();
  const { machine, container, net } = stage;
  await machine.sh(
    `ip link set eth0 group 3 txqueuelen 9 promisc off allmulticast on gso_max_size 3000 gso_max_segs 5 gro_max_size 4000
    ip link set eth0 arp off multicast off dynamic on trailers off mode dormant brd ff:ff:ff:ff:ff:00
    ip link set eth0 gso_ipv4_max_size 2000 gro_ipv4_max_size 2000 2>/dev/null || true
    ethtool -K eth0 tx off tso off gro on >/dev/null`,
    { in: container },
  );
  expect(await net.call("DEL", container)).toMatchObject({ code: 0, stderr: "" });
  expect(await stage.device()).toEqual(stage.before);
  expect(await machine.sh("cat /sys/class/net/nic0/flags")).toBe("0x1102\n");
});

test("hidden in a namespace within, under another name, address and alias: DEL brings it back", async () => {
  await using stage = await lent();
  const { machine, container, net } = stage, inner = await innerNamespace(machine, container);
  await machine.sh(
    `ip link set eth0 down; ip link set eth0 name evil alias "" address 02:00:00:00:00:66
    ip link property add dev evil altname br0; ip link set evil netns ${inner.pid}`,
    { in: container },
  );
  expect(await machine.run([...inInner(inner.pid), "ip link show evil"])).toMatchObject({ code: 0 });
  await net.del(container);
  expect(await stage.device()).toEqual(stage.before);
  expect((await machine.run(["ip", "link", "show", "br0"])).code).toBe(1);
  await inner.end();
});

test("hidden where it is not known whose the namespace is: DEL says what holds it, and succeeds once it has ended", async () => {
  await using stage = await lent();
  const { machine, container, net } = stage;
  const alone = machine.start(["unshare", "-n", "sleep", "1000"]);
  await machine.sh(`until [ "$(cat /proc/${alone.pid}/comm)" = sleep ]; do sleep 0.01; done`);
  await machine.sh(`ip link set eth0 netns ${alone.pid} name evil alias ""`, { in: container });
  const { code, json } = await net.call("DEL", container);
  expect({ code, msg: json.msg }).toEqual({
    code: 1,
    msg: `"nic0" is in a network namespace of process ${alone.pid}`,
  });
  expect(await machine.sh("ls /run/patchbay/net")).toContain("ctr-c1");
  alone.kill();
  await alone.exited;
  // What software made ends with its namespace.
  await machine.sh("until ! ip link show far 2>/dev/null; do sleep 0.01; done");
  await net.del(container);
});

test("a pair of the container's own in the device's place does not come to the host", async () => {
  await using stage = await lent();
  const { machine, container, net } = stage;
  const index = JSON.parse(await machine.sh("ip -j link show eth0", { in: container }))[0].ifindex;
  await machine.sh(
    `ip link del eth0; ip link add eth0 index ${index} type veth peer name own index 99; ip link set eth0 alias nic0`,
    { in: container },
  );
  await net.del(container);
  expect(await machine.sh("ip -br link show type veth")).toBe("");
  await machine.sh("ip link show own", { in: container });
});

/** None of those whose module makes a link in every namespace, for all later tests. */
const tunnels: [kind: string, made: string, needs: Feature][] = [
  ["vxlan", "vxlan id 7 dstport 4789", "VXLAN links"],
  ["xfrm", "xfrm if_id 7", "xfrm links"],
];

for (const [kind, made, needs] of tunnels) {
  test.skipIf(lacks(needs))(
    `${kind}: DEL brings the host's back, and not one that the container has made`,
    async () => {
      for (const isExchanged of [false, true]) {
        await using machine = await openMachine();
        await machine.sh(`ip link add nic0 type ${made}`);
        const container = await machine.container("c1"), net = network(machine, conf);
        await net.add(container);
        const { ifindex, address } = JSON.parse(await machine.sh("ip -j link show eth0", { in: container }))[0];
        if (isExchanged) {
          await machine.sh(
            `ip link del eth0; ip link add eth0 index ${ifindex} type ${made}
          ip link set eth0 address ${address} || true; ip link set eth0 alias nic0`,
            { in: container },
          );
        } else await machine.sh("ip link set eth0 down; ip link set eth0 name other", { in: container });
        await net.del(container);
        expect((await machine.run(["ip", "link", "show", "nic0"])).code).toBe(isExchanged ? 1 : 0);
      }
    },
  );
}

test.skipIf(lacks("macvlan links"))(
  "what the container has put upon the device does not go on using it",
  async () => {
    await using stage = await lent();
    const { machine, container, net } = stage;
    await machine.sh("ip link add link eth0 name upon type macvlan", { in: container });
    await net.del(container);
    expect((await machine.run(["ip", "link", "show", "upon"], { in: container })).code).toBe(1);
    expect(await stage.device()).toEqual(stage.before);
  },
);
