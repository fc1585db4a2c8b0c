/**
 * `patchbay inspect`, `repair` and `plan` on real attachments: they name what others broke, and mend what can be
 * mended.
 *
 * Longer than 300 lines: three commands look at the same attachments.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { commandsOn, networkFiles } from "../../support/commands.ts";
import { untilGone } from "../../support/gone.ts";
import { lacks } from "../../support/kernel-features.ts";
import { leftSince, type Moment, quietMoment } from "../../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { ping } from "../../support/traffic.ts";

let machine: Machine;
let container: Container;
let before: Moment;

const bridge = (network: string, ipMasqBackend: string) => ({
  type: "bridge",
  bridge: `br-${network}`,
  isDefaultGateway: true,
  ipMasq: true,
  ipMasqBackend,
  hairpinMode: true,
  macspoofchk: !lacks("nftables bridge family"),
  ipam: {
    type: "host-local",
    ranges: [[{ subnet: "10.30.0.0/24" }], [{ subnet: "fd30::/64" }]],
    routes: [{ dst: "192.0.2.0/24" }],
  },
});
const spoofGuard = lacks("nftables bridge family") ? [] : ["mac-spoof-check"];
const tuning = { type: "tuning", sysctl: { "net.ipv4.conf.IFNAME.arp_filter": "1" }, mtu: 1400 };

const { directory, configure } = networkFiles();
const { patchbay, must, json } = commandsOn(() => machine, () => directory);
/** The resources that are not ok: `kind state`. */
const wrong = async (command: string): Promise<string[]> =>
  (await json(command)).flatMap(({ plugins }: { plugins: { resources: { kind: string; state: string }[] }[] }) =>
    plugins.flatMap(({ resources }) =>
      resources.filter(({ state }) => state !== "ok").map(({ kind, state }) => `${kind} ${state}`)
    )
  );

for (const backend of ["iptables", "nftables"]) {
  describe(`an attachment whose masquerading is in ${backend}`, () => {
    beforeAll(async () => {
      machine = await openMachine();
      configure("n", [bridge("n", backend), tuning]);
      container = await machine.container("c1");
      await must("add", "n", container.netnsPath, "--container-id", "ctr");
      before = await quietMoment(machine);
    });
    afterAll(() => machine[Symbol.asyncDispose]());

    const PORT = "$(ls /sys/class/net/br-n/brif)";
    const breakages: { how: string; mends: string[] }[] = [
      {
        how: "ip -n c1 address flush dev eth0 scope global; ip -n c1 link set eth0 mtu 1500",
        mends: ["addressing", "link-settings"],
      },
      { how: "ip -n c1 link set eth0 down", mends: ["addressing"] },
      { how: "ip -n c1 route flush dev eth0", mends: ["addressing"] },
      { how: "ip address flush dev br-n scope global", mends: ["bridge-gateway", "bridge-gateway"] },
      { how: "sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0", mends: ["forwarding", "forwarding"] },
      { how: `ip link set ${PORT} nomaster down`, mends: ["veth", "bridge-port"] },
      { how: `bridge link set dev ${PORT} hairpin off`, mends: ["bridge-port"] },
      { how: "ip link set br-n down", mends: ["bridge"] },
      { how: "ip netns exec c1 sysctl -qw net.ipv4.conf.eth0.arp_filter=0", mends: ["sysctls"] },
      ...backend === "iptables"
        ? [
          { how: "iptables -t nat -F; ip6tables -t nat -F", mends: ["masquerade"] },
          { how: "iptables -t nat -F POSTROUTING", mends: ["masquerade"] },
          { how: "iptables -t nat -F; iptables -t nat -X", mends: ["masquerade"] },
        ]
        : [
          { how: "nft flush ruleset", mends: ["masquerade", ...spoofGuard] },
          { how: "nft flush chain inet patchbay_masquerade postrouting", mends: ["masquerade"] },
          { how: "nft flush map inet patchbay_masquerade from_10.30.0.0/24", mends: ["masquerade"] },
        ],
    ];

    for (const { how, mends } of breakages) {
      test(`repair restores what is lost by ${how}`, async () => {
        await machine.sh(how);
        const differing = await wrong("inspect");
        for (const kind of mends) expect(differing).toContain(`${kind} differs`);
        expect(await patchbay(["inspect"])).toMatchObject({ code: 1, stderr: "" });
        const repaired = await wrong("repair");
        for (const kind of mends) expect(repaired).toContain(`${kind} mended`);
        expect(repaired.filter((line) => !line.endsWith(" mended"))).toEqual([]);
        // The kernel's own way of answering for a subnet comes back when it likes.
        expect(await leftSince(before, machine, /"type":"anycast"/)).toEqual([]);
        expect(await patchbay(["inspect"])).toMatchObject({ code: 0 });
        expect(await ping(machine, container, "10.30.0.1")).toBe(true);
      });
    }

    test("a bridge that is gone is made again, with everything that was on it", async () => {
      await machine.sh("ip link del br-n");
      expect(await patchbay(["repair"])).toMatchObject({ code: 0, stderr: "" });
      await must("check", "n", container.netnsPath, "--container-id", "ctr");
      expect(await ping(machine, container, "10.30.0.1")).toBe(true);
      expect(await ping(machine, container, "fd30::1")).toBe(true);
    });

    test("what is as it was made is not touched", async () => {
      const { code, stderr } = await patchbay(["repair"], { PATCHBAY_TRACE: "1" });
      expect(code).toBe(0);
      const operations = stderr.trim().split("\n").map((line) => JSON.parse(line).operation);
      expect(operations).toContain("verify");
      expect(operations).not.toContain("repair");
    });
  });
}

