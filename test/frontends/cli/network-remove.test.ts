/** `patchbay network remove`: what a network leaves on the host goes, what others use or made stays; `ls` shows what has no file. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { commandsOn } from "../../support/commands.ts";
import { untilGone } from "../../support/gone.ts";
import { CONFIGS, writeNetwork } from "../../support/hooked.ts";
import { type Feature, lacks } from "../../support/kernel-features.ts";
import { legacyPath } from "../../support/legacy-iptables.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { type Machine, openMachine } from "../../support/machine.ts";

let machine: Machine;
beforeEach(async () => {
  machine = await openMachine();
  await machine.sh(`mkdir -p ${CONFIGS}`);
  await machine.container("c1");
});
afterEach(() => machine[Symbol.asyncDispose]());

const { patchbay: run, must } = commandsOn(() => machine, () => CONFIGS);
const patchbay = (...args: string[]) => run(args);
const attachAndDetach = async (network: string) => {
  await must("add", network, "c1");
  await must("del", network, "c1");
};
const links = () => machine.sh("ls /sys/class/net");

const ipam = { type: "host-local", ranges: [[{ subnet: "10.9.0.0/24" }], [{ subnet: "fd09::/64" }]] };
const bridge = { type: "bridge", bridge: "br0", isGateway: true, ipMasq: true, ipMasqBackend: "nftables", ipam };
const portmap = { type: "portmap", capabilities: { portMappings: true } };
const file = `${CONFIGS}/net.conflist stays: the next 'add' makes the network again\n`;
/** What all networks share, and the kernel's settings for the whole host. */
const OF_THE_HOST = /sysctl |CNI-|POSTROUTING|PREROUTING|INPUT|OUTPUT|FORWARD|patchbay\.lock|file \/run\/networks/;

type Case = [name: string, plugins: Record<string, unknown>[], removed: string[], needs?: Feature];
const networks: Case[] = [
  ["bridge", [bridge, portmap], ["bridge br0", "directory /var/lib/cni/networks/net"]],
  [
    "a bridge with a VLAN",
    [{ ...bridge, vlan: 100 }],
    ["bridge br0", "VLAN gateway br0.100", "directory /var/lib/cni/networks/net"],
    "bridge VLAN filtering",
  ],
  ["a bridge without addresses", [{ type: "bridge", bridge: "br0" }], ["bridge br0"]],
  ["a bridge with the default name", [{ type: "bridge" }], ["bridge cni0"]],
  ["ptp", [{ type: "ptp", ipMasq: true, ipam }], ["directory /var/lib/cni/networks/net"]],
  ["leases elsewhere", [{ type: "ptp", ipam: { ...ipam, dataDir: "/var/lib/here" } }], [
    "directory /var/lib/here/net",
  ]],
];

