/** `patchbay networks`, namespaces given by name, and the explanation when root is missing. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { lacks } from "../../support/kernel-features.ts";
import { type Machine, openMachine, type Outcome, type RunOptions } from "../../support/machine.ts";
import { PATCHBAY, patchbayPlugins } from "../../support/plugins.ts";

let machine: Machine;
let directory: string;
beforeAll(async () => {
  machine = await openMachine();
  directory = mkdtempSync(`${tmpdir()}/networks-`);
});
afterAll(async () => {
  rmSync(directory, { recursive: true });
  await machine[Symbol.asyncDispose]();
});

let configs: string;
/** A new configuration directory with these files. */
const configure = (files: Record<string, unknown>) => {
  configs = mkdtempSync(`${directory}/configs-`);
  for (const [name, conf] of Object.entries(files)) {
    writeFileSync(`${configs}/${name}`, typeof conf === "string" ? conf : JSON.stringify(conf));
  }
};
const patchbay = (
  args: string[],
  env: Record<string, string> = {},
  before: string[] = [],
  options: RunOptions = {},
) => machine.run([...before, PATCHBAY, ...args], { ...options, env: { NETCONFPATH: configs, ...env } });
const must = async (...args: string[]): Promise<Outcome> => {
  const outcome = await patchbay(args);
  expect(outcome).toMatchObject({ code: 0 });
  return outcome;
};

const bridge = (ranges: unknown) => ({ type: "bridge", bridge: "br0", ipam: { type: "host-local", ranges } });
const list = (name: string, ...plugins: unknown[]) => ({ cniVersion: "1.1.0", name, plugins });

