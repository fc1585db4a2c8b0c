/**
 * What the packets of an attachment need besides what ADD made for it alone: the host's way to it, forwarding by its links,
 * its own address in front. Each is taken away, packets stop, `inspect` and `check` say why, and `repair` mends it or says
 * the next step.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { commandsOn } from "../support/commands.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { untilTrue } from "../support/until-true.ts";
import { BOTH_FAMILIES, isAnswered, UPLINK } from "../support/way-out.ts";

let machine: Machine;
const directory = mkdtempSync(`${tmpdir()}/in-the-way-`);
const { patchbay, must, json } = commandsOn(() => machine, () => directory);
afterAll(() => rmSync(directory, { recursive: true }));

async function differences(command: string): Promise<string> {
  const attachments = await json(command, "shop", "web");
  return attachments.flatMap(({ plugins }: { plugins: { resources: { differences: string[] }[] }[] }) =>
    plugins.flatMap(({ resources }) => resources.flatMap((one) => one.differences))
  ).join("\n");
}

interface Breakage {
  how: string;
  says: RegExp;
  family: 4 | 6;
  /** Set for what is not ours to change: the command of the next step. */
  step?: string;
}

const breakages = (link: string): Breakage[] => [
  { how: `ip route del ${way(4, link)}`, says: /route to 10\.40\.0\.\S+ by \S+ is missing/, family: 4 },
  { how: `ip -6 route del ${way(6, link)}`, says: /route to fd40::\S* by \S+ is missing/, family: 6 },
  {
    how: "ip route add 10.40.0.2/32 dev eth1 table 77; ip rule add to 10.40.0.2 lookup 77",
    says: /packets to 10\.40\.0\.2 leave by eth1, not by \S+: .*'ip route get 10\.40\.0\.2'/,
    family: 4,
    step: "ip rule del to 10.40.0.2 lookup 77",
  },
  { how: `sysctl -qw net.ipv4.conf.${link}.forwarding=0`, says: /net\.ipv4\.conf\.\S+\.forwarding is 0/, family: 4 },
  {
    how: "sysctl -qw net.ipv4.conf.eth1.forwarding=0",
    says: /by eth1 is not forwarded: 'sysctl -w net\.ipv4\.conf\.eth1\.forwarding=1'/,
    family: 4,
    step: "sysctl -qw net.ipv4.conf.eth1.forwarding=1",
  },
  {
    how: "ip -n web address del 10.40.0.2/24 dev eth0; ip -n web address add 10.40.0.55/24 dev eth0; " +
      "ip -n web route replace 10.40.0.1 dev eth0; ip -n web route replace default via 10.40.0.1",
    says: /eth0 sends as 10\.40\.0\.55, an address of others, not as 10\.40\.0\.2/,
    family: 4,
  },
  {
    how: "ip -n web address add fd40::55/64 dev eth0 nodad",
    says: /eth0 sends as fd40::55, an address of others, not as fd40::2/,
    family: 6,
  },
  {
    how: "ip -n web neighbour add 10.40.0.77 lladdr 02:00:00:00:00:77 dev eth0; " +
      "ip -n web route prepend default via 10.40.0.77 onlink dev eth0",
    says: /a route of others, 0\.0\.0\.0\/0 via 10\.40\.0\.77, is in front of 0\.0\.0\.0\/0 via 10\.40\.0\.1/,
    family: 4,
  },
  { how: "ip -n web route prepend blackhole default", says: /in front of 0\.0\.0\.0\/0 .* leads nowhere/, family: 4 },
];

const way = (family: 4 | 6, link: string) =>
  link === "shop0" ? (family === 4 ? "10.40.0.0/24" : "fd40::/64") : family === 4 ? "10.40.0.2" : "fd40::2";

for (const type of ["bridge", "ptp"]) {
  describe(type, () => {
    let link: string;
    beforeAll(async () => {
      machine = await openMachine();
      const plugin = type === "bridge" ? { type, bridge: "shop0", isGateway: true } : { type };
      const list = { cniVersion: "1.1.0", name: "shop", plugins: [{ ...plugin, ipMasq: true, ipam: BOTH_FAMILIES }] };
      writeFileSync(`${directory}/shop.conflist`, JSON.stringify(list));
      await machine.container("web");
      await machine.container("outside");
      await machine.sh(UPLINK);
      await must("add", "shop", "web");
      link = type === "bridge" ? "shop0" : (await machine.sh("ls /sys/class/net | grep ^veth")).trim();
    });
    afterAll(() => machine[Symbol.asyncDispose]());

    for (const [index, { how, says, family }] of breakages("LINK").entries()) {
      test(`${how} ${says}`, async () => {
        const own = breakages(link)[index]!;
        expect(await patchbay(["inspect"])).toMatchObject({ code: 0 });
        expect(await untilTrue(() => isAnswered(machine, family), Boolean)).toBe(true);
        await machine.sh(own.how);
        expect(await isAnswered(machine, family)).toBe(false);
        expect(await differences("inspect")).toMatch(says);
        const checked = await patchbay(["check", "shop", "web"]);
        expect(checked).toMatchObject({ code: 1, stderr: expect.stringMatching(says) });
        const repaired = await patchbay(["repair", "shop", "web"]);
        expect(repaired).toMatchObject({ code: own.step === undefined ? 0 : 1, stdout: expect.stringMatching(says) });
        if (own.step !== undefined) await machine.sh(own.step);
        await patchbay(["repair"]);
        expect(await untilTrue(() => isAnswered(machine, family), Boolean)).toBe(true);
        expect(await patchbay(["check", "shop", "web"])).toMatchObject({ code: 0 });
      });
    }
  });
}

