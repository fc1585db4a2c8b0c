/**
 * `patchbay hook add` and `hook del` on real namespaces: what is attached, what is refused, and that nothing is left
 * whatever has become of namespace, configuration, records and disk.
 *
 * Longer than 300 lines: all on the same networks.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { CONFIGS, hook, type Hooked, silent, startHooked, writeNetwork } from "../../support/hooked.ts";
import { leftSince, type Moment, quietMoment } from "../../support/leftovers.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { ping } from "../../support/traffic.ts";

let machine: Machine, moment: Moment;

const bridge = (name: string, subnet: string, more = {}) => ({
  type: "bridge",
  bridge: name,
  isGateway: true,
  ipam: { type: "host-local", ranges: [[{ subnet }]] },
  ...more,
});
const portmap = { type: "portmap", backend: "nftables", capabilities: { portMappings: true } };
const FRONT_AND_BACK = { "dev.patchbay.networks": "front, back" };

beforeAll(async () => {
  machine = await openMachine();
  const capabilities = { ips: true, mac: true };
  await writeNetwork(machine, "front", [bridge("front0", "10.1.0.0/24", { capabilities }), portmap]);
  await writeNetwork(machine, "back", [bridge("back0", "10.2.0.0/24")]);
  // One address, which is the gateway's.
  await writeNetwork(machine, "full", [bridge("full0", "10.3.0.0/30", { ipam: full })]);
  await writeNetwork(machine, "lo", [{ type: "loopback" }]);
  await using first = await startHooked(machine, "first");
  const state = first.state({ annotations: FRONT_AND_BACK });
  expect(await hook(machine, ["add"], state)).toEqual(silent);
  expect(await hook(machine, ["add", "full@eth2"], first.state())).toMatchObject({ code: 1 });
  expect(await hook(machine, ["del"], state)).toEqual(silent);
  await first.end();
  moment = await quietMoment(machine);
});
afterAll(() => machine[Symbol.asyncDispose]());

const full = {
  type: "host-local",
  ranges: [[{ subnet: "10.3.0.0/30", rangeStart: "10.3.0.1", rangeEnd: "10.3.0.1", gateway: "10.3.0.1" }]],
};

/** Which address host-local gave last is not of an attachment, and bundles are the runtime's. */
const left = () => leftSince(moment, machine, /last_reserved_ip|file \/run\/bundles/);
async function nothingIsLeftOf(container: Hooked): Promise<void> {
  await container.end();
  expect(await left()).toEqual([]);
}
const addresses = async ({ inside }: Hooked) =>
  [...(await inside("ip -o -4 addr show")).matchAll(/: (\S+) +inet ([0-9.]+)\//g)].map(([, link, address]) =>
    `${link} ${address!.replace(/[0-9]+$/, "N")}`
  );

describe("what is attached", () => {
  test("the networks of the annotation, in order, with loopback; del needs nothing but the id", async () => {
    await using web = await startHooked(machine, "web");
    expect(await web.inside("ip -br link show lo")).toContain("DOWN");
    expect(await hook(machine, ["add"], web.state({ annotations: FRONT_AND_BACK }))).toEqual(silent);
    expect(await addresses(web)).toEqual(["lo 127.0.0.N", "eth0 10.1.0.N", "eth1 10.2.0.N"]);
    await web.inside("ping -c 1 -W 60 10.1.0.1; ping -c 1 -W 60 10.2.0.1; ping -c 1 -W 60 127.0.0.1");
    await web.end();
    expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
    expect(await left()).toEqual([]);
    expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
  });

  test("arguments win, and say addresses and ports; --json prints the results", async () => {
    await using web = await startHooked(machine, "web");
    const networks = ["back@net7", "front@up0 ip=10.1.0.77 mac=02:00:00:00:00:77"];
    const annotations = { ...FRONT_AND_BACK, "dev.patchbay.ports": "1:1" };
    const words = ["add", ...networks, "--ports", "8088:80,127.0.0.1:99:9/udp", "--json"];
    const { code, stdout, stderr } = await hook(machine, words, web.state({ annotations }));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const attached = JSON.parse(stdout);
    expect(attached.map(({ network, ifName }: Record<string, string>) => `${network} ${ifName}`)).toEqual([
      "back net7",
      "front up0",
    ]);
    expect(attached[1].result.ips[0].address).toBe("10.1.0.77/24");
    expect(await web.inside("ip -br link show up0")).toContain("02:00:00:00:00:77");
    expect(await ping(machine, undefined, "10.1.0.77")).toBe(true);
    const rules = await machine.sh("nft list ruleset");
    expect(rules).toContain("8088");
    expect(await hook(machine, ["del", "front"], { id: "web" })).toEqual(silent);
    expect(await addresses(web)).toEqual(["lo 127.0.0.N", "net7 10.2.0.N"]);
    expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
    await nothingIsLeftOf(web);
  });

  test("of two networks that take ports the first gets them; what one is given counts before what all are given", async () => {
    await using machine = await openMachine();
    for (const [name, subnet] of [["front", "10.1.0.0/24"], ["side", "10.5.0.0/24"]] as const) {
      await writeNetwork(machine, name, [bridge(`${name}0`, subnet, { capabilities: { mac: true } }), portmap]);
    }
    await using web = await startHooked(machine, "web");
    const annotations = { "dev.patchbay.capabilities": JSON.stringify({ mac: "02:00:00:00:00:01" }) };
    const words = ["add", "front mac=02:00:00:00:00:77", "side", "--ports", "8088:80"];
    expect(await hook(machine, words, web.state({ annotations }))).toEqual(silent);
    const links = await web.inside("ip -br link");
    expect(links).toMatch(/eth0@\S+ +UP +02:00:00:00:00:77/);
    expect(links).toMatch(/eth1@\S+ +UP +02:00:00:00:00:01/);
    const { stdout } = await machine.run(["nft", "list", "map", "inet", "patchbay_portmap", "ports_ipv4"]);
    expect(stdout).toMatch(/= { tcp \. 8088 comment "[^"]*" : 10\.1\.0\.\d+ \. 80 }/);
    const records = await machine.sh("cat /run/patchbay/side/*");
    expect(records).not.toContain("8088");
    expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
  });

  test("a capability that is given to all networks, and that none takes, is told", async () => {
    await using web = await startHooked(machine, "web");
    const args = (
      name: string,
    ) => ["add", "front", "--capabilities", JSON.stringify({ [name]: "02:00:00:00:00:07" })];
    expect(await hook(machine, args("mca"), web.state())).toEqual({
      ...silent,
      stderr: 'patchbay: capability argument "mca": no plugin of network front takes it; did you mean "mac"?\n',
    });
    expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
    expect(await hook(machine, args("mac"), web.state())).toEqual(silent);
    expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
  });

  test("the second holder of a port is told", async () => {
    await using machine = await openMachine();
    await writeNetwork(machine, "front", [bridge("front0", "10.1.0.0/24"), { ...portmap, backend: "iptables" }]);
    await using one = await startHooked(machine, "one");
    await using two = await startHooked(machine, "two");
    expect(await hook(machine, ["add", "front", "--ports", "8088:80"], one.state())).toEqual(silent);
    expect(await hook(machine, ["add", "front", "--ports", "8088:80"], two.state())).toEqual({
      ...silent,
      stderr: "patchbay: network front: host port 8088/tcp leads to container one of network front, " +
        "whose rule comes first: that container gets the connections, this one none\n",
    });
    for (const id of ["one", "two"]) expect(await hook(machine, ["del"], { id })).toEqual(silent);
  });

  test("every word of a network must be one that its plugins take", async () => {
    await using web = await startHooked(machine, "web");
    for (const word of ["ingress=1M", "mac=02:00:00:00:00:77 ingress=1M", "ip=10.1.0.9 ingress=1M"]) {
      const { code, stderr } = await hook(machine, ["add", `front ${word}`], web.state());
      expect({ word, code, stderr }).toEqual({ word, code: 1, stderr: expect.stringContaining("bandwidth") });
    }
    await nothingIsLeftOf(web);
  });

  test("one hook a network; the second names its interface", async () => {
    await using web = await startHooked(machine, "web");
    expect(await hook(machine, ["add", "front"], web.state())).toEqual(silent);
    expect(await hook(machine, ["add", "back@eth1"], web.state())).toEqual(silent);
    expect(await addresses(web)).toEqual(["lo 127.0.0.N", "eth0 10.1.0.N", "eth1 10.2.0.N"]);
    expect(await hook(machine, ["del", "back@eth1", "front"], { id: "web" })).toEqual(silent);
    await nothingIsLeftOf(web);
  });

  test("a namespace with a path in config.json, also when there is no process", async () => {
    for (const pid of [undefined, 0]) {
      const container = await machine.container("pinned");
      await using web = await startHooked(machine, "web", { path: "/run/netns/pinned" });
      expect(await hook(machine, ["add", "front"], web.state({ pid }))).toEqual(silent);
      expect(await machine.sh("ip -br addr", { in: container })).toMatch(/lo +UNKNOWN[^]*eth0@[^]* 10.1.0/);
      expect(await web.inside("ip -br addr")).not.toContain("eth0");
      expect(await machine.sh("cat /var/lib/cni/results/*")).toContain('"netns":"/run/netns/pinned"');
      expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
      await machine.removeContainer(container);
    }
    expect(await left()).toEqual([]);
  });

  test("a network of loopback alone", async () => {
    await using web = await startHooked(machine, "web");
    expect(await hook(machine, ["add", "lo@lo", "front"], web.state())).toEqual(silent);
    expect(await addresses(web)).toEqual(["lo 127.0.0.N", "eth0 10.1.0.N"]);
    expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
    expect(await web.inside("ip -br link show lo")).toContain("DOWN");
    await nothingIsLeftOf(web);
  });
});

describe("what is refused attaches nothing, and says what to do", () => {
  const annotated = (annotations: Record<string, string>) => ({ annotations });
  const refused: [words: string[], changes: Record<string, unknown>, code: number, says: string][] = [
    [["add"], {}, 1, "container web wants no network; name some in annotation dev.patchbay.networks"],
    [["add"], { id: "a+b" }, 1, '"id" is "a+b"'],
    [["add"], annotated({ "dev.patchbay.networks": "front,,back" }), 1, "annotation dev.patchbay.networks"],
    [["add"], annotated({ "dev.patchbay.port": "80:80" }), 1, "did you mean dev.patchbay.ports?"],
    [["add", "frnt"], {}, 1, 'no net configuration with name "frnt" in /run/networks; did you mean "front"?'],
    [["add", "front", "frnt"], {}, 1, 'no net configuration with name "frnt"'],
    [["add", "front", "--ports", "80"], {}, 1, '--ports: "80" is wrong; ports have the form'],
    [["add", "back", "--ports", "80:80"], {}, 1, "ports: no plugin of network back takes them"],
    [["add", "back ip=10.2.0.9"], {}, 1, "NETWORK: ips: no plugin of network back takes them; a plugin that does"],
    [["add", "front"], { pid: 4_000_000 }, 1, "the network namespace /proc/4000000/ns/net cannot be opened"],
    [["add", "front"], { pid: undefined }, 1, "has no pid; without a path in linux.namespaces"],
    [["add", "front"], { pid: 0 }, 1, "has no pid"],
    [["add", "front"], { status: "stopped" }, 1, "container web has stopped; 'hook add' is for createRuntime"],
    [["put", "front"], {}, 2, '"put" is neither add nor del'],
    [[], {}, 2, "add|del [NETWORK…] expected"],
    [["del", "frnt"], {}, 1, 'no net configuration with name "frnt"'],
  ];

  test.each(refused)("%j with %j", async (words, changes, code, says) => {
    await using web = await startHooked(machine, "web");
    const outcome = await hook(machine, words, web.state(changes));
    expect(outcome).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(says) });
    expect(await web.inside("ip -br link")).toMatch(/^lo +DOWN .*\n$/);
    await nothingIsLeftOf(web);
  });

  test("a state that is too large", async () => {
    await using web = await startHooked(machine, "web");
    const outcome = await hook(machine, ["add", "front"], web.state({ annotations: { a: "x".repeat(1024 * 1024) } }));
    expect(outcome).toMatchObject({ code: 1, stderr: expect.stringContaining("stdin is larger than 1048576 bytes") });
  });

  test("the host's network, told from config.json and without it", async () => {
    await using web = await startHooked(machine, "web", null);
    const state = web.state({ pid: machine.pid });
    expect(await hook(machine, ["add", "front"], state)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('linux.namespaces of config.json has none of type "network"; add {"type"'),
    });
    await machine.sh(`rm ${web.bundle}/config.json`);
    expect(await hook(machine, ["add", "front"], state)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        `web has the network namespace of this process (${web.bundle}/config.json is not`,
      ),
    });
    expect(await left()).toEqual([]);
  });

  test("a hook in the container's own namespaces, as createContainer calls it", async () => {
    await using web = await startHooked(machine, "web");
    const inNetns = ["nsenter", `--net=/proc/${web.pid}/ns/net`];
    // As runc: the number of the process inside, and the host's /proc, where it is another process's.
    const inBoth = [...inNetns, "unshare", "--pid", "--fork"];
    for (const [before, pid] of [[inNetns, web.pid], [inBoth, 1], [inBoth, 0]] as const) {
      expect(await hook(machine, ["add", "front"], web.state({ pid }), before)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(
          "container's own namespaces, where the host's end of a link cannot be made; call",
        ),
      });
    }
    expect(await web.inside("ip -br link")).toMatch(/^lo .*\n$/);
    await nothingIsLeftOf(web);
  });

  test("a path in config.json that is relative, or leads nowhere, or to the host", async () => {
    const paths: [string, string][] = [
      ["netns", "it must be an absolute path"],
      ["/run/netns/none", "/run/netns/none cannot be opened: "],
      ["/proc/self/ns/net", "config.json has its path /proc/self/ns/net; name a namespace"],
    ];
    for (const [path, says] of paths) {
      await using web = await startHooked(machine, "web", { path });
      const outcome = await hook(machine, ["add", "front"], web.state());
      expect(outcome).toMatchObject({ code: 1, stderr: expect.stringContaining(says) });
    }
    expect(await left()).toEqual([]);
  });
});