describe("networks", () => {
  test("a device that the host has not is missing, unless a container has it", async () => {
    configure({ "dev.conflist": list("dev", { type: "host-device", device: "spare" }) });
    const missing =
      'network dev: failed to find host device: failed to find physical interface; no link is called "spare"';
    expect(await patchbay(["ls"])).toMatchObject({ code: 1, stdout: expect.stringContaining(missing) });
    expect(await patchbay(["status"])).toMatchObject({ code: 1, stderr: expect.stringContaining(missing) });
    await machine.sh("ip link add spare type veth peer name other");
    const container = await machine.container();
    await must("ls");
    await must("add", "dev", container.netnsPath);
    expect(await machine.sh("ip -br link")).not.toContain("spare");
    await must("ls");
    await must("del", "dev", container.netnsPath);
    await machine.sh("ip link del spare");
    expect(await patchbay(["ls"])).toMatchObject({ code: 1 });
  });

  test("name, version, plugins, subnets, leases and file of each", async () => {
    configure({
      "10-one.conflist": list("one", bridge([[{ subnet: "10.70.0.0/29" }], [{ subnet: "fd70::/64" }]]), {
        type: "tuning",
      }),
      "20-two.conf": { cniVersion: "1.0.0", name: "two", type: "loopback" },
    });
    const container = await machine.container();
    await must("add", "one", container.netnsPath);
    const { stdout } = await must("networks");
    expect(stdout).toBe(
      "network  version  plugins                    state  subnets       leased  free   file\n" +
        `one      1.1.0    bridge+host-local, tuning  ok     10.70.0.0/29  1       4      ${configs}/10-one.conflist\n` +
        "                                                    fd70::/64     1       ~2^64\n" +
        `two      1.0.0    loopback                   ok                                  ${configs}/20-two.conf\n`,
    );
    expect(await must("ls")).toMatchObject({ stdout });
    const json = (await must("networks", "--json")).stdout;
    // JSON.parse() would lose their last digits.
    expect(json.match(/\d{10,}/g)).toEqual([`${2n ** 64n - 3n}`, `${2n ** 64n - 2n}`]);
    expect(JSON.parse(json)[0]).toEqual({
      file: `${configs}/10-one.conflist`,
      name: "one",
      cniVersion: "1.1.0",
      plugins: ["bridge+host-local", "tuning"],
      pools: [
        { ranges: "10.70.0.1-10.70.0.6", subnets: ["10.70.0.0/29"], leased: 1, free: 4, capacity: 5 },
        {
          ranges: "fd70::1-fd70::ffff:ffff:ffff:ffff",
          subnets: ["fd70::/64"],
          leased: 1,
          free: expect.any(Number),
          capacity: expect.any(Number),
        },
      ],
      state: "ok",
      fixedAddresses: [],
      problems: [],
      differences: [],
      warnings: [],
    });
    await must("del", "one", container.netnsPath);
  });

  test("what is broken or missing", async () => {
    configure({
      "10.conflist": list("one", { type: "calico" }, { type: "ipvlan", master: "lo" }, { type: "brige" }),
      "20.conflist": '{\n  "name": "broken"\n  "plugins": []\n}',
      "30.conflist": list("hidden", { type: "loopback" }),
    });
    const { code, stdout } = await patchbay(["networks"]);
    expect(code).toBe(1);
    expect(stdout.split("\n").slice(4, -1)).toEqual([
      'network one: no paths provided; "calico" is not part of patchbay',
      "  --plugin-path or $CNI_PATH names the directories of other plugins",
      ...lacks("ipvlan links") ? ["network one: this kernel has no ipvlan links"] : [],
      'network one: no paths provided; "brige" is not part of patchbay',
      '  did you mean "bridge"? --plugin-path or $CNI_PATH names the directories of other plugins',
      `${configs}/20.conflist: error parsing configuration list: "," or "}" expected, found "plugins" ` +
      "(line 3, column 3); networks in files after it are not found",
      `network hidden: not found by its name: ${configs}/20.conflist is in the way`,
    ]);
    const [one, broken, hidden] = JSON.parse((await patchbay(["networks", "--json"])).stdout);
    expect([one.name, broken.name, hidden.name]).toEqual(["one", undefined, "hidden"]);
  });

  test("plugins that are not ours are looked up in CNI_PATH, and not run", async () => {
    const bin = mkdtempSync(`${directory}/bin-`);
    symlinkSync(`${patchbayPlugins()}/loopback`, `${bin}/loopback`);
    writeFileSync(`${bin}/calico`, `#!/bin/sh\ntouch ${bin}/started\n`, { mode: 0o755 });
    configure({ "1.conflist": list("n", { type: "loopback" }, { type: "calico" }) });
    expect(await patchbay(["networks"], { CNI_PATH: bin })).toMatchObject({ code: 0, stderr: "" });
    expect(await Bun.file(`${bin}/started`).exists()).toBe(false);
    configure({ "1.conflist": list("n", { type: "portmap" }) });
    const { code, stdout } = await patchbay(["networks"], { CNI_PATH: bin });
    expect({ code, stdout }).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('failed to find plugin "portmap"'),
    });
  });

  test("one of several", async () => {
    const ranges = (subnet: string) => bridge([[{ subnet }]]);
    configure({ "1.conflist": list("n", ranges("10.71.0.0/24")), "2.conflist": list("m", ranges("10.72.0.0/24")) });
    const { stdout } = await must("ls", "m");
    expect([stdout.includes("10.72.0.0/24"), stdout.includes("10.71.0.0/24")]).toEqual([true, false]);
    expect(await patchbay(["ls", "mm"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('did you mean "m"?'),
    });
  });

  test("an empty directory", async () => {
    configure({});
    expect(await must("networks")).toMatchObject({ stdout: `no networks in ${configs}\n` });
  });

  test("files that nobody reads, whose endings look like a network's", async () => {
    const network = list("n", { type: "loopback" });
    const misnamed = {
      "60-x.conflst": ".conflist",
      "61-x.confllist": ".conflist",
      "62.CNF": ".conf",
      "63.jsn": ".json",
    };
    const others = ["x.json.bak", "x.conf~", "x.conf-", "#x.conf#", "x.conf1", "x.conf.off", "README", ".x.con"];
    const files = Object.fromEntries([...Object.keys(misnamed), ...others].map((file) => [file, network]));
    const remarks = () =>
      Object.entries(misnamed)
        .map(([file, meant]) => `${configs}/${file} is not read; did you mean "${meant}" at its end?\n`).join("");
    configure(files);
    expect(await must("networks")).toMatchObject({ stdout: `no networks in ${configs}\n${remarks()}` });
    configure({ "1.conflist": network, ...files });
    expect((await must("ls")).stdout.split("\n").slice(2).join("\n")).toBe(remarks());
    expect((await must("ls", "n")).stdout).not.toContain("is not read");
    expect(JSON.parse((await must("ls", "--json")).stdout)).toHaveLength(1);
  });
});

