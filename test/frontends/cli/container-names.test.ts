/**
 * Commands on an attachment that is there take its container by each of its names: the ID, the namespace's path, the name
 * of `ip netns`, and what its engine calls it. Each says when there is no such attachment.
 *
 * Longer than 300 lines: the names are the same for all commands.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { networkFiles } from "../../support/commands.ts";
import { type Container, type Machine, openMachine, type Outcome } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";

let machine: Machine, web: Container, other: Container;
beforeAll(async () => {
  machine = await openMachine();
  configure("n", [{ type: "bridge", bridge: "br0", ipam: { type: "host-local", subnet: "10.9.0.0/24" } }], "1.0.0");
  web = await machine.container("web");
  other = await machine.container("other");
});
afterAll(() => machine[Symbol.asyncDispose]());

const { directory, configure } = networkFiles();

const patchbay = (...args: string[]): Promise<Outcome> =>
  machine.run([PATCHBAY, ...args], { env: { NETCONFPATH: directory } });
/** As Kubernetes' engines call it. */
const POD = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=till";
const addPod = (...args: string[]): Promise<Outcome> =>
  machine.run([PATCHBAY, "add", "n", ...args], { env: { NETCONFPATH: directory, CNI_ARGS: POD } });
const hasLink = async (container: Container) =>
  (await machine.run(["ip", "link", "show", "eth0"], { in: container })).code === 0;
const ok = { code: 0, stderr: "" };

describe.each([["of its own", "box-1"], ["derived from its namespace", undefined]])("an ID %s", (_, id) => {
  const names: [string, () => string | Promise<string>][] = [
    ["the name of ip netns", () => "web"],
    ["the path", () => web.netnsPath],
    ["the path by /run", () => web.netnsPath.replace("/var/run/", "/run/")],
    ["the pod", () => "till"],
    ["the pod with its namespace", () => "shop/till"],
    ["the ID", async () => JSON.parse((await patchbay("inspect", "n", "web", "--json")).stdout)[0].containerId],
  ];
  test.each(names)("%s names the container", async (_, nameOf) => {
    const chosen = id === undefined ? [] : ["--container-id", id];
    await addPod(web.netnsPath, ...chosen);
    await patchbay("add", "n", other.netnsPath, "--container-id", "box-2");
    const name = await nameOf();
    expect(await patchbay("check", "n", name)).toEqual({ ...ok, stdout: "" });
    for (const command of ["inspect", "repair"]) {
      const { stdout, ...rest } = await patchbay(command, "n", name, "--json");
      expect(rest).toEqual(ok);
      expect(JSON.parse(stdout)).toMatchObject([{ netnsPath: web.netnsPath, state: "ok" }]);
    }
    const alone = await patchbay("inspect", name);
    expect([alone.code, alone.stdout]).toEqual([0, expect.stringMatching(/^\S+ +shop\/till +n .* ok\n\n/m)]);
    expect(await patchbay("gc", "n", "--valid", `${name}/eth0`, "--dry-run")).toEqual({
      ...ok,
      stdout: "would delete eth0 of container box-2 from network n\n",
    });
    expect(await patchbay("del", "n", name)).toEqual({ ...ok, stdout: "" });
    expect([await hasLink(web), await hasLink(other)]).toEqual([false, true]);
  });
});

test("root of another user namespace is told what it may not do", async () => {
  await patchbay("add", "n", web.netnsPath, "--container-id", "box-1");
  const words = ["unshare", "--user", "--map-root-user", PATCHBAY, "check", "n", "web"];
  expect(await machine.run(words, { env: { NETCONFPATH: directory } })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      `setns ${web.netnsPath}: operation not permitted; entering a network namespace needs CAP_SYS_ADMIN in the user ` +
        "namespace that owns it, which this process has not",
    ),
  });
});

describe("a container that is not attached", () => {
  const text = '"wep" is not attached to network "n"; no ledger and no cached result names it; did you mean "web"?\n';

  test("as a pod it is not meant where a namespace has the name", async () => {
    await addPod(web.netnsPath, "--container-id", "box-1");
    const till = await machine.container("till");
    expect(await patchbay("del", "n", "till")).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("not attached"),
    });
    expect(await hasLink(web)).toBe(true);
    await machine.removeContainer(till);
  });

  test.each(["check", "inspect", "repair", "del"])("%s says so", async (command) => {
    await patchbay("add", "n", web.netnsPath, "--container-id", "box-1");
    expect(await patchbay(command, "n", "wep")).toEqual({
      code: 1,
      stdout: "",
      stderr: `patchbay ${command}: ${text}`,
    });
    expect(await hasLink(web)).toBe(true);
  });

  test("as another interface it is not attached", async () => {
    const { code, stderr } = await patchbay("check", "n", "web", "--ifname", "eth7");
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'patchbay check: "web" is not attached to network "n" as eth7, but as eth0\n',
    });
  });
});