describe("what repair does not touch", () => {
  beforeEach(async () => {
    machine = await openMachine();
    configure("n", [bridge("n", "nftables"), tuning]);
    container = await machine.container("c1");
    await must("add", "n", container.netnsPath, "--container-id", "ctr");
    return async () => await machine[Symbol.asyncDispose]();
  });

  test("a container without its link: nothing else of the attachment is made again", async () => {
    await machine.sh("ip -n c1 link del eth0; nft flush ruleset");
    expect((await patchbay(["inspect"])).stdout)
      .toMatch(/differs {2}settings of bridge port (veth\w+)\n +bridge port \1 is not there\n/);
    const { code, stdout } = await patchbay(["repair"]);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /differs {2}veth eth0 .*\n +Cannot find container link eth0\n +not mended: the pair of links/,
    );
    expect(stdout).toMatch(
      /differs {2}masquerade .*\n(.*\n)+? +not mended: its link in the container is not the one/,
    );
    expect(stdout).toEndWith("\n  'patchbay del n ctr', and 'add' after it, make it anew\n");
    expect(await machine.sh("nft list ruleset")).toBe("");
    await must("del", "n", container.netnsPath, "--container-id", "ctr");
  });

  test("another container's namespace at the same path", async () => {
    await machine.sh("ip netns del c1; ip netns add c1; ip -n c1 link add eth0 type veth peer name other");
    await machine.sh("ip -n c1 address add 10.99.0.1/24 dev eth0");
    const there = await machine.sh("ip -n c1 -j address; ip -n c1 -j route");
    expect((await patchbay(["repair"])).code).toBe(1);
    expect(await machine.sh("ip -n c1 -j address; ip -n c1 -j route")).toBe(there);
  });

  test("an address that another container has now", async () => {
    const other = await machine.container("c2");
    await machine.sh("rm /var/lib/cni/networks/n/10.30.0.2");
    const args = ["add", "n", other.netnsPath, "--container-id", "other"];
    expect((await patchbay(args, { CNI_ARGS: "IgnoreUnknown=1;IP=10.30.0.2" })).code).toBe(0);
    const rules = await machine.sh("nft list ruleset");
    expect(rules).toContain("other");
    const { code, stdout } = await patchbay(["repair", "n", "ctr"]);
    expect(code).toBe(1);
    expect(stdout).toContain(`10.30.0.2 (map from_10.30.0.0/24 of table inet patchbay_masquerade) belongs to`);
    expect(await machine.sh("nft list ruleset")).toBe(rules);
  });

  test("a namespace that is gone is reported, and DEL removes the rest", async () => {
    await machine.removeContainer(container);
    await untilGone(machine);
    for (const command of ["inspect", "repair"]) {
      const table = "container  name  network  interface  addresses                ports  state\n" +
        "ctr        c1    n        eth0       10.30.0.2/24 fd30::2/64  -      gone\n\n";
      expect(await patchbay([command, "n", "ctr"])).toEqual({
        code: 1,
        stdout: `${table}network n, container ctr, eth0 in ${container.netnsPath}: the namespace is gone\n` +
          "  'patchbay del' or 'gc --gone' removes what it left behind\n",
        stderr: "",
      });
    }
    await must("del", "n", container.netnsPath, "--container-id", "ctr");
    expect(await patchbay(["inspect"])).toEqual({ code: 0, stdout: "nothing is attached\n", stderr: "" });
  });

  test("an unknown name gets a hint", async () => {
    expect(await patchbay(["inspect", "m"])).toEqual({
      code: 1,
      stdout: "",
      stderr: 'patchbay inspect: nothing is attached to network "m"; no ledger and no cached result names it; ' +
        'did you mean "n"?\n',
    });
    // Networks to which nothing is attached are meant, too; a network's own name is no slip.
    const told = "no ledger and no cached result names it";
    configure("front", [{ type: "loopback" }]);
    for (const command of ["inspect", "repair"]) {
      const ofNetwork = async (name: string) => (await patchbay([command, name])).stderr;
      expect(await ofNetwork("fronnt")).toEndWith(`network "fronnt"; ${told}; did you mean "front"?\n`);
      expect(await ofNetwork("front")).toEndWith(`network "front"; ${told}\n`);
    }
    expect((await patchbay(["repair", "n", "ctx"])).stderr).toContain('did you mean "ctr"?');
  });
});

