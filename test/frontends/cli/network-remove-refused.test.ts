/** `patchbay network remove`, when something is in its way: an engine that attaches meanwhile, leases that nobody explains, names that are none. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { commandsOn } from "../../support/commands.ts";
import { CONFIGS, writeNetwork } from "../../support/hooked.ts";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { network } from "../../support/network.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { untilTrue } from "../../support/until-true.ts";

let machine: Machine, container: Container;
beforeEach(async () => {
  machine = await openMachine();
  await machine.sh(`mkdir -p ${CONFIGS}`);
  container = await machine.container("c1");
});
afterEach(() => machine[Symbol.asyncDispose]());

const { patchbay: run, must } = commandsOn(() => machine, () => CONFIGS);
const patchbay = (...args: string[]) => run(args);

const ipam = { type: "host-local", ranges: [[{ subnet: "10.9.0.0/24" }], [{ subnet: "fd09::/64" }]] };
const bridge = { type: "bridge", bridge: "br0", isGateway: true, ipMasq: true, ipMasqBackend: "nftables", ipam };
const portmap = { type: "portmap", capabilities: { portMappings: true } };
const file = `${CONFIGS}/net.conflist stays: the next 'add' makes the network again\n`;

describe("while the network is removed", () => {
  /** Its DEL ends when it is let go on. */
  const slow = {
    ADD: 'cat >/dev/null; printf \'{"cniVersion":"1.1.0"}\'',
    DEL: "touch /run/deleting; cat /run/go-on >/dev/null",
    GC: "touch /run/collecting; cat /run/go-on >/dev/null",
    VERSION: 'printf \'{"cniVersion":"1.1.0","supportedVersions":["1.0.0","1.1.0"]}\'',
  };
  const plugins = (main: Record<string, unknown>) => [main, { type: "slow" }];
  const script = `#!/bin/sh\ncase $CNI_COMMAND in ${
    Object.entries(slow).map(([verb, does]) => `${verb}) ${does};;`).join(" ")
  } esac\n`;

  const install = async (types: readonly string[]) => {
    await machine.sh(
      "mkdir -p /run/plugins; mkfifo /run/go-on; cat >/run/plugins/slow; chmod 755 /run/plugins/slow",
      { stdin: script },
    );
    for (const name of types) await machine.sh(`ln -s ${PATCHBAY} /run/plugins/${name}`);
  };

  test("GC of other programs keeps nobody waiting who attaches to another network", async () => {
    await writeNetwork(machine, "net", plugins(bridge));
    await install(["bridge", "host-local"]);
    const removing = patchbay("network", "remove", "net", "--plugin-path", "/run/plugins");
    await untilTrue(() => machine.sh("ls /run"), (names) => names.includes("collecting"));
    const ranges = [[{ subnet: "10.10.0.0/24" }]];
    const other = network(machine, {
      name: "other",
      cniVersion: "1.1.0",
      ...bridge,
      bridge: "br1",
      ipam: { ...ipam, ranges },
    });
    await other.add(container);
    await machine.sh("echo >/run/go-on");
    expect(await removing).toMatchObject({ code: 0, stderr: file });
    await other.check(container);
  });

  const mains: [type: string, main: Record<string, unknown>][] = [
    ["bridge", bridge],
    ["ptp", { type: "ptp", ipMasq: true, ipMasqBackend: "nftables", ipam }],
  ];
  test.each(mains)("what an engine attaches to it by %s stays", async (type, main) => {
    await writeNetwork(machine, "net", plugins(main));
    await install([type, "host-local"]);
    const path = ["--plugin-path", "/run/plugins"];
    await must("add", "net", "c1", "--container-id", "web", ...path);
    await machine.sh("ip netns del c1");
    const engine = await machine.container("c2");
    const removing = patchbay("network", "remove", "net", ...path);
    await untilTrue(() => machine.sh("ls /run"), (names) => names.includes("deleting"));
    const engines = network(machine, { name: "net", cniVersion: "1.1.0", type, ...main });
    const { ips } = await engines.add(engine);
    await machine.sh("echo >/run/go-on");
    expect(await removing).toEqual({
      code: 1,
      stdout: "",
      stderr: "patchbay network: network net is in use again by 1 attachment: eth0 of container ctr-c2; " +
        "what 1 attachment had left is removed, the rest stays\n" +
        "  'patchbay del net CONTAINER' ends an attachment, 'patchbay gc net --all' every one\n",
    });
    await engines.check(engine);
    for (const { address } of ips) {
      const [own] = address.split("/");
      for (const where of ["ls /var/lib/cni/networks/net", "nft list ruleset"]) {
        expect(await machine.sh(where)).toContain(own);
      }
    }
    expect(await machine.sh("ls /run/patchbay/net")).toBe(`ctr-c2@eth0@${type}\n`);
  });
});

