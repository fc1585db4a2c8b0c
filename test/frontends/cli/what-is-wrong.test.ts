/** What a person reads of many attachments, of many differences, and of what repair cannot mend. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { commandsOn, networkFiles } from "../../support/commands.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { ping } from "../../support/traffic.ts";

let machine: Machine;
const { directory, configure } = networkFiles();
const { patchbay, must, json } = commandsOn(() => machine, () => directory);
const pool = (subnet: string) => ({ type: "host-local", ranges: [[{ subnet }]], routes: [{ dst: "0.0.0.0/0" }] });
const shop = [
  { type: "bridge", bridge: "shop0", isDefaultGateway: true, ipMasq: true, ipam: pool("10.40.0.0/24") },
  { type: "portmap", backend: "iptables", capabilities: { portMappings: true } },
  { type: "firewall", backend: "iptables" },
];

beforeAll(async () => {
  machine = await openMachine();
  configure("shop", shop);
  configure("lo", [{ type: "loopback" }]);
});
afterAll(() => machine[Symbol.asyncDispose]());

describe("thirty containers after a flush", () => {
  const COUNT = 30;
  beforeAll(async () => {
    for (let number = 1; number <= COUNT; number++) {
      await machine.container(`c${number}`);
      await must("add", "shop", `c${number}`, "--ports", `${8000 + number}:80`);
    }
    await machine.container("aside");
    await must("add", "lo", "aside", "-i", "lo");
  });
  const FLUSH = "iptables -F; iptables -t nat -F; sysctl -qw net.ipv4.ip_forward=0";

  test("inspect counts first, lists all, and says what is wrong once", async () => {
    await machine.sh(FLUSH);
    const { code, stdout } = await patchbay(["inspect"]);
    expect(code).toBe(1);
    const lines = stdout.split("\n");
    expect(lines[0]).toBe(`${COUNT + 1} attachments: ${COUNT} differ, 1 ok`);
    expect(lines.slice(3, 3 + COUNT).filter((line) => / differs: bridge, forwarding, masquerade, /.test(line)))
      .toHaveLength(
        COUNT,
      );
    expect(lines[3 + COUNT]).toMatch(/aside .* ok$/);
    const below = lines.slice(4 + COUNT);
    expect(below.filter((line) => line.startsWith("network "))).toEqual([
      expect.stringMatching(/^network shop, container \S+, eth0 in \S+, and 29 more like it$/),
    ]);
    expect(below.filter((line) => line.includes("net.ipv4.ip_forward is not 1"))).toHaveLength(1);
    expect(below.filter((line) => /rule -A CNI-\S+ .* not found.*, and [0-9]+ more like it$/.test(line)).length)
      .toBeGreaterThan(0);
    expect(below.filter((line) => line.includes("    ok "))).toEqual([]);
    expect(below.at(-2)).toBe("  'patchbay repair shop' mends what it can");
    expect(below.length).toBeLessThan(30);
  });

  test("check names each plugin, a line a difference, and the next step", async () => {
    const { code, stdout, stderr } = await patchbay(["check", "shop", "c1"]);
    expect([code, stdout]).toEqual([1, ""]);
    const [head, ...lines] = stderr.trimEnd().split("\n");
    expect(head).toMatch(/^patchbay check: shop \S+ is not as it was made: [0-9]+ differences$/);
    for (const type of ["bridge", "portmap", "firewall"]) {
      expect(lines.some((line) => line.startsWith(`  ${type}: `))).toBe(true);
    }
    expect(lines.at(-1)).toMatch(/^ {2}'patchbay repair shop \S+' mends what it can$/);
    expect((await patchbay(["check", "shop", "c1", "--brief"])).stdout)
      .toMatch(/^shop \S+ is not as it was made: [0-9]+ differences: bridge, portmap, firewall\n$/);
    // What a flush takes is more than a person is shown.
    const { problems } = await json("check", "shop", "c1");
    expect(problems.length).toBeGreaterThan(lines.length);
  });

  test("check of the network alone does so for each attachment that differs", async () => {
    const { code, stdout, stderr } = await patchbay(["check", "shop"]);
    expect([code, stdout]).toEqual([1, ""]);
    const heads = stderr.split("\n").filter((line) => line.startsWith("patchbay check: "));
    expect(heads.filter((head) => / is not as it was made: [0-9]+ differences$/.test(head))).toHaveLength(COUNT);
    const brief = (await patchbay(["check", "shop", "--brief"])).stdout.trimEnd().split("\n");
    expect(brief.filter((line) => / differences: bridge, portmap, firewall$/.test(line))).toHaveLength(COUNT);
    const all = await json("check", "shop"), [{ containerId }] = all;
    expect(all).toHaveLength(COUNT);
    expect(all[0]).toEqual(await json("check", "shop", containerId));
    expect(await patchbay(["check", "lo"])).toMatchObject({ code: 0, stdout: "", stderr: "" });
  });

  test("repair --brief says what it mended, a line each", async () => {
    const { code, stdout } = await patchbay(["repair", "--brief"]);
    const [counts, , , ...rows] = stdout.trimEnd().split("\n");
    expect([code, counts]).toEqual([0, `${COUNT + 1} attachments: ${COUNT} mended, 1 ok`]);
    // The first one switches forwarding on for all, which also had the bridge accept redirects.
    const mended = (what: RegExp) => rows.filter((row) => what.test(row)).length;
    expect(mended(/ mended: bridge, forwarding, masquerade, port-mappings, firewall$/)).toBe(1);
    expect(mended(/ mended: masquerade, port-mappings, firewall$/)).toBe(COUNT - 1);
    expect(await patchbay(["check", "shop", "c1"])).toMatchObject({ code: 0, stderr: "" });
  });
});

test("check of a network goes on past what it cannot look at, and says when nothing is attached", async () => {
  configure("some", [{ type: "ptp", ipam: pool("10.42.0.0/24") }]);
  expect(await patchbay(["check", "some"])).toMatchObject({
    code: 1,
    stderr: 'patchbay check: nothing is attached to network "some"; no ledger and no cached result names it\n',
  });
  const [gone, other] = [await machine.container("some-gone"), await machine.container("some-other")];
  for (const { name } of [gone, other]) await must("add", "some", name, "--container-id", name);
  await machine.removeContainer(gone);
  await machine.sh("ip address flush dev eth0", { in: other });
  const cannot = /^some some-gone cannot be checked: .*failed to open netns .*$/m;
  const differs = /^some some-other is not as it was made: [0-9]+ differences?: ptp$/m;
  const { code, stdout } = await patchbay(["check", "some", "--brief"]);
  expect([code, stdout]).toEqual([1, expect.stringMatching(cannot)]);
  expect(stdout).toMatch(differs);
  const problems = (await json("check", "some")).map((one: { problems: string[] }) => one.problems[0]);
  expect(problems).toEqual([expect.stringContaining("failed to open netns"), expect.any(String)]);
  expect(await patchbay(["check", "some", "-i", "eth0"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--ifname is for one CONTAINER, and none is named"),
  });
  for (const { name } of [gone, other]) await must("del", "some", name);
});

test("check of a network says nothing of an attachment that is deleted while it waits", async () => {
  configure("slow", [{ type: "loopback" }, { type: "wait" }]);
  await machine.sh(
    `mkdir /run/slow; cd /run/slow; ln -s ${PATCHBAY} loopback; mkfifo begun end; cat >wait; chmod 755 wait`,
    {
      stdin: `#!/bin/sh
if [ $CNI_COMMAND = DEL ]; then echo >/run/slow/begun; read _ </run/slow/end; fi
[ $CNI_COMMAND != ADD ] || jq .prevResult
`,
    },
  );
  await machine.container("slow");
  const run = (
    ...args: string[]
  ) => ["env", "CNI_PATH=/run/slow", `NETCONFPATH=${directory}`, PATCHBAY, ...args, "-i", "lo"];
  expect(await machine.run(run("add", "slow", "slow"))).toMatchObject({ code: 0 });
  const deletion = machine.run(run("del", "slow", "slow"));
  await machine.sh("read _ </run/slow/begun");
  const check = machine.start(run("check", "slow").slice(0, -2)), stderr = check.stderr.getReader();
  expect(new TextDecoder().decode((await stderr.read()).value)).toContain("waiting for another operation");
  await machine.sh("echo >/run/slow/end");
  expect(await deletion).toMatchObject({ code: 0 });
  expect([await check.exited, (await stderr.read()).done]).toEqual([0, true]);
});

test("where new links begin without IPv6, add names the switch that is there when it has failed", async () => {
  const six = { type: "host-local", ranges: [[{ subnet: "fd45::/64" }]] };
  configure("six", [{ type: "bridge", bridge: "six0", isGateway: true, ipam: six }]);
  await machine.container("six");
  await machine.sh("sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
  const { code, stderr } = await patchbay(["add", "six", "six"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("net.ipv6.conf.default.disable_ipv6 is 1")]);
  await machine.sh("sysctl -qw net.ipv6.conf.default.disable_ipv6=0");
  await must("add", "six", "six");
  await must("del", "six", "six");
});

describe("what repair advises where it cannot mend", () => {
  test("nothing that ends what works while 'add' would fail", async () => {
    const both = { type: "host-local", ranges: [[{ subnet: "10.41.0.0/24" }], [{ subnet: "fd41::/64" }]] };
    const makes: [type: string, plugin: Record<string, unknown>, link: string][] = [
      ["bridge", { type: "bridge", bridge: "both0", isGateway: true, ipam: both }, "both0"],
      ["ptp", { type: "ptp", ipam: both }, "veth\\w+"],
    ];
    for (const [type, plugin, link] of makes) {
      configure("both", [plugin]);
      const web = await machine.container(`both-${type}`);
      await must("add", "both", web.name);
      await machine.sh("sysctl -qw net.ipv6.conf.all.disable_ipv6=1");
      const { code, stdout } = await patchbay(["repair", "both"]);
      expect(code).toBe(1);
      expect(stdout).toMatch(
        new RegExp(`IPv6 is disabled on ${link}: net\\.ipv6\\.conf\\.all\\.disable_ipv6 is 1`),
      );
      expect(stdout).toMatch(/keep the attachment, because 'add' would fail now/);
      expect(stdout).toContain("'sysctl -w net.ipv6.conf.");
      expect(stdout).not.toContain("patchbay del");
      // What the advice rests on is true.
      await machine.container(`later-${type}`);
      const advised = `IPv6 is disabled on`;
      for (const command of ["plan", "status"]) {
        expect(await patchbay([command, "both"])).toMatchObject({
          code: 1,
          stderr: expect.stringContaining(advised),
        });
      }
      expect(await patchbay(["add", "both", `later-${type}`]))
        .toMatchObject({ code: 1, stderr: expect.stringContaining(advised) });
      expect(await ping(machine, web, "10.41.0.1")).toBe(true);
      await machine.sh("sysctl -qw net.ipv6.conf.all.disable_ipv6=0");
      expect(await patchbay(["repair", "both"])).toMatchObject({ code: 0 });
      await must("del", "both", web.name);
    }
  });

  test("'del' and 'add' for a link that is gone, if 'add' would work: otherwise what is missing, first", async () => {
    await machine.sh("ip link add up0 type veth peer name up1; ip link set up0 up");
    configure("mac", [{ type: "macvlan", master: "up0", ipam: pool("10.42.0.0/24") }]);
    await machine.container("vlan");
    await must("add", "mac", "vlan", "--container-id", "vlan");
    await machine.sh("ip -n vlan link del eth0");
    const anew = "'patchbay del mac vlan', and 'add' after it, make it anew\n";
    expect(await patchbay(["repair", "mac"])).toMatchObject({ code: 1, stdout: expect.stringContaining(anew) });
    await machine.sh("ip link del up0");
    const { stdout } = await patchbay(["repair", "mac"]);
    expect(stdout).toMatch(/'add' would fail now: .*failed to lookup master "up0": Link not found/);
    expect(stdout).not.toContain("patchbay del");
  });
});
