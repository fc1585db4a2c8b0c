/** What commands on attachments print for people, in short, and for programs, as JSON (docs/json.md). */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { version } from "../../../package.json";
import { commandsOn } from "../../support/commands.ts";
import { untilGone } from "../../support/gone.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { textTable } from "../../../src/frontends/cli/text-table.ts";
import { startResident } from "../../support/resident.ts";

let machine: Machine;
const directory = mkdtempSync(`${tmpdir()}/printed-`);
afterAll(() => rmSync(directory, { recursive: true }));

const ranges = [[{ subnet: "10.30.0.0/24" }], [{ subnet: "fd30::/64" }]];
const bridge = { type: "bridge", bridge: "br-n", isGateway: true, ipam: { type: "host-local", ranges } };
const configure = (name: string, plugins: unknown[]) =>
  writeFileSync(`${directory}/${name}.conflist`, JSON.stringify({ cniVersion: "1.1.0", name, plugins }));
const { patchbay, must, json } = commandsOn(() => machine, () => directory);

const long = "0123456789ab".padEnd(64, "c");
beforeAll(async () => {
  machine = await openMachine();
  configure("n", [bridge]);
  configure("m", [{ type: "loopback" }]);
  for (const name of ["c1", "c2", "c10"]) await machine.container(name);
  await must("add", "n", "c1", "--container-id", "first");
  await must("add", "n", "c2", "--container-id", long);
  await must("add", "n", "c10", "--container-id", "tenth");
  await must("add", "m", "c1", "--container-id", "first", "-i", "lo");
});
afterAll(() => machine[Symbol.asyncDispose]());
const lines = async (...args: string[]) => (await patchbay(args)).stdout.split("\n").slice(0, -1);

test("inspect --brief: a line each, differences first, short IDs, aligned", async () => {
  expect(await lines("inspect", "--brief")).toEqual([
    "4 attachments: 4 ok",
    "",
    "container     name  network  interface  addresses                ports  state",
    "first         c1    m        lo         -                        -      ok",
    "first         c1    n        eth0       10.30.0.2/24 fd30::2/64  -      ok",
    "0123456789ab  c2    n        eth0       10.30.0.3/24 fd30::3/64  -      ok",
    "tenth         c10   n        eth0       10.30.0.4/24 fd30::4/64  -      ok",
  ]);
  await machine.sh("ip -n c10 link set eth0 down; ip netns del c2");
  await untilGone(machine);
  expect(await lines("inspect", "--brief")).toEqual([
    "4 attachments: 1 differs, 1 gone, 2 ok",
    "",
    "container     name  network  interface  addresses                ports  state",
    "tenth         c10   n        eth0       10.30.0.4/24 fd30::4/64  -      differs: addressing, carrier",
    "0123456789ab  c2    n        eth0       10.30.0.3/24 fd30::3/64  -      gone",
    "first         c1    m        lo         -                        -      ok",
    "first         c1    n        eth0       10.30.0.2/24 fd30::2/64  -      ok",
  ]);
  expect((await patchbay(["inspect", "--brief"])).code).toBe(1);
  // The whole report is in the same order, and says nothing more of what is as it was made.
  expect((await lines("inspect")).filter((line) => line.startsWith("network ")).map((line) => line.slice(8, 32)))
    .toEqual(["n, container tenth, eth0", "n, container 0123456789a"]);
  expect(await patchbay(["inspect", "--brief", "m", "c1"])).toEqual({
    code: 0,
    stdout: "1 attachment: 1 ok\n\ncontainer  name  network  interface  addresses  ports  state\n" +
      "first      c1    m        lo         -          -      ok\n",
    stderr: "",
  });
  expect((await patchbay(["inspect", "--brief", "--json"])).code).toBe(2);
});

test("inspect and repair have the plugins in the order of the network, ipam list the namespaces", async () => {
  expect((await lines("ipam", "list", "n")).slice(0, 2)).toEqual([
    `n  10.30.0.2  first${" ".repeat(59)}  c1   eth0`,
    `n  10.30.0.3  ${long}  c2   eth0`,
  ]);
  const order = ["bridge", "tuning", "portmap", "firewall"];
  configure("chain", [
    { ...bridge, ipam: { type: "host-local", ranges: [[{ subnet: "10.31.0.0/24" }]] }, bridge: "br-c" },
    { type: "tuning", sysctl: { "net.ipv4.conf.IFNAME.log_martians": "1" } },
    { type: "portmap", backend: "nftables", capabilities: { portMappings: true } },
    { type: "firewall", backend: "nftables" },
  ]);
  await machine.container("ordered");
  await must("add", "chain", "ordered", "--ports", "8080:80");
  for (const command of ["inspect", "repair"]) {
    const [shown] = await json(command, "chain");
    expect(shown.plugins.map(({ plugin }: { plugin: string }) => plugin)).toEqual(order);
  }
  await must("del", "chain", "ordered");
});