for (const [name, plugins, removed, needs] of networks) {
  describe.skipIf(lacks(needs))(name, () => {
    test("leaves nothing; a dry run says the same, and changes nothing", async () => {
      await writeNetwork(machine, "net", plugins);
      const before = await quietMoment(machine);
      await attachAndDetach("net");
      const used = await quietMoment(machine);
      expect(await patchbay("network", "remove", "net", "--dry-run")).toEqual({
        code: 0,
        stdout: removed.map((what) => `would remove ${what}\n`).join(""),
        stderr: file,
      });
      expect(await leftSince(used, machine)).toEqual([]);
      expect(await patchbay("network", "remove", "net")).toEqual({
        code: 0,
        stdout: removed.map((what) => `removed ${what}\n`).join(""),
        stderr: file,
      });
      expect(await leftSince(before, machine, OF_THE_HOST)).toEqual([]);
      expect(await must("network", "remove", "net")).toBe("nothing is left of it\n");
      await attachAndDetach("net");
    });

    test("while something is attached nothing is removed, with and without the file", async () => {
      await writeNetwork(machine, "net", plugins);
      await must("add", "net", "c1", "--container-id", "web");
      const attached = await quietMoment(machine);
      for (const prepare of [":", `rm ${CONFIGS}/net.conflist`]) {
        await machine.sh(prepare);
        for (const more of [[], ["--dry-run"], ["--leases"]]) {
          expect(await patchbay("network", "remove", "net", ...more)).toEqual({
            code: 1,
            stdout: "",
            stderr:
              "patchbay network: network net is in use by 1 attachment: eth0 of container web; nothing is removed\n" +
              "  'patchbay del net CONTAINER' ends an attachment, 'patchbay gc net --all' every one\n",
          });
        }
      }
      expect(await leftSince(attached, machine, OF_THE_HOST)).toEqual([]);
      expect(await must("ls")).toMatch(
        /^net .* in use .*\(none\)\n[^]*network net: 1 attachment and \d leases?, and no file in .*\w$/m,
      );
    });

    test("without its file, what is attached to namespaces that are gone goes, too", async () => {
      await writeNetwork(machine, "net", plugins);
      const before = await quietMoment(machine);
      await must("add", "net", "c1", "--container-id", "web");
      await machine.sh(`rm ${CONFIGS}/net.conflist; ip netns del c1`);
      const { attachments, removed: gone, stays } = JSON.parse(await must("network", "remove", "net", "--json"));
      expect({ attachments, stays }).toEqual({ attachments: [{ containerId: "web", ifName: "eth0" }], stays: [] });
      expect(gone).toEqual(expect.arrayContaining(removed.filter((what) => what.startsWith("bridge"))));
      await machine.sh("ip netns add c1");
      expect(await leftSince(before, machine, OF_THE_HOST)).toEqual([]);
      expect(await must("ls")).toBe(`no networks in ${CONFIGS}\n`);
    });
  });
}

