/** The firewall plugin with firewalld: a real message bus, and a service on it that records the calls. */
import { expect, test } from "bun:test";
import { lateWith } from "../support/injection.ts";
import { startBus, startFirewalld, startHungBus } from "../support/firewalld.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { PATCHBAY, patchbayPlugins } from "../support/plugins.ts";

function own({ name, netnsPath }: Container) {
  const last = name.slice(1);
  const ips = [`10.20.0.${last}/24`, `fd20::${last}/64`].map((address) => ({ interface: 1, address }));
  const interfaces = [{ name: "br0" }, { name: "eth0", sandbox: netnsPath }];
  return { prevResult: { cniVersion: "1.1.0", interfaces, ips } };
}

const open = (machine: Machine, conf: Record<string, unknown> = {}) =>
  network(machine, { type: "firewall", ...conf }, undefined, { own });
const inZone = (last: number, zone: string) => [[`10.20.0.${last}/32`, zone], [`fd20::${last}/128`, zone]];

/** The bridge that the results name. */
async function openHost(): Promise<Machine> {
  const machine = await openMachine();
  await machine.sh("ip link add br0 type bridge");
  return machine;
}

test("where firewalld runs it is told, unless the configuration says otherwise", async () => {
  await using machine = await openMachine();
  const [c1, c2] = [await machine.container(), await machine.container()];
  const net = open(machine);
  await using _bus = await startBus(machine);
  // A bus without it is like none.
  await net.add(c1);
  expect(await machine.sh("iptables-save")).toContain("-s 10.20.0.1/32 -j ACCEPT");
  await net.del(c1);
  await using firewalld = await startFirewalld(machine);
  await net.add(c1);
  expect(firewalld.sources()).toEqual(inZone(1, "trusted") as [string, string][]);
  await net.add(c1);
  await net.check(c1);
  await open(machine, { firewalldZone: "work" }).add(c2);
  expect(firewalld.sources()).toEqual([...inZone(1, "trusted"), ...inZone(2, "work")] as [string, string][]);
  expect(await machine.sh("iptables-save")).not.toContain("10.20.0.");
  expect((await net.call("STATUS", undefined)).code).toBe(0);
  await net.del(c1);
  await net.del(c1);
  const missed = await net.call("CHECK", c1);
  expect(missed.json.msg).toBe(
    "failed to find the address 10.20.0.1/32 in trusted zone; failed to find the address fd20::1/128 in trusted zone",
  );
  await open(machine, { backend: "iptables" }).add(c1);
  expect(firewalld.sources()).toEqual(inZone(2, "work") as [string, string][]);
  // Restated, with another backend by now.
  await machine.sh("rm -r /run/patchbay");
  await open(machine, { backend: "iptables", firewalldZone: "work" }).del(c2, { conf: own(c2) });
  expect(firewalld.sources()).toEqual([]);
});

test("a zone that firewalld refuses fails ADD, and nothing is left; a late DEL leaves an address to its next owner", async () => {
  await using machine = await openMachine();
  const [c1, c2] = [await machine.container(), await machine.container()];
  await using _bus = await startBus(machine);
  await using firewalld = await startFirewalld(machine);
  const refused = await open(machine, { firewalldZone: "nonesuch" }).call("ADD", c1);
  expect(refused.json.msg).toBe("failed to add the address 10.20.0.1/32 to nonesuch zone: INVALID_ZONE: nonesuch");
  const net = open(machine);
  await net.add(c1);
  await net.add(c2, { conf: own(c1) });
  await net.del(c1);
  expect(firewalld.sources()).toHaveLength(2);
  await net.del(c2);
  expect(firewalld.sources()).toEqual([]);
  expect(await machine.sh("find /run/patchbay -type f ! -name 'serve~*'; nft list ruleset")).toBe("");
});

test("plan asks firewalld for the zone, and tells it nothing", async () => {
  await using machine = await openMachine();
  await using _bus = await startBus(machine);
  await using firewalld = await startFirewalld(machine);
  const plan = async (firewalldZone: string) => {
    const bridge = { type: "bridge", bridge: "br0", ipam: { type: "host-local", subnet: "10.20.0.0/24" } };
    const plugins = [bridge, { type: "firewall", firewalldZone }];
    const list = JSON.stringify({ cniVersion: "1.1.0", name: "net", plugins });
    await machine.sh(`mkdir -p /run/net.d; echo '${list}' >/run/net.d/net.conflist`);
    return await machine.run([PATCHBAY, "plan", "--config-dir", "/run/net.d", "net"]);
  };
  expect(await plan("work")).toMatchObject({ code: 0, stderr: "" });
  const refused = "failed to add the address 10.20.0.2/32 to nonesuch zone: INVALID_ZONE: nonesuch";
  expect(await plan("nonesuch")).toMatchObject({ code: 1, stderr: expect.stringContaining(refused) });
  expect(firewalld.sources()).toEqual([]);
});