test("plan tells what would be in front: the route of another network, and an uplink that does not forward", async () => {
  await using own = await openMachine();
  machine = own;
  for (const [name, subnet] of [["one", "10.41.0.0/24"], ["two", "10.42.0.0/24"]] as const) {
    const ipam = { type: "host-local", subnet, routes: [{ dst: "0.0.0.0/0" }, { dst: "203.0.113.0/24" }] };
    const plugins = [{ type: "bridge", bridge: name, isGateway: true, ipam }];
    writeFileSync(`${directory}/${name}.conflist`, JSON.stringify({ cniVersion: "1.1.0", name, plugins }));
  }
  await machine.container("web");
  await machine.container("outside");
  await machine.sh(UPLINK);
  await must("add", "one", "web");
  expect(await patchbay(["plan", "two", "web", "-i", "net1"])).toMatchObject({
    code: 0,
    stderr: "patchbay plan: packets to 0.0.0.0/0 go on leaving by eth0, whose route comes first\n" +
      "patchbay plan: packets to 203.0.113.0/24 go on leaving by eth0, whose route comes first\n",
  });
  expect(await patchbay(["plan", "two"])).toMatchObject({ code: 0, stderr: "" });
  await machine.sh("sysctl -qw net.ipv4.conf.eth1.forwarding=0");
  expect((await patchbay(["plan", "two"])).stderr).toContain("net.ipv4.conf.eth1.forwarding is 0");
});

test("a bridge that others made, and shut, is told and not switched", async () => {
  await using own = await openMachine();
  machine = own;
  const ipam = { type: "host-local", subnet: "10.43.0.0/24", routes: [{ dst: "0.0.0.0/0" }] };
  const plugins = [{ type: "bridge", bridge: "theirs", isGateway: true, ipam }];
  writeFileSync(`${directory}/theirs.conflist`, JSON.stringify({ cniVersion: "1.1.0", name: "theirs", plugins }));
  await machine.sh(
    "ip link add theirs type bridge; sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.theirs.forwarding=0",
  );
  await machine.container("web");
  await must("add", "theirs", "web");
  for (const command of ["inspect", "repair"]) {
    const step = expect.stringContaining("'sysctl -w net.ipv4.conf.theirs.forwarding=1'");
    expect(await patchbay([command, "theirs"])).toMatchObject({ code: 1, stdout: step });
  }
  expect(await machine.sh("cat /proc/sys/net/ipv4/conf/theirs/forwarding")).toBe("0\n");
});

test("what others gave the container's link stays as it is, behind ours", async () => {
  await using own = await openMachine();
  machine = own;
  const addresses = [{ address: "10.44.0.5/24", gateway: "10.44.0.1" }, { address: "10.44.0.6/24" }];
  const ipam = {
    type: "static",
    addresses,
    routes: [{ dst: "0.0.0.0/0" }, { dst: "198.51.100.0/24", gw: "0.0.0.0" }],
  };
  const plugins = [{ type: "bridge", bridge: "own0", isGateway: true, ipam }];
  writeFileSync(`${directory}/own.conflist`, JSON.stringify({ cniVersion: "1.1.0", name: "own", plugins }));
  await machine.container("web");
  await must("add", "own", "web");
  await machine.sh(`
    ip -n web address flush dev eth0 scope global
    ip -n web address add 10.44.0.77/24 dev eth0 valid_lft 600 preferred_lft 600
    ip -n web address add 10.44.0.78/24 dev eth0
    ip -n web route add 172.20.0.0/16 via 10.44.0.99`);
  expect(await patchbay(["repair", "own"])).toMatchObject({ code: 0 });
  expect(await machine.sh("ip -n web -o address show dev eth0 scope global | grep -o '10[^ ]*/24' | sort"))
    .toBe("10.44.0.5/24\n10.44.0.6/24\n10.44.0.77/24\n10.44.0.78/24\n");
  expect(await machine.sh("ip -n web address show dev eth0")).toMatch(/10\.44\.0\.77.*\n +valid_lft [0-9]+sec/);
  expect(await machine.sh("ip -n web route get 192.0.2.1")).toContain("src 10.44.0.5");
  expect(await machine.sh("ip -n web route")).toContain("172.20.0.0/16 via 10.44.0.99");
  expect(await patchbay(["inspect", "own"])).toMatchObject({ code: 0 });

  // Ours has no gateway, so a request to delete it would match this one, too.
  await machine.sh("ip -n web route prepend 198.51.100.0/24 via 10.44.0.99");
  expect(await patchbay(["repair", "own"])).toMatchObject({ code: 0 });
  expect(await machine.sh("ip -n web route show 198.51.100.0/24")).toContain("via 10.44.0.99");
  expect(await machine.sh("ip -n web route get 198.51.100.7")).not.toContain("via");
});