describe("what stays", () => {
  test("a bridge that was there before", async () => {
    await writeNetwork(machine, "net", [bridge]);
    await machine.sh("ip link add br0 type bridge");
    await attachAndDetach("net");
    for (const more of [["--dry-run"], []]) {
      expect(await must("network", "remove", "net", ...more))
        .toContain("bridge br0 stays: it was there before, or another program made it\n");
      expect(await links()).toContain("br0");
    }
  });

  const uses: [what: string, how: string, user: string][] = [
    ["a port", "ip link add d0 type veth peer name d1; ip link set d0 master br0", "d0"],
    ["a macvlan", "ip link add link br0 name m0 type macvlan", "m0"],
  ];
  test.each(uses)("a bridge of ours that somebody uses: %s", async (_, how, user) => {
    await writeNetwork(machine, "net", [bridge]);
    await attachAndDetach("net");
    await machine.sh(how);
    expect(await must("network", "remove", "net")).toContain(`bridge br0 stays: ${user} uses it\n`);
    expect(await links()).toContain("br0");
    await machine.sh(`ip link del ${user}`);
    expect(await must("network", "remove", "net")).toContain("removed bridge br0\n");
  });

  test("a VLAN gateway is no user: its pair goes with the bridge", async () => {
    await writeNetwork(machine, "net", [bridge]);
    await attachAndDetach("net");
    await machine.sh(
      "ip link add vethgateway type veth peer name br0.100; ip link set vethgateway master br0; " +
        "ip link set br0.100 alias 'made by Patchbay for network net'",
    );
    expect(await must("network", "remove", "net")).toContain("removed bridge br0\nremoved VLAN gateway br0.100\n");
    expect(await links()).not.toMatch(/br0|vethgateway/);
  });

  test("a bridge that another network's container is on", async () => {
    await writeNetwork(machine, "net", [bridge]);
    await attachAndDetach("net");
    await writeNetwork(machine, "other", [{ ...bridge, ipam: undefined, isGateway: false, ipMasq: false }]);
    await must("add", "other", "c1");
    expect(await must("network", "remove", "net")).toMatch(/^bridge br0 stays: veth\w+ uses it\n/);
    await must("del", "other", "c1");
    expect(await must("network", "remove", "other")).toBe("bridge br0 stays: Patchbay made it for network net\n");
    expect(await links()).toContain("br0");
    await machine.sh(`rm ${CONFIGS}/net.conflist`);
    expect(await must("network", "remove", "net")).toBe("removed bridge br0\n");
  });

  const fixed = { type: "static", addresses: [{ address: "10.20.0.2/24" }] };
  const upon = [["the cached result", "/var/lib/cni/results"], ["the ledger", "/run/patchbay/other"]];
  test.each(upon)(
    "a bridge that another network's container has a link upon, without %s",
    async (_, record) => {
      await writeNetwork(machine, "net", [bridge]);
      await attachAndDetach("net");
      await writeNetwork(machine, "other", [{ type: "macvlan", master: "br0", ipam: fixed }]);
      await must("add", "other", "c1");
      await machine.sh(`rm -r ${record}`);
      expect(await must("network", "remove", "net")).toContain(
        "bridge br0 stays: a container of network other has a link upon it\n",
      );
      expect(await machine.sh("ip netns exec c1 ls /sys/class/net; ip -n c1 link")).toContain("eth0");
      await machine.sh("ip -n c1 link del eth0");
      await must("del", "other", "c1");
      expect(await must("network", "remove", "net")).toContain("removed bridge br0\n");
    },
  );

  test("copies of cached results are no attachments", async () => {
    await writeNetwork(machine, "net", [bridge]);
    await must("add", "net", "c1", "--container-id", "web");
    await machine.sh("ip netns del c1; cd /var/lib/cni/results; cp net-web-eth0 net-web-eth0.bak");
    await untilGone(machine);
    expect(await must("network", "remove", "net")).toMatch(
      /^removed eth0 of container web$[^]*^removed bridge br0$/m,
    );
    expect(await patchbay("gc", "net", "--gone")).toMatchObject({ code: 0, stderr: "" });
    expect(await machine.sh("ls /var/lib/cni/results")).toBe("net-web-eth0.bak\n");
    await machine.sh("ip netns add c1");
  });

  test("leases that no record explains, until --leases says so", async () => {
    await writeNetwork(machine, "net", [bridge]);
    await attachAndDetach("net");
    await machine.sh("printf 'lost\\r\\neth0' >/var/lib/cni/networks/net/10.9.0.77");
    for (const prepare of [":", `rm ${CONFIGS}/net.conflist`]) {
      await machine.sh(prepare);
      expect(await patchbay("network", "remove", "net")).toEqual({
        code: 1,
        stdout: "",
        stderr:
          "patchbay network: network net has 1 lease that no record explains: lease 10.9.0.77 of container lost; " +
          "nothing is removed without --leases\n",
      });
    }
    expect(await must("ls", "net")).toEndWith(`and no file in ${CONFIGS}; 'patchbay network remove net' ends it\n`);
    expect(await must("network", "remove", "net", "--leases")).toContain(
      "removed lease 10.9.0.77 of container lost\nremoved bridge br0\nremoved directory /var/lib/cni/networks/net\n",
    );
    expect(await must("ls")).toBe(`no networks in ${CONFIGS}\n`);
  });

  test("files in the directory of leases that are not host-local's", async () => {
    await writeNetwork(machine, "net", [bridge]);
    await attachAndDetach("net");
    await machine.sh("echo keep >/var/lib/cni/networks/net/NOTES");
    expect(await must("network", "remove", "net")).toContain(
      "directory /var/lib/cni/networks/net stays: NOTES is in it\n",
    );
    expect(await machine.sh("ls -A /var/lib/cni/networks/net")).toBe("NOTES\n");
  });
});

