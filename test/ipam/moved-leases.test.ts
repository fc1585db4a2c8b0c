/** host-local's leases move into a pool's directory: no address is free, or with two containers, at any moment. */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { holdsLease, releaseAddresses } from "../../src/ipam/claims.ts";
import { movedLeases } from "../../src/ipam/moved-leases.ts";
import { parseAddress } from "../../src/net/address.ts";
import { textOf } from "../support/if-there.ts";
import { add, endBoot, leaseDirectory, leaseFiles, rangeSet } from "../support/lease-directory.ts";
import { moveForTest } from "../support/move-leases.ts";
import { GO_PLUGINS } from "../support/plugins.ts";
import { random } from "../support/random.ts";

const CLOSED = "moved to pool p", SCRIPT = resolve(import.meta.dir, "../support/move-leases.ts");
/** A container's interface is `eth0`: lease-directory.ts. */
const set = rangeSet("10.1.0.0/28");

const owners = (directory: string) =>
  Object.fromEntries(Object.entries(leaseFiles(directory)).filter(([, text]) => text !== CLOSED));

test("containers keep their addresses, host-local gives none out any more, and a lease is released by either", () => {
  using from = leaseDirectory(), to = leaseDirectory();
  const one = add(from, set, "c1"), two = add(from, set, "c2");
  writeFileSync(join(from.path, "10.1.0.9"), "kept by hand");
  const before = from.files();
  expect(moveForTest(from.path, to.path)).toEqual({ kept: [one, two, "10.1.0.9"], closed: 16 });
  const inPool = { [one]: `${before[one]}\r\nnet`, [two]: `${before[two]}\r\nnet`, "10.1.0.9": "kept by hand" };
  expect(to.files()).toEqual(inPool);
  expect(owners(from.path)).toEqual({});
  expect(() => add(from, set, "c3")).toThrow("no IP addresses available");
  endBoot(from);
  expect(() => add(from, set, "c3")).toThrow("no IP addresses available");
  // Once more, as after a command that was killed at its end.
  expect(moveForTest(from.path, to.path)).toEqual({ kept: [], closed: 16 });
  expect(to.files()).toEqual(inPool);
  const [containerId, ifName] = before[one]!.split("\r\n") as [string, string];
  const moved = movedLeases(from.options, { containerId, ifName })!, hints = [parseAddress(one)!];
  expect(holdsLease(moved.options, moved.owner, hints)).toBe(true);
  expect(releaseAddresses(moved.options, moved.owner, hints)).toBe(1);
  expect(holdsLease(moved.options, moved.owner, hints)).toBe(false);
  expect(Object.keys(to.files())).toEqual([two, "10.1.0.9"].sort());
  expect(movedLeases(to.options, { containerId, ifName })).toBeUndefined();
});

test("the boot ends leases that have moved, also those of which ADD has not read yet", () => {
  using from = leaseDirectory(), to = leaseDirectory();
  const one = add(from, set, "c1");
  moveForTest(from.path, to.path);
  endBoot(to);
  expect(add(to, rangeSet("10.1.0.0/24"), "c9", { ip: one })).toBe(one);
});

test("a lease outside of the blocks, or an address that the pool has given to another: nothing is changed", () => {
  using from = leaseDirectory(), to = leaseDirectory();
  mkdirSync(from.path, { recursive: true });
  writeFileSync(join(from.path, "10.1.0.77"), "c7\r\neth0");
  expect(() => moveForTest(from.path, to.path)).toThrow(
    `${from.path}/10.1.0.77: the address is in none of the blocks of pool p`,
  );
  rmSync(join(from.path, "10.1.0.77"));
  writeFileSync(join(from.path, "10.1.0.7"), "c7\r\neth0");
  writeFileSync(join(to.path, "10.1.0.7"), "c8\r\neth0\r\nother");
  expect(() => moveForTest(from.path, to.path)).toThrow("10.1.0.7: c8 has the address by pool p");
  expect([from.files(), to.files()]).toEqual([{ "10.1.0.7": "c7\r\neth0" }, { "10.1.0.7": "c8\r\neth0\r\nother" }]);
  expect(existsSync(join(from.path, ".patchbay/moved"))).toBe(false);
});

