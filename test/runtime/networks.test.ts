/**
 * `patchbay add`, `check`, `del`, `gc` and `status` on real networks: in one process, and beside other plugins.
 *
 * Longer than 300 lines: all commands run on the same networks.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { networkFiles } from "../support/commands.ts";
import { untilGone } from "../support/gone.ts";
import { leftSince, type Moment, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine, type Outcome } from "../support/machine.ts";
import { GO_PLUGINS, PATCHBAY, patchbayPlugins } from "../support/plugins.ts";

let machine: Machine;
beforeAll(async () => {
  machine = await openMachine();
});
afterAll(() => machine[Symbol.asyncDispose]());
const { directory, configure: network } = networkFiles();

const bridge = {
  type: "bridge",
  bridge: "br0",
  isGateway: true,
  ipam: { type: "host-local", ranges: [[{ subnet: "10.9.0.0/24" }]], routes: [{ dst: "0.0.0.0/0" }] },
};

const patchbay = (args: string[], env: Record<string, string> = {}, tracing: string[] = []): Promise<Outcome> =>
  machine.run([...tracing, PATCHBAY, ...args], { env: { NETCONFPATH: directory, ...env } });

let made = 0;
const newContainer = () => machine.container(`n${++made}`);
const addresses = (container: Container) => machine.sh("ip -o addr show dev eth0", { in: container });
const silent = { code: 0, stdout: "", stderr: "" };

describe("every plugin is found in this program when CNI_PATH is not set", () => {
  test("add, check, status and del, each in one process", async () => {
    network("one", [{ type: "loopback" }, bridge]);
    const container = await newContainer();
    const trace = `${directory}/trace`;
    const traced = ["strace", "-f", "-qq", "-e", "trace=execve", "-o", trace];
    const added = await patchbay(["add", "one", container.netnsPath], {}, traced);
    expect(added).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(added.stdout)).toMatchObject({
      cniVersion: "1.1.0",
      ips: [{ address: "10.9.0.2/24", gateway: "10.9.0.1" }],
    });
    expect(await addresses(container)).toContain("10.9.0.2/24");
    // strace's own start of the program is the only one.
    expect((await Bun.file(trace).text()).match(/execve\(/g)?.length).toBe(1);
    expect(await patchbay(["check", "one", container.netnsPath])).toEqual(silent);
    const pool = "addresses 10.9.0.1-10.9.0.254: 252 of 253 free\n";
    expect(await patchbay(["status", "one"])).toEqual({ ...silent, stdout: pool });
    expect(await patchbay(["del", "one", container.netnsPath])).toEqual(silent);
    expect(await patchbay(["del", "one", container.netnsPath])).toEqual({
      ...silent,
      stderr: `patchbay del: "${container.netnsPath}" is not attached to network "one"; ` +
        "no ledger and no cached result names it\n",
    });
    expect((await machine.run(["ip", "link", "show", "eth0"], { in: container })).code).not.toBe(0);
  });

  test("del detaches also where the record cannot be removed, and says which one stays", async () => {
    network("kept", [{ type: "loopback" }]);
    const container = await newContainer(), results = "/var/lib/cni/results";
    expect((await patchbay(["add", "kept", container.netnsPath])).code).toBe(0);
    await machine.sh(`mount --bind ${results} ${results}; mount -o remount,bind,ro ${results}`);
    const deleted = await patchbay(["del", "kept", container.netnsPath]);
    await machine.sh(`umount ${results}`);
    expect(deleted).toMatchObject({ code: 0, stdout: "" });
    expect(deleted.stderr.split("\n").length).toBe(2);
    expect(deleted.stderr).toMatch(/results\/kept-\S+ stays, and tells of an attachment that is gone: .*read-only/);
    expect(await patchbay(["del", "kept", container.netnsPath])).toEqual(silent);
    expect(await machine.sh(`ls ${results}`)).not.toContain("kept-");
  });

  test("a plugin that is not ours is not found", async () => {
    network("foreign", [{ type: "calico" }]);
    const container = await newContainer();
    expect(await patchbay(["add", "foreign", container.netnsPath])).toEqual({
      code: 1,
      stdout: "",
      stderr:
        'patchbay add: plugin type="calico" failed (add): no paths provided; "calico" is not part of patchbay\n' +
        "  --plugin-path or $CNI_PATH names the directories of other plugins\n",
    });
  });
});

describe("nothing is left behind", () => {
  let before: Moment;
  beforeAll(async () => {
    network("one", [bridge]);
    const container = await newContainer();
    await patchbay(["add", "one", container.netnsPath]);
    await patchbay(["del", "one", container.netnsPath]);
    await machine.removeContainer(container);
    before = await quietMoment(machine);
  });

  test("after an ADD that fails in a later plugin", async () => {
    const bin = `${directory}/bin`;
    mkdirSync(bin);
    for (const name of ["bridge", "host-local"]) symlinkSync(PATCHBAY, `${bin}/${name}`);
    writeFileSync(
      `${bin}/fails`,
      `#!/bin/sh\n[ $CNI_COMMAND != ADD ] || { echo '{"code":11,"msg":"no"}'; exit 1; }\n`,
      {
        mode: 0o755,
      },
    );
    network("one", [bridge, { type: "fails" }]);
    const container = await newContainer();
    const { code, stdout, stderr } = await patchbay(["add", "one", container.netnsPath], { CNI_PATH: bin });
    network("one", [bridge]);
    expect({ code, stdout, stderr })
      .toEqual({ code: 1, stdout: "", stderr: 'patchbay add: plugin type="fails" failed (add): no\n' });
    await machine.removeContainer(container);
    expect(await leftSince(before, machine)).toEqual([]);
  });

  test("after a DEL when the namespace is gone and the cache is lost", async () => {
    const container = await newContainer();
    await patchbay(["add", "one", container.netnsPath]);
    await machine.removeContainer(container);
    await machine.sh("rm -r /var/lib/cni/results");
    expect(await patchbay(["del", "one", container.netnsPath])).toEqual(silent);
    expect(await leftSince(before, machine)).toEqual([]);
  });

  test("after a GC of attachments that are not valid", async () => {
    const containers = await Promise.all([newContainer(), newContainer()]);
    for (const { netnsPath } of containers) await patchbay(["add", "one", netnsPath]);
    const { code, stderr } = await patchbay(["gc", "one", "--all"]);
    expect(code).toBe(0);
    expect(stderr.match(/^deleting eth0 of container cnitool-\w{20} from network one$/gm)?.length).toBe(2);
    for (const container of containers) await machine.removeContainer(container);
    expect(await leftSince(before, machine)).toEqual([]);
  });
});

describe("gc", () => {
  const portmap = { type: "portmap", backend: "nftables", capabilities: { portMappings: true } };
  const env = {
    CAP_ARGS: JSON.stringify({ portMappings: [{ hostPort: 8088, containerPort: 80, protocol: "tcp" }] }),
  };
  const whole = [{ ...bridge, ipMasq: true, ipMasqBackend: "nftables" }, portmap];

  for (const version of ["0.4.0", "1.0.0", "1.1.0"]) {
    test(`a network of version ${version}: attachments that are not in the cache are deleted`, async () => {
      network("old", whole, version);
      const first = await newContainer();
      expect(await patchbay(["add", "old", first.netnsPath], env)).toMatchObject({ code: 0 });
      expect(await patchbay(["del", "old", first.netnsPath], env)).toEqual(silent);
      await machine.removeContainer(first);
      const before = await quietMoment(machine);
      const stays = await newContainer();
      expect(await patchbay(["add", "old", stays.netnsPath, "--container-id", "stays"], env)).toMatchObject({
        code: 0,
      });
      const noPort = { CAP_ARGS: "{}" };
      const gone = await newContainer();
      await patchbay(["add", "old", gone.netnsPath, "--container-id", "gone"], noPort);
      await machine.removeContainer(gone);
      await untilGone(machine);
      await machine.sh("rm -r /var/lib/cni/results");
      expect(await patchbay(["gc", "old", "--gone", "--dry-run"])).toEqual({
        code: 0,
        stdout: "would delete eth0 of container gone from network old (its namespace is gone, not in the cache)\n",
        stderr: "",
      });
      expect(await machine.sh("ls /run/patchbay/old")).toContain("gone@eth0@bridge");
      expect((await patchbay(["gc", "old", "--gone"])).code).toBe(0);
      expect(await machine.sh("ls /run/patchbay/old /var/lib/cni/networks/old")).not.toContain("gone@");
      expect((await patchbay(["ipam", "list", "old"])).stdout).not.toContain("gone");
      expect(await patchbay(["check", "old", stays.netnsPath, "--container-id", "stays"], noPort))
        .toMatchObject({ stderr: expect.not.stringContaining("gone") });
      // A misspelt name would delete what was meant to stay.
      expect(await patchbay(["gc", "old", "--valid", "stasy/eth0"])).toEqual({
        code: 1,
        stdout: "",
        stderr: "patchbay gc: --valid stasy/eth0: no such attachment is known, so nothing is deleted; " +
          "did you mean stays/eth0?\n",
      });
      expect(await patchbay(["gc", "old", "--valid", `${stays.name}/eth0`])).toEqual(silent);
      expect(await patchbay(["inspect", "old", stays.name])).toMatchObject({ code: 0 });
      expect((await patchbay(["gc", "old", "--all"])).code).toBe(0);
      await machine.removeContainer(stays);
      expect(await leftSince(before, machine)).toEqual([]);
    });

    test(`a network of version ${version}: leases without any other record are released`, async () => {
      network("old", whole, version);
      const container = await newContainer();
      await patchbay(["add", "old", container.netnsPath, "--container-id", "lost"], env);
      await machine.removeContainer(container);
      await machine.sh("rm -r /var/lib/cni/results /run/patchbay");
      expect((await patchbay(["ipam", "list", "old"])).stdout).toContain("lost");
      expect((await patchbay(["gc", "old", "--all"])).code).toBe(0);
      expect((await patchbay(["ipam", "list", "old"])).stdout).toBe("");
    });
  }

  test("what plugins made that are no longer configured is deleted, too", async () => {
    network("former", whole);
    const first = await newContainer();
    await patchbay(["add", "former", first.netnsPath], env);
    await patchbay(["del", "former", first.netnsPath], env);
    const before = await quietMoment(machine);
    const container = await newContainer();
    expect(await patchbay(["add", "former", container.netnsPath], env)).toMatchObject({ code: 0 });
    network("former", whole.slice(0, 1));
    await machine.removeContainer(container);
    await untilGone(machine);
    expect((await patchbay(["gc", "former", "--gone"])).code).toBe(0);
    expect(await leftSince(before, machine)).toEqual([]);
  });

  for (const records of ["with", "without"]) {
    test(`del and gc work for a network that is no longer configured, ${records} a cached result`, async () => {
      network("once", whole);
      const first = await newContainer();
      await patchbay(["add", "once", first.netnsPath], env);
      await patchbay(["del", "once", first.netnsPath], env);
      const before = await quietMoment(machine);
      const containers = [await newContainer(), await newContainer()];
      await patchbay(["add", "once", containers[0]!.netnsPath, "--container-id", "one"], env);
      await patchbay(["add", "once", containers[1]!.netnsPath, "--container-id", "two"]);
      rmSync(`${directory}/once.conflist`);
      if (records === "without") await machine.sh("rm /var/lib/cni/results/once-*");
      const told = `network once is not configured in ${directory}; what is recorded of it is undone\n`;
      expect(await patchbay(["del", "once", "one", "-i", "eth1"])).toEqual({
        ...silent,
        stderr: `${told}patchbay del: "one" is not attached to network "once" as eth1, but as eth0\n`,
      });
      expect(await addresses(containers[0]!)).toContain("10.9.0.");
      expect(await patchbay(["del", "once", containers[0]!.netnsPath, "--container-id", "one"]))
        .toEqual({ ...silent, stderr: told });
      expect(await patchbay(["gc", "--gone"])).toEqual(silent);
      await machine.removeContainer(containers[1]!);
      await untilGone(machine);
      for (const words of [["once"], []]) {
        expect((await patchbay(["gc", ...words, "--gone", "--dry-run"])).stdout)
          .toStartWith("would delete eth0 of container two from network once (its namespace is gone");
      }
      expect(await patchbay(["gc", "--gone"]))
        .toEqual({ ...silent, stderr: `${told}deleting eth0 of container two from network once\n` });
      await machine.removeContainer(containers[0]!);
      expect(await leftSince(before, machine)).toEqual([]);
      expect((await patchbay(["gc", "once", "--gone"])).stderr).toContain("no net configuration");
    });
  }

  test("Go's host-local does not get GC before 1.1.0", async () => {
    const bin = mkdtempSync(`${directory}/older-`);
    symlinkSync(`${patchbayPlugins()}/bridge`, `${bin}/bridge`);
    symlinkSync(`${GO_PLUGINS}/host-local`, `${bin}/host-local`);
    network("older", [bridge], "1.0.0");
    expect(await patchbay(["gc", "older", "--all"], { CNI_PATH: bin })).toEqual(silent);
  });

  test("without a choice it only lists the attachments, and names the choices", async () => {
    network("one", [bridge]);
    const container = await newContainer();
    await patchbay(["add", "one", container.netnsPath, "--container-id", "live"]);
    // Another engine's cache.
    await machine.sh("rm -r /var/lib/cni/results");
    for (const words of [["gc", "one"], ["gc"]]) {
      expect(await patchbay(words)).toEqual({
        code: 0,
        stdout: "eth0 of container live from network one (not in the cache)\n",
        stderr: "nothing is deleted without a choice: --gone deletes those whose namespace is gone, " +
          "--valid CONTAINER/IFNAME all but those named, --all every one\n",
      });
    }
    for (const words of [["gc", "one", "--gone"], ["gc", "--gone"], ["gc", "one", "--valid", "live/eth0"]]) {
      expect(await patchbay(words)).toEqual(silent);
    }
    for (const choice of [["--all"], ["--valid", "live/eth0"]]) {
      expect((await patchbay(["gc", ...choice])).stderr).toStartWith(
        `patchbay gc: ${choice[0]} needs the NETWORK's name`,
      );
    }
    expect(await addresses(container)).toContain("10.9.0.");
    symlinkSync(PATCHBAY, `${directory}/cnitool`);
    const cnitool = () =>
      machine.run([`${directory}/cnitool`, "gc", "one", "/x"], { env: { NETCONFPATH: directory } });
    expect(await cnitool()).toEqual(silent);
    expect(await addresses(container)).toContain("10.9.0.");
    expect(await patchbay(["del", "one", container.netnsPath, "--container-id", "live"])).toEqual(silent);
    // What the cache knows, cnitool takes, as upstream's does.
    await patchbay(["add", "one", container.netnsPath, "--container-id", "live"]);
    expect(await cnitool())
      .toEqual({ ...silent, stderr: "deleting eth0 of container live from network one\n" });
    expect((await machine.run(["ip", "link", "show", "eth0"], { in: container })).code).not.toBe(0);
  });

  test("it announces all deletions before the first", async () => {
    network("one", [bridge]);
    const containers = await Promise.all([newContainer(), newContainer()]);
    for (const { netnsPath } of containers) await patchbay(["add", "one", netnsPath]);
    const { stderr } = await patchbay(["gc", "one", "--all"], { PATCHBAY_TRACE: "1" });
    const lines = stderr.trimEnd().split("\n").map((line) => line.startsWith("deleting"));
    expect(lines.slice(0, 2)).toEqual([true, true]);
    expect(lines.slice(2)).not.toContain(true);
    expect(await patchbay(["gc", "one", "--all", "--gone"]))
      .toMatchObject({ code: 2, stderr: expect.stringContaining("--gone and --all exclude each other") });
  });
});

describe("Go's plugins and ours in one network", () => {
  const mixed: [name: string, paths: string[]][] = [
    ["our bridge with Go's host-local", ["bridge=ours", "host-local=go"]],
    ["Go's bridge with our host-local", ["bridge=go", "host-local=ours"]],
  ];
  for (const [name, paths] of mixed) {
    test(name, async () => {
      const bin = mkdtempSync(`${directory}/mixed-`);
      for (const path of paths) {
        const [type, make] = path.split("=");
        symlinkSync(`${make === "go" ? GO_PLUGINS : patchbayPlugins()}/${type}`, `${bin}/${type}`);
      }
      const ipam = { ...bridge.ipam, ranges: [[{ subnet: "10.19.0.0/24" }]] };
      network("mixed", [{ ...bridge, bridge: "br1", ipam }], "1.0.0");
      const container = await newContainer();
      const env = { CNI_PATH: bin };
      const added = await patchbay(["add", "mixed", container.netnsPath], env);
      expect(added).toMatchObject({ code: 0 });
      const [{ address }] = JSON.parse(added.stdout).ips;
      expect(await addresses(container)).toContain(address);
      expect(await patchbay(["check", "mixed", container.netnsPath], env)).toEqual(silent);
      expect(await patchbay(["del", "mixed", container.netnsPath], env)).toEqual(silent);
      expect(await machine.sh("ls /var/lib/cni/networks/mixed /var/lib/cni/results")).not.toContain(
        address.split("/")[0],
      );
    });
  }
});

test("a second ADD fails and leaves the first attachment alone", async () => {
  network("one", [bridge]);
  const container = await newContainer();
  const first = await patchbay(["add", "one", container.netnsPath]);
  expect((await patchbay(["add", "one", container.netnsPath])).code).toBe(1);
  expect(await addresses(container)).toContain(JSON.parse(first.stdout).ips[0].address);
  expect(await patchbay(["check", "one", container.netnsPath])).toEqual(silent);
  expect(await patchbay(["del", "one", container.netnsPath])).toEqual(silent);
});