describe("whose a link is, its alias says", () => {
  const made = (network: string) => `made by Patchbay for network ${network}`;
  const long = "n".repeat(220);
  type Link = [what: string, type: string, name: string, alias: string];
  const links: Link[] = [
    ["the bridge of a network whose name begins alike", "bridge", "br1", made("net2")],
    ["the bridge of a network whose long name begins alike", "bridge", "br1", made(`${long}1`).slice(0, 200)],
    ["the bridge of a build that did not say the network", "bridge", "br1", "made by Patchbay"],
    ["a link of another kind", "veth", "br1", made("net")],
    ["the VLAN gateway of another network", "veth", "br0.7", made("net2")],
    ["a veth pair of others, named after the bridge", "veth", "br0.7", ""],
    ["a veth pair whose name has no VLAN", "veth", "br0.web", made("net")],
    ["a veth pair whose VLAN does not exist", "veth", "br0.4095", made("net")],
  ];
  test.each(links)("%s is not the network's: it stays", async (_, type, name, alias) => {
    await writeNetwork(machine, "net", [bridge, { ...bridge, bridge: "br1" }].slice(0, name === "br1" ? 2 : 1));
    await machine.sh(`ip link add br0 type bridge; ip link set br0 alias '${made("net")}'`);
    const isGateway = name.startsWith("br0."), port = isGateway ? "peer name p0; ip link set p0 master br0" : "";
    await machine.sh(`ip link add ${name} type ${type} ${port}; ip link set ${name} alias '${alias}'`);
    expect(await must("network", "remove", "net")).toContain(
      isGateway ? "bridge br0 stays: p0 uses it\n" : "removed bridge br0\n",
    );
    expect(await machine.sh("ls /sys/class/net")).toContain(name);
  });

  test("a name that is longer than an alias", async () => {
    const names = [`${long}1`, `${long}2`];
    for (const [index, name] of names.entries()) {
      await writeNetwork(machine, name, [{ type: "bridge", bridge: `br${index}` }]);
      await attachAndDetach(name);
    }
    expect(await must("network", "remove", names[0]!)).toBe("removed bridge br0\n");
    expect(await machine.sh("ls /sys/class/net")).toMatch(/^br1$/m);
    expect(await must("network", "remove", names[1]!)).toBe("removed bridge br1\n");
  });
});

test("the rules of iptables for its bridge go with it, those for other bridges stay", async () => {
  const isolated = (policy: string) => ({ type: "firewall", backend: "iptables", ingressPolicy: policy });
  await writeNetwork(machine, "net", [bridge, isolated("isolated")]);
  await writeNetwork(machine, "other", [
    { ...bridge, bridge: "br1", ipam: { type: "host-local", subnet: "10.10.0.0/24" } },
    isolated("same-bridge"),
  ]);
  await attachAndDetach("other");
  const rules = () =>
    machine.sh("for T in iptables ip6tables iptables-legacy ip6tables-legacy; do $T -S | grep STAGE; done || true");
  await attachAndDetach("net");
  // The host may have changed from one form of iptables to the other since.
  const older = { PATH: legacyPath() };
  for (const command of ["add", "del"]) expect(await run([command, "net", "c1"], older)).toMatchObject({ code: 0 });
  const withBoth = (await rules()).split("\n"), ofBridge = withBoth.filter((line) => / br0 /.test(line));
  expect(ofBridge.length).toBeGreaterThan(2);
  expect(ofBridge).toHaveLength(4 * new Set(ofBridge).size);
  expect(await must("network", "remove", "net", "--dry-run")).toMatch(
    /^would remove bridge br0\nwould remove rules of iptables for bridge br0\n(chain CNI-.* stays: .*\n){4}would .*\n$/,
  );
  expect((await rules()).split("\n")).toEqual(withBoth);
  expect(await must("network", "remove", "net")).toContain("removed rules of iptables for bridge br0\n");
  expect((await rules()).split("\n")).toEqual(withBoth.filter((line) => !ofBridge.includes(line)));
});

test("a network that nobody knows, and another action", async () => {
  await writeNetwork(machine, "net", [bridge]);
  expect(await patchbay("network", "remove", "nett")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no net configuration with name "nett"'),
  });
  expect(await patchbay("network", "destroy", "net")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("network knows remove, not destroy"),
  });
});