const SYSCALLS = ["openat", "fsync", "rename", "write"] as const, STEP = 5;

test.each(SYSCALLS)("killed at %s, no lease is lost, and the next run goes on", async (syscall) => {
  let hits = 0;
  for (let nth = 1 + Math.floor(random() * STEP), misses = 0; misses < 2; nth += STEP) {
    using from = leaseDirectory(), to = leaseDirectory();
    const given = ["c1", "c2", "c3"].map((id) => add(from, set, id)), before = from.files();
    const isHit = await moveKilled(from.path, to.path, syscall, nth);
    if (isHit) hits++;
    else misses++;
    for (const address of given) {
      const [here, there] = [from.files()[address], to.files()[address]], moved = `${before[address]}\r\nnet`;
      expect([nth, here === CLOSED ? there : here]).toEqual([nth, here === CLOSED ? moved : before[address]!]);
    }
    moveForTest(from.path, to.path);
    expect([nth, owners(from.path)]).toEqual([nth, {}]);
    expect(Object.values(to.files())).toEqual(given.toSorted().map((address) => `${before[address]}\r\nnet`));
  }
  expect(hits).toBeGreaterThan(0);
}, 300_000);

async function moveKilled(from: string, to: string, syscall: string, nth: number): Promise<boolean> {
  const child = Bun.spawn([process.execPath, SCRIPT, from, to], { stdin: "pipe", stdout: "pipe", stderr: "pipe" });
  await child.stdout.getReader().read();
  const file = join(tmpdir(), `patchbay-move-${child.pid}`);
  const inject = ["-e", `trace=${syscall}`, "-e", `inject=${syscall}:signal=KILL:when=${nth}`];
  const tracer = Bun.spawn(["strace", "-f", "-o", file, "-p", String(child.pid), ...inject], {
    stdout: "ignore",
    stderr: "pipe",
  });
  await tracer.stderr.getReader().read();
  await child.stdin.end();
  await child.exited;
  await tracer.exited;
  const trace = textOf(file);
  rmSync(file, { force: true });
  return trace.includes("killed by SIGKILL");
}

test("while Go's host-local gives addresses out and takes them back: each goes over, or comes back", async () => {
  using from = leaseDirectory(), to = leaseDirectory();
  const conf = JSON.stringify({
    cniVersion: "1.0.0",
    name: "net",
    type: "bridge",
    ipam: { type: "host-local", subnet: "10.1.0.0/28", dataDir: from.path.slice(0, from.path.lastIndexOf("/")) },
  });
  const go = async (command: string, id: string) => {
    const child = Bun.spawn([join(GO_PLUGINS, "host-local")], {
      stdin: new TextEncoder().encode(conf),
      stdout: "pipe",
      env: { CNI_COMMAND: command, CNI_CONTAINERID: id, CNI_NETNS: "/x", CNI_IFNAME: "eth0", CNI_PATH: GO_PLUGINS },
    });
    const text = await child.stdout.text();
    return text === "" ? undefined : JSON.parse(text).ips?.[0].address.split("/")[0] as string | undefined;
  };
  const kept = new Map<string, string>();
  const working = Promise.all(["a", "b", "d"].map(async (name) => {
    for (let count = 0; count < 8; count++) {
      const id = `${name}${count}`, address = await go("ADD", id);
      if (address === undefined) return;
      if (count % 2 === 0) await go("DEL", id);
      else kept.set(address, `${id}\r\neth0`);
    }
  }));
  await Bun.sleep(20);
  moveForTest(from.path, to.path);
  await working;
  moveForTest(from.path, to.path);
  const wanted = Object.fromEntries([...kept].map(([address, text]) => [address, `${text}\r\nnet`]));
  // A DEL after its lease has moved is Go's, and finds nothing: such a lease ends with the boot.
  expect(to.files()).toMatchObject(wanted);
  expect(owners(from.path)).toEqual({});
  expect(await go("ADD", "late")).toBeUndefined();
  expect(readFileSync(join(from.path, "10.1.0.1"), "utf8")).toBe(CLOSED);
}, 120_000);