describe("all or none", () => {
  test("when the last network fails, the others are taken back", async () => {
    await using web = await startHooked(machine, "web");
    const { code, stderr } = await hook(machine, ["add", "front", "back", "full"], web.state(), []);
    expect(code).toBe(1);
    expect(stderr).toContain("eth2 cannot be attached to network full: ");
    expect(stderr).not.toContain("taking it back");
    expect(await web.inside("ip -br link")).toMatch(/^lo .*\n$/);
    await nothingIsLeftOf(web);
  });

  test("results that cannot be written are taken back", async () => {
    await using web = await startHooked(machine, "web");
    const script = `${PATCHBAY} hook add front back --json >/dev/full`;
    const outcome = await machine.run(["sh", "-c", script], {
      stdin: JSON.stringify(web.state()),
      env: { NETCONFPATH: CONFIGS },
    });
    expect(outcome).toMatchObject({ code: 1, stderr: expect.stringContaining("stdout") });
    expect(await web.inside("ip -br link")).toMatch(/^lo .*\n$/);
    await nothingIsLeftOf(web);
  });

  test("twice: the second is refused, and the first stays", async () => {
    await using web = await startHooked(machine, "web");
    expect(await hook(machine, ["add", "front", "back"], web.state())).toEqual(silent);
    const before = await addresses(web);
    for (const networks of [["front", "back"], ["back"], ["lo@eth1"]]) {
      expect(await hook(machine, ["add", ...networks], web.state())).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/eth[01] of container web is attached to network (front|back) already; name/),
      });
    }
    expect(await addresses(web)).toEqual(before);
    await web.inside("ping -c 1 -W 60 10.1.0.1");
    expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
    await nothingIsLeftOf(web);
  });

  test("the second interface is there already: nothing is attached", async () => {
    await using web = await startHooked(machine, "web");
    expect(await hook(machine, ["add", "back@eth1"], web.state())).toEqual(silent);
    const again = await hook(machine, ["add", "front", "back@eth1"], web.state());
    const says = expect.stringContaining("eth1 of container web is attached to network back already");
    expect(again).toMatchObject({ code: 1, stderr: says });
    expect(await addresses(web)).toEqual(["lo 127.0.0.N", "eth1 10.2.0.N"]);
    expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
    await nothingIsLeftOf(web);
  });

  test("another container of the same id keeps its network", async () => {
    await using web = await startHooked(machine, "web"), other = await startHooked(machine, "web");
    expect(await hook(machine, ["add", "front"], web.state())).toEqual(silent);
    expect(await hook(machine, ["add", "front"], other.state())).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        `another container web is attached to network front, in /proc/${web.pid}/ns/net`,
      ),
    });
    await web.inside("ping -c 1 -W 60 10.1.0.1");
    expect(await other.inside("ip -br link")).toMatch(/^lo .*\n$/);
    expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
    for (const one of [web, other]) await one.end();
    expect(await left()).toEqual([]);
  });

  test("add and del at once end in one of both states", async () => {
    await using web = await startHooked(machine, "web");
    for (let round = 0; round < 10; round++) {
      const both = [hook(machine, ["add", "front", "back"], web.state()), hook(machine, ["del"], { id: "web" })];
      expect(await Promise.all(both)).toEqual(
        [silent, silent].map((one) => ({ ...one, stderr: expect.any(String) })),
      );
      const now = await addresses(web);
      expect([["eth0 10.1.0.N", "eth1 10.2.0.N"], []]).toContainEqual(now.filter((one) => !one.startsWith("lo")));
      expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
    }
    await nothingIsLeftOf(web);
  });
});