describe("a bare name of a namespace", () => {
  beforeAll(() => configure({ "1.conflist": list("n", bridge([[{ subnet: "10.71.0.0/24" }]])) }));

  test("means a namespace of ip netns, even when it is gone", async () => {
    const container = await machine.container("web");
    await must("add", "n", "web");
    expect(await machine.sh("ip -o address show dev eth0", { in: container })).toContain("10.71.0.2/24");
    // As if its path had been given.
    await must("check", "n", "/run/netns/web");
    await machine.removeContainer(container);
    await must("del", "n", "web");
    expect(await must("ipam", "list", "n")).toMatchObject({ stdout: "" });
  });

  test("means a path when there is a namespace at it", async () => {
    const container = await machine.container("here");
    mkdirSync(`${directory}/cwd`);
    const at = (command: string) => machine.sh(`cd /run/netns; NETCONFPATH=${configs} ${PATCHBAY} ${command} n here`);
    await at("add");
    await must("del", "n", "/run/netns/here");
    await at("add");
    await machine.removeContainer(container);
    await at("del");
    expect(await must("ipam", "list", "n")).toMatchObject({ stdout: "" });
  });

  test("means the path by which something was attached, even when the namespace is gone", async () => {
    await machine.sh(`mkdir /run/mine; touch /run/mine/own; unshare --net=/run/mine/own true`);
    const at = (command: string) => machine.sh(`cd /run/mine; NETCONFPATH=${configs} ${PATCHBAY} ${command} n own`);
    await at("add");
    await machine.sh("umount /run/mine/own; rm /run/mine/own");
    await at("del");
    expect(await must("ipam", "list", "n")).toMatchObject({ stdout: "" });
  });
});

describe("without root", () => {
  beforeAll(() => configure({ "1.conflist": list("n", bridge([[{ subnet: "10.72.0.0/24" }]])) }));
  const powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
  // The checkout may be where only root gets to.
  const program = "/run/bin/patchbay";
  beforeAll(() => machine.sh(`mkdir -p /run/bin; touch ${program}; mount --bind ${PATCHBAY} ${program}`));
  const callers: [as: string[], uid: number, lacks: string][] = [
    [[...powerless, PATCHBAY], 0, "CAP_NET_ADMIN and CAP_SYS_ADMIN"],
    [["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", PATCHBAY], 0, "CAP_SYS_ADMIN"],
    [["setpriv", "--reuid=1000", "--clear-groups", program], 1000, "CAP_NET_ADMIN and CAP_SYS_ADMIN"],
  ];
  const commands =
    "add n /x,del n /x,check n /x,gc n --gone,plan n,status n,inspect,repair,networks,ls,dhcp,serve,hook add";

  test.each(commands.split(","))("%s does nothing, and says so in one line", async (words) => {
    for (const [as, uid, lacks] of callers) {
      const outcome = await machine.run([...as, ...words.split(" ")], { env: { NETCONFPATH: configs } });
      const missing = `this needs root, or a user namespace of its own: uid ${uid} has not ${lacks}`;
      expect([as, outcome]).toEqual([as, {
        code: 1,
        stdout: "",
        stderr: `patchbay ${words.split(" ")[0]}: ${missing}\n`,
      }]);
    }
  });

  test("commands that only read files work, and all for the owner of the user namespace", async () => {
    for (const args of [["lint"], ["version"], ["ipam", "list"], ["help"]]) {
      expect(await patchbay(args, {}, powerless)).toMatchObject({ code: 0, stderr: "" });
    }
    const inside = ["unshare", "--user", "--map-root-user", "--net", "--mount"];
    expect(await patchbay(["plan", "n"], {}, inside)).toMatchObject({
      stderr: expect.not.stringContaining("needs root"),
    });
  });
});