test('"disableGC": what no record names stays, and the command says so', async () => {
  const plugins = [bridge, { ...portmap, backend: "nftables" }];
  await writeNetwork(machine, "net", plugins);
  const env = { NETCONFPATH: CONFIGS, CAP_ARGS: '{"portMappings":[{"hostPort":80,"containerPort":80}]}' };
  expect(await machine.run([PATCHBAY, "add", "net", "c1"], { env })).toMatchObject({ code: 0 });
  // As after a loss of both records.
  await machine.sh("ip netns del c1; rm -r /run/patchbay/net /var/lib/cni/results");
  const conflist = JSON.stringify({ cniVersion: "1.1.0", name: "net", disableGC: true, plugins });
  await machine.sh(`cat >${CONFIGS}/net.conflist`, { stdin: conflist });
  expect(await patchbay("network", "remove", "net", "--leases")).toMatchObject({
    code: 0,
    stderr: `${file}network net has "disableGC": what no record names stays\n`,
  });
  expect(await machine.sh("nft list ruleset")).toContain("10.9.0.2");
  await writeNetwork(machine, "net", plugins);
  expect(await patchbay("network", "remove", "net")).toMatchObject({ code: 0, stderr: file });
  expect(await machine.sh("nft list ruleset")).not.toContain("10.9.0.2");
});

describe("leases", () => {
  test("in a directory of their own are found by the ledgers, when neither a file nor the cache knows it", async () => {
    const elsewhere = { ...bridge, ipam: { ...ipam, dataDir: "/var/lib/here" } };
    await network(machine, { name: "net", ...elsewhere }).add(container);
    await machine.sh("ip netns del c1; printf 'lost\\r\\neth0' >/var/lib/here/net/10.9.0.77");
    expect(await patchbay("network", "remove", "net")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("1 lease that no record explains: lease 10.9.0.77 of container lost"),
    });
    expect(await must("network", "remove", "net", "--leases")).toContain("removed directory /var/lib/here/net\n");
  });

  test("in a directory that nothing tells of are not looked for, and the command says so", async () => {
    await machine.sh("mkdir -p /var/lib/cni/networks/net");
    expect(await patchbay("network", "remove", "net")).toEqual({
      code: 0,
      stdout: "removed directory /var/lib/cni/networks/net\n",
      stderr: 'no file and no record configures the network: leases in a "dataDir" of its own are not looked for\n',
    });
  });

  test("of many containers are counted", async () => {
    await writeNetwork(machine, "net", [bridge]);
    await machine.sh(
      "mkdir -p /var/lib/cni/networks/net; for n in $(seq 20 39); do " +
        "printf 'lost\\r\\neth0' >/var/lib/cni/networks/net/10.9.0.$n; done",
    );
    const { stderr } = await patchbay("network", "remove", "net");
    expect(stderr).toMatch(/ has 20 leases that no record explains: (lease [\w. ]+, ){4}lease [\w. ]+ and 15 more;/);
  });

  test.each([["a link", "ln -s ../other"], ["a file", "touch"]])(
    "%s in place of their directory",
    async (_, make) => {
      await writeNetwork(machine, "net", [bridge]);
      await machine.sh(
        "mkdir -p /var/lib/cni/networks/other; cd /var/lib/cni/networks; " +
          `printf 'web\\r\\neth0' >other/10.9.0.9; ${make} net`,
      );
      for (const more of [[], ["--leases"], ["--dry-run"]]) {
        expect(await patchbay("network", "remove", "net", ...more)).toMatchObject({
          code: 1,
          stdout: "",
          stderr: expect.stringContaining("/var/lib/cni/networks/net is not a directory;"),
        });
      }
      expect(await machine.sh("ls /var/lib/cni/networks/other")).toBe("10.9.0.9\n");
    },
  );
});

// An empty operand is refused by every command (command-line.test.ts).
describe.each(["../x", ".", "../../runtime", "/var/lib/cni/x", ".hidden", "a/b", "a\nb"])(
  "the name %j is none",
  (name) => {
    const commands = [
      ["network", "remove", name],
      ["network", "remove", name, "--leases"],
      ["ipam", "export", name],
      ["ipam", "import", name],
      ["ipam", "list", name],
      ["ipam", "release", name, "10.9.0.9"],
      ["ipam", "release", name, "--container", "web"],
    ];
    test("nothing of the file system is reached", async () => {
      await writeNetwork(machine, "net", [bridge]);
      // Its name is in a file, too.
      await machine.sh(`cat >${CONFIGS}/misnamed.conflist`, {
        stdin: JSON.stringify({ cniVersion: "1.1.0", name, plugins: [bridge] }),
      });
      await machine.sh(
        "cd /var/lib/cni; for at in . x networks networks/.hidden networks/a networks/a/b; do " +
          "mkdir -p $at; printf 'web\\r\\neth0' >$at/10.9.0.9; touch $at/lock; done",
      );
      const files = () => machine.sh("cd /var/lib/cni; find . ! -name .patchbay.lock | sort");
      const before = await files();
      for (const command of commands) {
        expect({ command, ...await patchbay(...command) }).toMatchObject({
          command,
          code: 1,
          stdout: "",
          stderr: expect.stringMatching(/invalid characters found in network name|missing network name/),
        });
      }
      expect(await files()).toBe(before);
    });
  },
);