test("a name that two containers have deletes neither; --container-id chooses", async () => {
  for (const name of ["web", "other"]) await patchbay("del", "n", name);
  await patchbay("add", "n", web.netnsPath, "--container-id", "box-1");
  await patchbay("add", "n", other.netnsPath, "--container-id", "web");
  expect(await patchbay("del", "n", "web")).toEqual({
    code: 1,
    stdout: "",
    stderr: 'patchbay del: "web" is a name of the containers box-1 and web; choose one with --container-id\n',
  });
  expect([await hasLink(web), await hasLink(other)]).toEqual([true, true]);
  expect(await patchbay("del", "n", "web", "--container-id", "box-1")).toEqual({ ...ok, stdout: "" });
  expect([await hasLink(web), await hasLink(other)]).toEqual([false, true]);
});

test.each(["inspect", "repair"])(
  "%s takes a name for the network's, and says how to mean the container",
  async (command) => {
    await patchbay("gc", "n", "--all");
    for (const network of ["web", "side"]) {
      configure(network, [{ type: "ptp", ipam: { type: "host-local", subnet: "10.8.0.0/24" } }], "1.0.0");
    }
    await patchbay("add", "side", "web");
    const calls = (...networks: string[]) => networks.map((one) => `'patchbay ${command} ${one} web'`).join(" or ");
    expect(await patchbay(command, "web")).toEqual({
      code: 1,
      stdout: "",
      stderr: `patchbay ${command}: nothing is attached to network "web"; no ledger and no cached result names it; ` +
        `for the container say ${calls("side")}\n`,
    });
    await patchbay("add", "web", "other");
    for (const [others, networks] of [[[], ["side"]], [["n"], ["n", "side"]]] as const) {
      for (const network of others) await patchbay("add", network, "web", "-i", "net1");
      expect(await patchbay(command, "web")).toEqual({
        code: 0,
        stdout: expect.stringMatching(/ other +web /),
        stderr: `"web" is taken for the network; for the container say ${calls(...networks)}\n`,
      });
    }
    await patchbay("del", "n", "web", "-i", "net1");
    await patchbay("del", "side", "web");
    await patchbay("add", "web", "web");
    expect(await patchbay(command, "web")).toEqual({ ...ok, stdout: expect.stringMatching(/ web +web [^]* ok\n/) });
    for (const name of ["web", "other"]) await patchbay("del", "web", name);
    await machine.sh(`rm ${directory}/web.conflist ${directory}/side.conflist`);
  },
);