test("a short ID names the container", async () => {
  expect(await json("inspect", "n", "0123456789ab")).toMatchObject([{ containerId: long, state: "gone" }]);
  expect((await patchbay(["inspect", "n", "0123456789ac"])).stderr).toContain("is not attached to network");
});

test("a table is as wide as what is shown", () => {
  const table = textTable([["a\x1b[1m", "x"], ["b\tc\nd", "y"], ["much longer than these", "z"]]).split("\n");
  expect(table).toHaveLength(4);
  const [first, second, third] = table.map((line) => line.search(/[xyz]$/));
  expect([first, second]).toEqual([third!, third!]);
});

test("control characters of names are shown, and JSON says the same as before", async () => {
  const odd = "x\x1b]0;own\x07\x9b31m\x7f\r", shown = "x\\u001b]0;own\\u0007\\u009b31m\\u007f\\u000d";
  const configs = `${directory}/odd`;
  mkdirSync(configs);
  const write = (file: string, name: string, plugin: object) =>
    writeFileSync(`${configs}/${file}`, JSON.stringify({ cniVersion: "1.1.0", name, plugins: [plugin] }));
  write("name.conflist", odd, { type: "loopback", [odd]: 1 });
  write("type.conflist", "type", { type: odd });
  const at = (...args: string[]) => machine.run([PATCHBAY, ...args], { env: { NETCONFPATH: configs } });
  await machine.container("odd");
  await must("add", "n", "odd", "--container-id", "odd");
  // What a container may do to its link.
  await machine.sh(`ip -n odd link set eth0 down; ip -n odd link set eth0 name "$(printf 'x\\033[1m')"`);
  const commands = [
    [odd],
    ["add", odd, "odd"],
    ["add", "type", "odd"],
    ["add", "type", `/run/${odd}`],
    ["plan", odd],
    ["status", odd],
    ["gc", odd],
    ["del", odd, odd],
    ["lint"],
    ["ls"],
    ["ipam", "list", odd],
    ["--", odd],
    ["inspect", odd],
    ["inspect", "n", "odd"],
    ["repair", "n", "odd"],
  ];
  for (const words of commands) {
    const { stdout, stderr } = await at(...words);
    expect([words, (stdout + stderr).match(/[^\n\x20-\x7e\xa0-\uffff]/g)]).toEqual([words, null]);
  }
  expect((await at("ls")).stdout).toContain(`${shown}  `);
  expect((await at("plan", odd)).stderr).toContain(shown);
  expect(JSON.parse((await at("ls", "--json")).stdout)[0].name).toBe(odd);
  await must("del", "n", "odd");
});

test("check --json", async () => {
  const key = { network: "n", ifName: "eth0", netnsPath: expect.stringContaining("/c1"), containerId: "first" };
  expect(await json("check", "n", "first")).toEqual({ ...key, problems: [] });
  const tenth = { ...key, containerId: "tenth", netnsPath: expect.stringContaining("/c10") };
  expect(await json("check", "n", "tenth")).toEqual({
    ...tenth,
    problems: ["link eth0 in the container is down", expect.stringMatching(/^link veth\w+ is down$/)],
  });
  expect(await json("check", "n", "tent")).toMatchObject({
    problems: [expect.stringContaining('"tent" is not attached to network "n"')],
  });
});

test("gc --json", async () => {
  const attachment = (network: string, containerId: string, ifName: string, isGone = false) => ({
    network,
    containerId,
    ifName,
    netnsPath: expect.any(String),
    isGone,
    isCached: true,
  });
  const gone = [attachment("n", long, "eth0", true)];
  const all = [
    attachment("m", "first", "lo"),
    ...gone,
    attachment("n", "first", "eth0"),
    attachment("n", "tenth", "eth0"),
  ];
  expect(await json("gc")).toEqual(all);
  expect(await json("gc", "--gone", "--dry-run")).toEqual(gone);
  expect(await json("gc", "n", "--gone")).toEqual(gone);
  expect(await json("gc", "--gone")).toEqual([]);
  expect(await patchbay(["gc", "nothing", "--gone", "--json"])).toMatchObject({ code: 1, stdout: "" });
  expect(await patchbay(["gc", "--all", "--json"])).toMatchObject({ code: 2, stdout: "" });
});