describe("del when something is gone", () => {
  const losses: Record<string, string> = {
    "the configuration": `mv ${CONFIGS} /run/moved; mkdir ${CONFIGS}`,
    "a configuration that is broken now": `cp -r ${CONFIGS} /run/moved; for f in ${CONFIGS}/*; do echo '{' >$f; done`,
    "the cached results": "rm -r /var/lib/cni/results",
    "configuration and cached results": `mv ${CONFIGS} /run/moved; mkdir ${CONFIGS}; rm -r /var/lib/cni/results`,
    "the ledgers": "rm -r /run/patchbay/front /run/patchbay/back",
    "torn cached results":
      "for f in /var/lib/cni/results/*; do head -c 20 $f >/run/torn; cp /run/torn $f; done; rm /run/torn",
  };
  for (const [what, script] of Object.entries(losses)) {
    test.each(["the namespace is gone", "the container runs"])(`${what}, and %s`, async (how) => {
      await using web = await startHooked(machine, "web");
      const state = web.state({ annotations: FRONT_AND_BACK });
      expect(await hook(machine, ["add"], state)).toEqual(silent);
      if (how === "the namespace is gone") await web.end();
      await machine.sh(script);
      const { code, stdout } = await hook(machine, ["del"], { id: "web", annotations: state.annotations });
      await machine.sh(`if [ -e /run/moved ]; then rm -r ${CONFIGS}; mv /run/moved ${CONFIGS}; fi`);
      expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
      await nothingIsLeftOf(web);
    });
  }

  test("a plugin that is not found is told once, and what its ledger records is removed", async () => {
    await using web = await startHooked(machine, "web");
    expect(await hook(machine, ["add", "front"], web.state())).toEqual(silent);
    const { code, stderr } = await hook(machine, ["del", "--plugin-path", "/run/nowhere"], { id: "web" });
    expect({ code, times: stderr.split('failed to find plugin "portmap"').length - 1 }).toEqual({
      code: 1,
      times: 1,
    });
    expect(await addresses(web)).toEqual(["lo 127.0.0.N"]);
    expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
    await nothingIsLeftOf(web);
  });

  test("it goes on past one that fails, says every cause, and succeeds later", async () => {
    await using web = await startHooked(machine, "web");
    await machine.sh("mkdir -p /run/bin; printf '#!/bin/sh\\ncat >/dev/null\\necho {}\\n' >/run/bin/foreign");
    await machine.sh(
      `chmod +x /run/bin/foreign; for one in bridge host-local; do ln -s ${PATCHBAY} /run/bin/$one; done`,
    );
    for (const name of ["x", "y"]) {
      await writeNetwork(machine, name, [bridge("back0", "10.2.0.0/24"), { type: "foreign" }]);
    }
    const path = ["--plugin-path", "/run/bin"];
    expect(await hook(machine, ["add", "x", "front", "y", "--plugin-path", "/run/bin"], web.state())).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('failed to find plugin "portmap"'),
    });
    expect(await hook(machine, ["add", "x", "y", ...path], web.state())).toEqual(silent);
    expect(await hook(machine, ["add", "front@eth2"], web.state())).toEqual(silent);
    const { code, stderr } = await hook(machine, ["del"], { id: "web" });
    expect(code).toBe(1);
    expect(stderr).toContain("eth1 of container web cannot be detached from network y: ");
    expect(stderr).toContain("eth0 of container web cannot be detached from network x: ");
    expect(stderr.indexOf("network y")).toBeLessThan(stderr.indexOf("network x"));
    expect(await addresses(web)).not.toContain("eth2 10.1.0.N");
    await web.end();
    expect(await hook(machine, ["del", ...path], { id: "web" })).toEqual(silent);
    expect(await machine.sh("ls /var/lib/cni/networks/[xy] | grep -c ^10 || true")).toBe("0\n");
    await machine.sh(`rm -r /run/bin /var/lib/cni/networks/[xy] ${CONFIGS}/[xy].conflist`);
    expect(await left()).toEqual([]);
  });
});
