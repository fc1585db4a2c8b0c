/**
 * What is compiled for one processor, once through: the first code, the runtime, the programs that wait in our place, the
 * resident. `npm run test:vm` runs it on arm64 too.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Elf, PT_LOAD } from "../../compile/elf.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { environmentOf, PATCHBAY, patchbayPlugins, stdinOf } from "../support/plugins.ts";
import { SOCKET, startResident } from "../support/resident.ts";
import { ping } from "../support/traffic.ts";
import { withoutFirstCode } from "../support/without-first-code.ts";

const directory = mkdtempSync(join(tmpdir(), "patchbay-first-steps-"));
afterAll(() => rmSync(directory, { recursive: true }));

const ipam = { type: "host-local", subnet: "10.1.0.0/24" };
const bridge = { type: "bridge", bridge: "br0", isGateway: true, ipMasq: true, ipMasqBackend: "nftables", ipam };

/** The links of a namespace, and their IPv4 addresses. */
async function linksIn(machine: Machine, container?: Container) {
  const options = container === undefined ? {} : { in: container };
  const shown = JSON.parse(await machine.sh("ip -j -d address show", options)) as {
    ifname: string;
    linkinfo?: { info_kind: string };
    addr_info: { family: string; local: string; prefixlen: number }[];
  }[];
  return Object.fromEntries(shown.map(({ ifname, linkinfo, addr_info }) => [
    ifname.replace(/^veth.+/, "veth"),
    [linkinfo?.info_kind, ...addr_info.filter((one) => one.family === "inet").map((one) => one.local)],
  ]));
}

const withoutAttachment = { lo: [undefined, "127.0.0.1"], br0: ["bridge", "10.1.0.1"] };

test("the program is for this processor, and can be mapped with the largest of its pages", () => {
  const program = new Elf(readFileSync(PATCHBAY));
  expect(program.machine).toBe({ x64: "x86-64", arm64: "arm64" }[process.arch as string]!);
  const loadable = program.segments.filter(({ type }) => type === PT_LOAD);
  for (const { address, offset, alignment } of loadable) {
    expect({ address, distance: (address - offset) % alignment }).toEqual({ address, distance: 0 });
  }
  const largest = process.arch === "arm64" ? 65536 : 4096;
  expect(loadable.map(({ alignment }) => alignment >= largest)).not.toContain(false);
});

test("the runtime takes the bytecode, on whatever processor it was compiled", async () => {
  await using machine = await openMachine();
  const path = join(directory, "patchbay");
  // The first code hides the variable.
  writeFileSync(path, withoutFirstCode(PATCHBAY), { mode: 0o755 });
  const { stdout, stderr } = await machine.run([path, "version"], { env: { BUN_JSC_verboseDiskCache: "1" } });
  expect(stdout).toStartWith("patchbay ");
  expect(stderr).toContain("Cache hit for sourceCode");
  expect(stderr).not.toContain("Cache miss");
});

test("VERSION and help", async () => {
  await using machine = await openMachine();
  const version = await network(machine, bridge).call("VERSION", undefined);
  expect([version.code, version.json.cniVersion]).toEqual([0, "1.1.0"]);
  expect(await machine.sh(`${PATCHBAY} help`)).toContain("Usage: patchbay COMMAND");
  const hidden = await machine.run([PATCHBAY, "version"], {
    env: { BUN_BE_BUN: "1", BUN_OPTIONS: "--no-such-option" },
  });
  expect([hidden.code, hidden.stdout.split(" ")[0], hidden.stderr]).toEqual([0, "patchbay", ""]);
});

test("ADD, CHECK and DEL of bridge with host-local", async () => {
  await using machine = await openMachine();
  const container = await machine.container(), net = network(machine, bridge);
  await net.add(container);
  await net.del(container);
  const moment = await quietMoment(machine);

  const result = await net.add(container);
  expect(result.ips).toEqual([{ address: "10.1.0.3/24", gateway: "10.1.0.1", interface: 2 }]);
  expect(await linksIn(machine, container)).toEqual({ lo: [undefined], eth0: ["veth", "10.1.0.3"] });
  expect(await linksIn(machine)).toEqual({ ...withoutAttachment, veth: ["veth"] });
  expect(await machine.sh("nft list table inet patchbay_masquerade")).toContain("10.1.0.3");
  expect(await ping(machine, container, "10.1.0.1")).toBe(true);
  await net.check(container);
  await net.del(container);
  expect(await linksIn(machine, container)).toEqual({ lo: [undefined] });
  expect(await linksIn(machine)).toEqual(withoutAttachment);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("a state file that is a link is not followed", async () => {
  await using machine = await openMachine();
  const container = await machine.container(), net = network(machine, bridge);
  await net.add(container);
  const ledger = (await machine.sh("find /run/patchbay -type f -name '*eth0*'")).trim();
  await machine.sh(`mv "${ledger}" /run/elsewhere; ln -s /run/elsewhere "${ledger}"`);
  expect((await net.call("ADD", container)).json.msg).toContain("too many levels of symbolic links");
});

test("a child sends the request that removes the veth, and tells the kernel's answer", async () => {
  await using machine = await openMachine();
  const container = await machine.container(), net = network(machine, bridge);
  await net.add(container);
  const bin = patchbayPlugins(), conf = { cniVersion: "1.1.0", name: "net", ...bridge };
  const call = { plugin: "bridge", command: "DEL", container, conf };
  // A file for each process: their lines do not cut each other.
  const traced = ["strace", "-ff", "-o", "/run/trace", "-e", "trace=execve,exit_group,recvfrom", `${bin}/bridge`];
  expect(await machine.run(traced, { env: environmentOf(bin, call), stdin: stdinOf(call) }))
    .toEqual({ code: 0, stdout: "", stderr: "" });
  const children = (await machine.sh("grep -l patchbay-reaper /run/trace.*")).trim().split("\n");
  const traces = await Promise.all(children.map((file) => machine.sh(`cat ${file}`)));
  for (const trace of traces) {
    expect(trace).toMatch(/^execve\("\/proc\/\d+\/fd\/\d+", \["patchbay-reaper"\].* = 0$/m);
    expect(trace).toMatch(/^exit_group\(0\)/m);
  }
  expect(traces.filter((trace) => /^recvfrom\(3, .*NLMSG_ERROR/m.test(trace))).toHaveLength(1);
});

test("calls through a resident are done by it, and do the same", async () => {
  await using machine = await openMachine();
  const container = await machine.container(), net = network(machine, bridge);
  await net.add(container);
  await net.del(container);
  await using _resident = await ending(startResident(machine));
  const moment = await quietMoment(machine);
  const isServed = async () => {
    const { stderr } = await machine.run(["strace", "-e", "trace=openat", PATCHBAY, "version"]);
    return !stderr.includes("ld-linux");
  };
  while (!await isServed()) await Bun.sleep(10);

  await net.add(container);
  expect(await linksIn(machine, container)).toEqual({ lo: [undefined], eth0: ["veth", "10.1.0.3"] });
  expect(await linksIn(machine)).toEqual({ ...withoutAttachment, veth: ["veth"] });
  await net.del(container);
  expect(await linksIn(machine)).toEqual(withoutAttachment);
  expect(await isServed()).toBe(true);
  expect(await leftSince(moment, machine, new RegExp(SOCKET))).toEqual([]);
});

async function ending(starting: ReturnType<typeof startResident>) {
  const resident = await starting;
  return {
    async [Symbol.asyncDispose]() {
      resident.kill("SIGKILL");
      await resident.exited;
    },
  };
}