describe("inspect prints a table first", () => {
  test("with networks, containers, interfaces, addresses, ports and states; JSON has the same", async () => {
    await using own = await openMachine();
    machine = own;
    const portmap = { type: "portmap", backend: "nftables", capabilities: { portMappings: true } };
    configure("n", [bridge("n", "nftables"), portmap]);
    configure("m", [{ type: "loopback" }]);
    container = await machine.container("c1");
    const other = await machine.container("c2");
    const portMappings = [
      { hostPort: 8080, containerPort: 80, protocol: "tcp" },
      { hostPort: 53, containerPort: 5353, protocol: "udp", hostIP: "10.30.0.1" },
    ];
    const CAP_ARGS = JSON.stringify({ portMappings });
    expect(await patchbay(["add", "n", "c1", "--container-id", "web"], { CAP_ARGS })).toMatchObject({ code: 0 });
    await must("add", "m", "c2", "--container-id", "db", "-i", "lo");
    await machine.removeContainer(other);
    const { stdout } = await patchbay(["inspect"]);
    expect(stdout.split("\n\n").slice(0, 2)).toEqual([
      "2 attachments: 1 gone, 1 ok",
      "container  name  network  interface  addresses                ports                                " +
      "state\n" +
      "db         c2    m        lo         -                        -                                    " +
      "gone\n" +
      "web        c1    n        eth0       10.30.0.2/24 fd30::2/64  8080->80/tcp 10.30.0.1:53->5353/udp  ok",
    ]);
    expect((await json("inspect", "n"))[0]).toMatchObject({
      network: "n",
      containerId: "web",
      ifName: "eth0",
      addresses: ["10.30.0.2/24", "fd30::2/64"],
      ports: ["8080->80/tcp", "10.30.0.1:53->5353/udp"],
      state: "ok",
      plugins: [{ plugin: "bridge" }, { plugin: "portmap" }],
    });
  });
});