test("status --json and version --json", async () => {
  const pools = [{ subnets: ["10.30.0.0/24"], leased: 2 }, { subnets: ["fd30::/64"], leased: 2 }];
  expect(await json("status", "n")).toMatchObject({ network: "n", problems: [], pools });
  configure("broken", [{ ...bridge, type: "macvlan", master: "none" }]);
  expect(await json("status", "broken")).toMatchObject({
    problems: [expect.stringContaining('master "none"')],
    pools: [{ free: 253 }, {}],
  });
  configure("broken", [{ type: "brige" }]);
  expect(await json("status", "broken")).toEqual({
    network: "broken",
    state: "broken",
    problems: [expect.stringContaining("brige")],
    pools: [],
    differences: [],
    warnings: [],
  });
  expect(await patchbay(["status", "broken", "--json"])).toMatchObject({ code: 1 });
  expect(await json("version")).toEqual({
    patchbay: version,
    cni: expect.arrayContaining(["1.1.0"]),
    bun: Bun.version,
  });
});

test.each(["by itself", "through a resident"])("on a terminal, add ends its line: %s", async (how) => {
  const resident = how === "through a resident" ? await startResident(machine, 1) : undefined;
  if (resident === undefined) await machine.container("t1");
  expect(await must("add", "n", "t1")).toEndWith("}");
  await must("del", "n", "t1");
  const { stdout } = await machine.run(["script", "-qec", `${PATCHBAY} add n t1`, "/dev/null"], {
    env: { NETCONFPATH: directory },
  });
  expect(stdout).toEndWith("\r\n}\r\n");
  await must("del", "n", "t1");
  if (resident === undefined) return;
  expect((await json("serve", "--status")).served).toBeGreaterThanOrEqual(4);
  resident.kill();
  await resident.exited;
});

test("gc says that nothing is attached, or would be deleted", async () => {
  for (const name of ["f1", "f2"]) configure(name, [{ type: "loopback" }]);
  for (const name of ["n", "m", "f1", "f2"]) await must("gc", name, "--all");
  const outcome = (stdout: string) => ({ code: 0, stdout, stderr: "" });
  expect(await patchbay(["gc"])).toEqual(outcome("nothing is attached\n"));
  expect(await patchbay(["gc", "n"])).toEqual(outcome("nothing is attached to network n\n"));
  expect(await patchbay(["gc", "n", "--all", "--dry-run"])).toEqual(outcome("nothing would be deleted\n"));
  expect(await patchbay(["gc", "--gone", "--dry-run"])).toEqual(outcome("nothing would be deleted\n"));
  expect(await patchbay(["gc", "--gone"])).toEqual(outcome(""));
});

test.each([["a ledger", "n/first@eth0@bridge"], ["all ledgers", "n"]])(
  "%s that others can write to is said once, with what to do, and is not taken for another program's",
  async (_what, path) => {
    await must("add", "n", "c1", "--container-id", "first");
    expect(await must("inspect", "n")).toContain("\n  bridge\n");
    await machine.sh(`chmod o+w /run/patchbay/${path}`);
    for (const command of ["inspect", "repair"]) {
      const { stdout, stderr } = await patchbay([command, "n"]);
      expect(stdout).toContain(
        "\n  bridge (its ledger cannot be read or trusted; restated from the configuration)\n",
      );
      const told = stderr.split("\n").filter((line) => line.includes("is not trusted"));
      expect(told).toEqual([expect.stringContaining(`chmod o-w /run/patchbay/${path}`)]);
    }
    const all = await patchbay(["inspect", "--brief"]);
    expect([all.code, all.stderr.match(/is not trusted/g)?.length]).toEqual([1, 1]);
    expect((await json("inspect", "n"))[0].plugins).toMatchObject([{ plugin: "bridge", madeBy: "unreadable" }]);
    await machine.sh(`chmod o-w /run/patchbay/${path}`);
    await must("del", "n", "c1");
  },
);