test("what firewalld was told is taken back when the kernel refuses the rules beside it", async () => {
  await using machine = await openHost();
  const container = await machine.container();
  await using _bus = await startBus(machine);
  await using firewalld = await startFirewalld(machine);
  // No rule may lead to a chain with a hook.
  const theirs = "table ip filter { chain CNI-ISOLATION-STAGE-1 { type filter hook forward priority 0; }; }";
  await machine.sh(`nft '${theirs}'`);
  const { json } = await open(machine, { ingressPolicy: "same-bridge" }).call("ADD", container);
  expect(json.msg).toMatch(/not supported/);
  expect(firewalld.sources()).toEqual([]);
});

test("DEL works when firewalld or the bus is gone, and so does what went with them", async () => {
  await using machine = await openMachine();
  const [c1, c2] = [await machine.container(), await machine.container()];
  const net = open(machine, { backend: "firewalld" });
  const without = await net.call("ADD", c1);
  expect(without.json.msg).toBe("firewalld cannot be reached: there is no D-Bus system bus");
  {
    await using _bus = await startBus(machine);
    {
      await using _firewalld = await startFirewalld(machine);
      await net.add(c1);
      await net.add(c2);
    }
    await net.del(c1);
  }
  await net.del(c2);
  expect(await machine.sh("find /run/patchbay -type f ! -name 'serve~*'")).toBe("");
});

test("a bus that does not answer is like none, and keeps nobody long", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const why = "firewalld counts as not running: D-Bus: no answer within 3 s";
  const net = open(machine);
  for (const state of ["silent", "talking"] as const) {
    await using _bus = await startHungBus(machine, state);
    const { code, stderr } = await net.call("ADD", container, { env: { PATCHBAY_TRACE: "1" } });
    expect([code, stderr.split(`patchbay: ${why}\n`).length - 1]).toEqual([0, 1]);
    expect(stderr).toContain(`"note":"firewall backend","backend":"iptables","why":"${why}"`);
    expect(await machine.sh("iptables-save")).toContain("-s 10.20.0.1/32 -j ACCEPT");
    // Restated: what firewalld may have nobody can tell.
    await machine.sh("rm -r /run/patchbay");
    await net.del(container);
    expect(await machine.sh("iptables-save")).not.toContain("10.20.0.1");
  }
  await using _bus = await startHungBus(machine, "full");
  const status = await open(machine, { backend: "firewalld" }).call("STATUS", undefined);
  expect(status.json).toMatchObject({ code: 50, msg: `firewall by firewalld: ${why}` });
});

test("two DELs at once, of containers with one address, do not leave it to each other", async () => {
  await using machine = await openMachine();
  const [c1, c2] = [await machine.container(), await machine.container()];
  await using _bus = await startBus(machine);
  await using firewalld = await startFirewalld(machine);
  const net = open(machine);
  await net.add(c1);
  await net.add(c2, { conf: own(c1) });
  const ends = await Promise.all([c1, c2].map((container) => {
    const conf = { cniVersion: "1.1.0", name: "net", type: "firewall", ...own(c1) };
    return lateWith(machine, patchbayPlugins(), { plugin: "firewall", command: "DEL", container, conf }, "unlink");
  }));
  expect(ends).toMatchObject([{ code: 0, hit: true }, { code: 0, hit: true }]);
  expect(firewalld.sources()).toEqual([]);
});

test("an ingress policy is kept by iptables beside firewalld", async () => {
  await using machine = await openHost();
  const c1 = await machine.container();
  await using _bus = await startBus(machine);
  await using firewalld = await startFirewalld(machine);
  const net = open(machine, { ingressPolicy: "same-bridge" });
  await net.add(c1);
  expect(firewalld.sources()).toHaveLength(2);
  const saved = await machine.sh("iptables-save");
  expect(saved).toContain("-A CNI-ISOLATION-STAGE-2 -o br0");
  expect(saved).not.toContain("CNI-FORWARD");
  await net.check(c1);
  await machine.sh("iptables -F CNI-ISOLATION-STAGE-2");
  expect((await net.call("CHECK", c1)).json.msg).toMatch(/^expected iptables rule -A CNI-ISOLATION-STAGE-2 -o br0/);
  await net.del(c1);
  expect(firewalld.sources()).toEqual([]);
});
