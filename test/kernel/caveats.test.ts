/** What a network does not do although nothing refuses it: `plan`, `status`, `networks` and `add` say so on this host. */
import { afterAll, afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { type Machine, openMachine } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { untilTrue } from "../support/until-true.ts";

let machine: Machine;
const directory = mkdtempSync(`${tmpdir()}/caveats-`);
beforeEach(async () => void (machine = await openMachine()));
afterEach(async () => await machine[Symbol.asyncDispose]());
afterAll(() => rmSync(directory, { recursive: true }));

const configure = (...plugins: Record<string, unknown>[]) =>
  writeFileSync(`${directory}/n.conflist`, JSON.stringify({ cniVersion: "1.1.0", name: "n", plugins }));
const patchbay = (...args: string[]) => machine.run([PATCHBAY, ...args], { env: { NETCONFPATH: directory } });
const bridge = (ipam: object) => ({ type: "bridge", bridge: "br0", isDefaultGateway: true, ipam });
const leased = { type: "host-local", subnet: "10.9.0.0/24" };
/** Behind an uplink of the host. */
const FAR = `ip netns add far; ip link add up0 type veth peer name far0 netns far; ip address add 10.1.0.1/24 dev up0
  ip link set up0 up; ip -n far address add 10.1.0.2/24 dev far0; ip -n far link set far0 up`;

test("nftables cannot allow what another chain drops: nothing is forwarded, and plan and status name the chain", async () => {
  configure(bridge(leased), { type: "firewall", backend: "nftables" });
  await machine.sh(`${FAR}; ip -n far route add default via 10.1.0.1`);
  const web = await machine.container("web");
  expect(await patchbay("add", "n", "web")).toMatchObject({ code: 0 });
  const ping = () => machine.run(["ping", "-c1", "-W1", "10.1.0.2"], { in: web });
  expect(await ping()).toMatchObject({ code: 0 });
  for (const words of [["plan", "n"], ["status", "n"]]) {
    expect(await patchbay(...words)).toMatchObject({ stderr: "" });
  }

  await machine.sh(
    "nft add table ip6 six; nft 'add chain ip6 six f { type filter hook forward priority 5; policy drop; }'",
  );
  expect(await patchbay("status", "n")).toMatchObject({ code: 0, stderr: "" });
  await machine.sh(
    `nft add table inet other; nft 'add chain inet other f { type filter hook forward priority 5; policy drop; }'
    nft add chain inet other g; iptables -P FORWARD ACCEPT`,
  );
  const told = (chain: string) =>
    expect.stringContaining(`another chain drops, and ${chain} drops what its own rules do not accept`);
  for (const words of [["plan", "n"], ["status", "n"]]) {
    expect(await patchbay(...words)).toMatchObject({ code: 0, stderr: told("inet other f") });
  }
  const established = "ct state established,related accept";
  const rows: [rules: string[], isAccepted: boolean][] = [
    [[established], false],
    [["iifname br0 accept", established], true],
    [["iifname br0 counter accept", established], true],
    [["iifname br00 accept", established], false],
    [["iifname br0 tcp dport 80 accept", established], false],
    [["iifname br0 drop", established], false],
    [["ip saddr 10.9.0.0/16 accept", established], true],
    [["ip saddr 10.9.0.0/23 iifname br0 accept", established], true],
    [["ip saddr 10.9.0.128/25 accept", established], false],
    [["ip daddr 10.9.0.0/24 accept", established], false],
    [["jump g", established], true],
    [["iifname br1 jump g", established], false],
    [["accept"], true],
    [["iifname br0 drop", "accept"], false],
    [["ip saddr 10.9.0.0/24 reject", "accept"], false],
    [["iifname br0 return", "accept"], false],
    [["iifname br1 drop", "accept"], true],
  ];
  for (const [rules, isAccepted] of rows) {
    const lines = ["f", "g"].map((chain) => `flush chain inet other ${chain}`);
    lines.push("add rule inet other g ip saddr 10.9.0.0/24 accept");
    lines.push(...rules.map((rule) => `add rule inet other f ${rule}`));
    await machine.sh("nft -f -", { stdin: lines.join("\n") });
    const { code } = await ping(), { stderr } = await patchbay("status", "n");
    expect({ rules, code, stderr }).toEqual({
      rules,
      code: isAccepted ? 0 : 1,
      stderr: isAccepted ? "" : told("inet other f"),
    });
  }

  await machine.sh("iptables -P FORWARD DROP; iptables -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT");
  expect(await patchbay("status", "n")).toMatchObject({ code: 0, stderr: told("ip filter FORWARD") });
  await machine.sh("iptables -N USER; iptables -I FORWARD -j USER; iptables -A USER -i br0 -s 10.9.0.0/24 -j ACCEPT");
  expect(await ping()).toMatchObject({ code: 0 });
  expect(await patchbay("status", "n")).toMatchObject({ code: 0, stderr: "" });
});

test("a route whose gateway nobody reaches: status, networks and plan say what add fails with", async () => {
  configure(bridge({ ...leased, routes: [{ dst: "198.51.100.0/24", gw: "10.8.0.1" }] }));
  await machine.container("web");
  const route = "198.51.100.0/24 via 10.8.0.1", reason = "network is unreachable";
  const refused = expect.stringContaining(`failed to add route '${route} dev eth0': ${reason}`);
  expect(await patchbay("add", "n", "web")).toMatchObject({ code: 1, stderr: refused });
  // In its own words, and once.
  const { code, stderr } = await patchbay("plan", "n");
  expect([code, stderr]).toEqual([1, refused]);
  expect(stderr.match(/cannot be added|failed to add/g)).toHaveLength(1);
  const said = expect.stringContaining(`bridge: "ipam.routes[0]" ${route} cannot be added: ${reason}`);
  expect(await patchbay("status", "n")).toMatchObject({ code: 1, stderr: said });
  expect(await patchbay("networks")).toMatchObject({ code: 1, stdout: expect.stringMatching(/^n .* broken /m) });
  expect(await patchbay("networks")).toMatchObject({ stdout: said });
});

test("static gives every container the same address: add, plan, status and networks name who has it", async () => {
  configure(bridge({ type: "static", addresses: [{ address: "10.9.0.5/24", gateway: "10.9.0.1" }] }));
  for (const name of ["web", "db"]) await machine.container(name);
  expect(await patchbay("add", "n", "web", "--container-id", "first")).toMatchObject({ code: 0, stderr: "" });
  const said = expect.stringContaining("10.9.0.5/24 is the address of eth0 of container first; every container");
  for (const words of [["plan", "n", "db"], ["status", "n"], ["add", "n", "db", "--container-id", "second"]]) {
    expect(await patchbay(...words)).toMatchObject({ code: 0, stderr: said });
  }
  expect(await patchbay("networks")).toMatchObject({ code: 0, stdout: said });
  expect((await patchbay("networks")).stdout).toMatch(/^n +1\.1\.0 +bridge\+static +ok +10\.9\.0\.5\/24 /m);
  await patchbay("del", "n", "db", "--container-id", "second");
  // Its own address is nobody else's.
  expect(await patchbay("plan", "n", "web", "--container-id", "first", "--ifname", "eth1")).toMatchObject({
    stderr: expect.not.stringContaining("is the address of"),
  });

  // Its path goes first, and the container later.
  const process = machine.start(["ip", "netns", "exec", "web", "cat"]);
  await untilTrue(() => machine.sh("ip netns pids web"), (pids) => pids !== "");
  await machine.sh("ip netns del web");
  expect(await patchbay("plan", "n", "db")).toMatchObject({ code: 0, stderr: said });
  await process.stdin.end();
  await process.exited;
  expect(await patchbay("plan", "n", "db")).toMatchObject({ code: 0, stderr: "" });
});

test("networks says that the host's part differs, once for all containers, and repair mends it", async () => {
  configure(bridge(leased));
  for (const name of ["web", "db"]) {
    await machine.container(name);
    expect(await patchbay("add", "n", name)).toMatchObject({ code: 0 });
  }
  expect(await patchbay("networks")).toMatchObject({ code: 0 });
  await machine.sh("sysctl -qw net.ipv4.ip_forward=0; ip address del 10.9.0.1/24 dev br0");
  const { code, stdout } = await patchbay("networks");
  expect([code, stdout]).toEqual([1, expect.stringMatching(/^n .* differs /m)]);
  expect(stdout.match(/^network n: .*'patchbay repair n' mends it$/gm)).toEqual(expect.arrayContaining([
    "network n: net.ipv4.ip_forward is not 1; 'patchbay repair n' mends it",
    "network n: gateway address 10.9.0.1/24 is missing on br0; 'patchbay repair n' mends it",
  ]));
  expect(stdout.match(/ip_forward/g)).toHaveLength(1);
  // Containers can be attached.
  expect(await patchbay("status", "n")).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("patchbay status: net.ipv4.ip_forward is not 1; 'patchbay repair n' mends it\n"),
  });
  // Another namespace of the host is not the one to judge.
  await machine.container("elsewhere");
  expect(await machine.run(["ip", "netns", "exec", "elsewhere", PATCHBAY, "networks", "--config-dir", directory]))
    .toMatchObject({ code: 0, stdout: expect.stringMatching(/^n .* ok /m) });
  await patchbay("repair", "n");
  expect(await patchbay("networks")).toMatchObject({ code: 0 });
  // Nobody needs what those had who are gone.
  await machine.sh("ip netns del web; ip netns del db; ip link del br0");
  expect(await patchbay("networks")).toMatchObject({ code: 0, stdout: expect.stringMatching(/^n .* ok /m) });
});