describe("the beginning of an ID", () => {
  const start = `abcd${"0".repeat(12)}`, one = `${start}1${"0".repeat(47)}`, another = `${start}2${"0".repeat(47)}`;
  const chosen = "beefbeefbeef-of-the-web";
  const lease = (id: string) => machine.sh(`grep -l ${id} /var/lib/cni/networks/n/10.* || true`);
  beforeEach(async () => {
    await patchbay("gc", "n", "--all");
    await patchbay("add", "n", web.netnsPath, "--container-id", one);
    await patchbay("add", "n", other.netnsPath, "--container-id", another);
  });
  afterEach(() => patchbay("gc", "n", "--all"));

  test("names the container for every command", async () => {
    await patchbay("del", "n", other.netnsPath, "--container-id", another);
    expect(await patchbay("check", "n", "abcd")).toEqual({ ...ok, stdout: "" });
    for (const command of ["inspect", "repair"]) {
      const { stdout, ...rest } = await patchbay(command, "n", "abcd", "--json");
      expect(rest).toEqual(ok);
      expect(JSON.parse(stdout)).toMatchObject([{ containerId: one, state: "ok" }]);
    }
    await patchbay("add", "n", other.netnsPath, "--container-id", another);
    expect(await patchbay("gc", "n", "--valid", `${start}1/eth0`, "--dry-run")).toEqual({
      ...ok,
      stdout: `would delete eth0 of container ${another} from network n\n`,
    });
    const stderr = `patchbay del: ${start}1 is container ${one}\n`;
    expect(await patchbay("del", "n", `${start}1`)).toEqual({ code: 0, stdout: "", stderr });
    expect([await hasLink(web), await hasLink(other)]).toEqual([false, true]);
  });

  test("that is a UUID, as Nomad's, names the container, too: the eight digits that Nomad shows, and more", async () => {
    const uuid = "4f1a9c07-52d8-4b1e-9c3a-0d6e5f7a8b91", later = "4f1a9c07-52d8-4b1e-9c3a-0d6e5f7a8b92";
    await patchbay("del", "n", "web");
    await patchbay("add", "n", "web", "--container-id", uuid);
    const none = { code: 1, stdout: "" };
    for (const start of ["4f1a", "4f1a9c07", "4f1a9c07-52d8-4b"]) {
      expect(await patchbay("check", "n", start)).toEqual({ ...ok, stdout: "" });
    }
    expect(await patchbay("del", "n", "4f1a9c07-52d")).toEqual({
      ...none,
      stderr: expect.stringContaining(`${uuid} begins so: write at least 12 digits of it`),
    });
    await patchbay("del", "n", "other");
    await patchbay("add", "n", "other", "--container-id", later);
    expect(await patchbay("del", "n", "4f1a9c07-52d8")).toEqual({
      ...none,
      stderr: expect.stringContaining(`begins the IDs of several containers: ${uuid}, ${later}`),
    });
    await patchbay("del", "n", later);
    expect(await patchbay("del", "n", "4f1a9c07-52d8")).toMatchObject({ code: 0 });
    expect([await hasLink(web), await hasLink(other)]).toEqual([false, false]);
  });

  test("that is also a pod's name takes neither away; a whole ID is its container's", async () => {
    const call = (name: string, ...words: string[]) =>
      machine.run([PATCHBAY, "add", "n", ...words], {
        env: { NETCONFPATH: directory, CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name}` },
      });
    for (const name of [`${start}1`, one]) {
      await patchbay("del", "n", other.netnsPath, "--container-id", another);
      expect(await call(name, other.netnsPath, "--container-id", another)).toMatchObject({ code: 0 });
      const { code, stderr } = await patchbay("del", "n", name);
      if (name !== one) {
        expect([code, stderr]).toEqual([1, expect.stringContaining(`is a name of container ${another}, and begins`)]);
      }
      expect([await hasLink(web), await hasLink(other)]).toEqual([name !== one, true]);
    }
  });

  test.each(["check", "inspect", "repair"])("%s says when it is too short", async (command) => {
    await patchbay("del", "n", other.netnsPath, "--container-id", another);
    expect(await patchbay(command, "n", "abc")).toEqual({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining(`; ${one} begins so: write at least 4 digits of it\n`),
    });
  });

  // A namespace `abcd` that was deleted once must not be another's ID the second time.
  test.each([
    ["del", ["n", "abcd"]],
    ["gc", ["n", "--valid", "abcd/eth0"]],
    ["ipam", ["release", "n", "--container", "abcd"]],
  ])("of less than twelve digits takes nothing away: %s", async (command, words) => {
    await patchbay("del", "n", other.netnsPath, "--container-id", another);
    const outcome = await patchbay(command, ...words);
    expect(outcome).toEqual({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining(`${one} begins so: write at least 12`),
    });
    expect([await hasLink(web), await lease(one)]).toEqual([true, expect.stringContaining("10.")]);
  });

  test.each([
    ["check", ["n", start]],
    ["inspect", ["n", start]],
    ["repair", ["n", start]],
    ["del", ["n", start]],
    ["gc", ["n", "--valid", `${start}/eth0`]],
    ["ipam", ["release", "n", "--container", start]],
  ])("that begins several is refused, and nothing changes: %s", async (command, words) => {
    expect(await patchbay(command, ...words)).toEqual({
      code: 1,
      stdout: "",
      stderr: `patchbay ${command}: "${start}" begins the IDs of several containers: ${one}, ${another}\n`,
    });
    expect([await hasLink(web), await hasLink(other), await lease(one), await lease(another)])
      .toEqual([true, true, expect.stringContaining("10."), expect.stringContaining("10.")]);
  });

  const others: [why: string, name: string, code: number, prepare: () => Promise<unknown>][] = [
    ["it has three letters", "abc", 1, () => Promise.resolve()],
    ["a namespace has the name", `${start}1`, 0, () => machine.sh(`ip netns add ${start}1`)],
    // DEL once more must not delete another container: web, web1.
    [
      "people chose the ID",
      "beefbeefbeef",
      0,
      () => patchbay("add", "n", web.netnsPath, "-i", "eth1", "--container-id", chosen),
    ],
  ];
  test.each(others)("is no name when %s", async (_, name, code, prepare) => {
    await prepare();
    expect(await patchbay("del", "n", name)).toMatchObject({
      code,
      stderr: expect.stringContaining("not attached"),
    });
    for (const words of [["--valid", `${name}/eth0`], ["--valid", `${name}/eth1`]]) {
      expect(await patchbay("gc", "n", ...words)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("nothing is deleted"),
      });
    }
    expect([await hasLink(web), await hasLink(other)]).toEqual([true, true]);
    await machine.sh(`ip netns del ${start}1 2>/dev/null || true`);
  });
});

describe("ipam release of addresses", () => {
  const directoryOf = "/var/lib/cni/networks/n";
  const addressOf = async (): Promise<string> =>
    JSON.parse((await patchbay("ipam", "list", "n", "--json")).stdout)[0].address;
  const cases: [what: string, ifName: string, prepare: (address: string) => string][] = [
    ["that a container has", "eth0", () => ":"],
    ["that it has by another interface", "net1", () => ":"],
    ["of which the lease names only the container", "eth0", (address) => `printf box-1 >${directoryOf}/${address}`],
    ["of which only the cached result says so", "eth0", () => "rm -r /run/patchbay/n"],
  ];
  test.each(cases)("%s: none while it lives, unless --force says so", async (_, ifName, prepare) => {
    await patchbay("gc", "n", "--all");
    expect(await patchbay("add", "n", "web", "--container-id", "box-1", "-i", ifName)).toMatchObject({ code: 0 });
    const address = await addressOf(), lost = "10.9.0.99";
    await machine.sh(`printf 'lost\\r\\neth0' >${directoryOf}/${lost}; ${prepare(address)}`);
    const release = (...more: string[]) => patchbay("ipam", "release", "n", lost, address, ...more);
    const option = ifName === "eth0" ? "" : ` -i ${ifName}`;
    expect(await release()).toEqual({
      code: 1,
      stdout: "",
      stderr:
        `patchbay ipam: container box-1 has ${address} by ${ifName} in network n, and lives; nothing is released\n` +
        `  'patchbay del n box-1${option}' detaches it and releases its addresses; ` +
        "--force releases them all the same\n",
    });
    expect(await machine.sh(`ls ${directoryOf}`)).toMatch(new RegExp(`^${address}\n${lost}$`, "m"));
    expect(await release("--force")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`${address}: released`),
    });
    await patchbay("del", "n", "box-1", "-i", ifName);
  });

  test("of a container that is gone, and of none", async () => {
    await patchbay("gc", "n", "--all");
    const brief = await machine.container("brief");
    await patchbay("add", "n", "brief", "--container-id", "box-3");
    const address = await addressOf();
    await machine.removeContainer(brief);
    await machine.sh(`printf printer >${directoryOf}/10.9.0.98`);
    expect(await patchbay("ipam", "release", "n", address, "10.9.0.98")).toEqual({
      ...ok,
      stdout: `${address}: released, was box-3/eth0\n10.9.0.98: released, was printer\n`,
    });
    await patchbay("gc", "n", "--all");
  });
});

describe("ipam release --container", () => {
  const id = `12ab${"f".repeat(60)}`;
  const names: [string, string][] = [
    ["the name of ip netns", "web"],
    ["the path", "/var/run/netns/web"],
    ["the pod", "till"],
    ["the ID", id],
    ["the beginning of the ID", "12abffffffff"],
  ];
  test.each(names)("takes %s", async (_, name) => {
    await patchbay("gc", "n", "--all");
    await addPod(web.netnsPath, "--container-id", id);
    expect((await patchbay("ipam", "ls", "n")).stdout).toContain(`  ${id}  shop/till  eth0`);
    const [{ address }] = JSON.parse((await patchbay("ipam", "list", "n", "--json")).stdout);
    expect(await patchbay("ipam", "release", "n", "--container", name)).toEqual({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining(`'patchbay del n ${id}' detaches it`),
    });
    expect(await patchbay("ipam", "release", "n", "--container", name, "--force")).toEqual({
      ...ok,
      stdout: `${address}: released, was ${id}/eth0\n`,
    });
    expect(await patchbay("ipam", "release", "n", "--container", name)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`container ${name} has no address`),
    });
  });

  test("of what no record names, the ID", async () => {
    await patchbay("gc", "n", "--all");
    await machine.sh("printf 'lost-1\\r\\neth0' >/var/lib/cni/networks/n/10.9.0.99");
    expect(await patchbay("ipam", "release", "n", "--container", "lost")).toMatchObject({ code: 1 });
    expect(await patchbay("ipam", "release", "n", "--container", "lost-1")).toEqual({
      ...ok,
      stdout: "10.9.0.99: released, was lost-1/eth0\n",
    });
  });
});