describe("plan", () => {
  beforeAll(async () => {
    machine = await openMachine();
    container = await machine.container("c1");
  });
  afterAll(() => machine[Symbol.asyncDispose]());

  test("lists what ADD then makes, and makes nothing", async () => {
    configure("n", [bridge("n", "iptables"), tuning]);
    const kernel = await quietMoment(machine);
    const planned = await json("plan", "n", container.netnsPath);
    expect(await leftSince(kernel, machine)).toEqual([]);
    await must("add", "n", container.netnsPath);
    const [{ plugins }] = await json("inspect");
    // Names and MAC addresses are chosen anew.
    const steady = (text: string) => text.replace(/veth[0-9a-f]{8}/g, "veth").replace(/(..:){5}../g, "MAC");
    const lines = (
      type: string,
      resources: { what: string }[],
    ) => [type, ...resources.map(({ what }) => steady(what))];
    expect(planned.map(({ type, resources }: never) => lines(type, resources)))
      .toEqual(plugins.map(({ plugin, resources }: never) => lines(plugin, resources)));
    await must("del", "n", container.netnsPath);
  });

  test("needs no namespace, and leaves nothing behind", async () => {
    configure("n", [bridge("n", "iptables"), tuning]);
    const kernel = await quietMoment(machine);
    const alone = await patchbay(["plan", "n"]);
    expect(alone).toMatchObject({ code: 0, stderr: "" });
    const steady = (text: string) => text.replace(/veth[0-9a-f]{8}/g, "veth").replace(/(..:){5}../g, "MAC");
    expect(steady(alone.stdout)).toBe(steady((await patchbay(["plan", "n", container.netnsPath])).stdout));
    expect(await leftSince(kernel, machine)).toEqual([]);
  });

  const obstacles: [name: string, plugin: Record<string, unknown>, says: RegExp][] = [
    [
      "a bridge's name of 20 letters",
      { type: "bridge", bridge: "abcdefghijklmnopqrst" },
      /failed to create bridge "abcdefghijklmnopqrst": could not add .*: interface name is too long/,
    ],
    [
      "a master that is not there",
      { type: "macvlan", master: "nowhere", ipam: { type: "static", addresses: [{ address: "10.0.0.2/24" }] } },
      /failed to lookup master "nowhere": Link not found/,
    ],
    ...lacks("ipvlan links")
      ? [[
        "a kind of link the kernel has not",
        { type: "ipvlan", master: "lo" },
        /this kernel has no ipvlan links/,
      ]] as [
        [string, Record<string, unknown>, RegExp],
      ]
      : [],
  ];
  for (const [name, plugin, says] of obstacles) {
    test(`reports why ADD would fail: ${name}`, async () => {
      configure("n", [plugin]);
      const kernel = await quietMoment(machine);
      for (const where of [[], [container.netnsPath]]) {
        const { code, stderr } = await patchbay(["plan", "n", ...where]);
        expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(says) });
      }
      expect((await patchbay(["add", "n", container.netnsPath])).code).toBe(1);
      expect(await leftSince(kernel, machine)).toEqual([]);
    });
  }

  test("reports that the container already has the interface", async () => {
    configure("n", [{ type: "bridge", bridge: "br-n" }]);
    await machine.sh("ip -n c1 link add eth0 type veth peer name other");
    expect((await patchbay(["plan", "n", container.netnsPath])).stderr).toMatch(/"eth0".* already exists/);
    await machine.sh("ip -n c1 link del eth0");
  });

  test("reports a version that is too new, and the known ones", async () => {
    configure("future", [{ type: "loopback" }], "1.2.0");
    for (const args of [["plan", "future"], ["add", "future", "c1"], ["status", "future"]]) {
      const { code, stderr } = await patchbay(args);
      expect(code).toBe(1);
      expect(stderr).toContain('error: "cniVersion" 1.2.0 is newer than 1.1.0, the newest this program speaks\n');
      expect(stderr).toContain('config is "1.2.0", plugin supports ["0.1.0"');
    }
    rmSync(`${directory}/future.conflist`);
  });

  test("does not know what plugins that are not ours make", async () => {
    configure("m", [{ type: "bridge", bridge: "br-m" }, { type: "other" }]);
    const bin = `${directory}/bin`;
    mkdirSync(bin);
    for (const name of ["bridge", "other"]) writeFileSync(`${bin}/${name}`, "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    const { stdout } = await patchbay(["plan", "m", container.netnsPath], { CNI_PATH: bin });
    expect(stdout).toBe(
      "bridge\n  what a program of another make does\nother\n  what a program of another make does\n",
    );
  });

  test("reports what is wrong with a configuration", async () => {
    configure("n", [{ type: "bridge", bridge: "br0", mtu: "big" }]);
    const { code, stderr } = await patchbay(["plan", "n", container.netnsPath]);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        'patchbay plan: plugin type="bridge" failed (plan): failed to load netconf: "mtu" must be an integer, got "big"\n',
    });
  });
});