test("a masquerade without a way out, and a key of another plugin: plan and status warn, add works", async () => {
  const misled = { ...bridge(leased), isDefaultGateway: false, ipMasq: true, ingressPolicy: "isolated" };
  configure(misled, { type: "tuning" });
  await machine.container("web");
  const planned: { warnings: string[] }[] = JSON.parse((await patchbay("plan", "n", "--json")).stdout);
  expect(planned.map(({ warnings }) => warnings.some((text) => text.includes("ipMasq")))).toEqual([true, false]);
  for (const words of [["plan", "n"], ["status", "n"]]) {
    const { code, stderr } = await patchbay(...words);
    expect(code).toBe(0);
    expect(stderr).toContain('bridge: "ipMasq" has nothing to do: no route of IPv4 leads out of the container');
    expect(stderr).toContain('"plugins[0].ingressPolicy" is an option of firewall, and ignored here');
  }
  expect(await patchbay("add", "n", "web")).toMatchObject({ code: 0 });
});

test("a masquerade on a bridge without the gateway's address: nothing gets out, and plan and status say why", async () => {
  configure({ type: "bridge", bridge: "br0", ipMasq: true, ipam: { ...leased, routes: [{ dst: "0.0.0.0/0" }] } });
  await machine.sh(`${FAR}; sysctl -qw net.ipv4.ip_forward=1`);
  const web = await machine.container("web");
  expect(await patchbay("add", "n", "web")).toMatchObject({ code: 0 });
  const ping = () => machine.run(["ping", "-c1", "-W1", "10.1.0.2"], { in: web });
  const said = expect.stringContaining('"ipMasq" has nothing to do while the host has no address in 10.9.0.0/24');
  for (const words of [["plan", "n"], ["status", "n"]]) {
    expect(await patchbay(...words)).toMatchObject({ code: 0, stderr: said });
  }
  expect((await ping()).code).toBe(1);
  await machine.sh("ip address add 10.9.0.1/24 dev br0");
  expect(await untilTrue(ping, ({ code }) => code === 0)).toMatchObject({ code: 0 });
  for (const words of [["plan", "n"], ["status", "n"]]) {
    expect(await patchbay(...words)).toMatchObject({ code: 0, stderr: "" });
  }
});
