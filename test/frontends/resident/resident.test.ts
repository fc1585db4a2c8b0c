/**
 * Calls through a resident: the same answers and the same kernel as by themselves, whatever happens to the resident.
 */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { openMachine } from "../../support/machine.ts";
import { network } from "../../support/network.ts";
import { childrenOf, SOCKET, startResident } from "../../support/resident.ts";
import { statusOf, untilServed as untilPresent } from "../../support/resident-status.ts";
import { untilTrue } from "../../support/until-true.ts";
import { openResident, openServing, traceOf, untilServed } from "../../support/served.ts";
import { environmentOf, PATCHBAY, patchbayPlugins } from "../../support/plugins.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const ipam = { type: "host-local", subnet: "10.1.0.0/24" };
const conf = { type: "bridge", isGateway: true, ipMasq: true, ipam };

test("a resident serves what is like it, and nobody else", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  expect(await traceOf(machine)).toBe("alone");
  await using resident = await openServing(machine);
  expect(await traceOf(machine, { env: { PATCHBAY_RESIDENT: "off" } })).toBe("alone");
  expect(await traceOf(machine, { in: container })).toBe("alone");
  const others = [
    ["setpriv", "--bounding-set=-net_admin"],
    ["setpriv", "--reuid=65534", "--clear-groups"],
    ["unshare", "--mount"],
    ["unshare", "--user", "--map-root-user"],
  ];
  for (const other of others) {
    const command = ["strace", "-f", "-e", "trace=openat", ...other, PATCHBAY, "version"];
    const { stderr, code } = await machine.run(command);
    expect([other, code, stderr.includes("ld-linux")]).toEqual([other, 0, true]);
  }
  expect(resident.workers().length).toBeGreaterThan(0);
});

/** Runs a command as a process of which `/proc` says something else. */
function saying(file: string, text: string): string[] {
  const script = `${text} >/run/said; mount --bind /run/said /proc/$$/${file}; exec "$@"`;
  return ["sh", "-ec", script, "sh"];
}

const withStatus = (name: string, value: string) =>
  saying("status", `sed 's/^${name}:.*/${name}:\t${value}/' /proc/$$/status`);

test("a caller is declined for each difference, and for no other", async () => {
  await using machine = await openMachine();
  await machine.sh("mkdir /run/root; mount --rbind / /run/root; mount --make-rprivate /run/root");
  await using _resident = await openResident(machine);
  const callers: [outcome: string, as: string[]][] = [
    ["served", []],
    ["served", ["unshare", "--uts", "--ipc", "--cgroup"]],
    ["served", withStatus("Groups", "0 1 2")],
    ["uid", ["setpriv", "--regid=7", "--clear-groups"]],
    ["uid", withStatus("Uid", "0\\t0\\t0\\t7")],
    ["namespace", ["unshare", "--net"]],
    ["namespace", ["chroot", "/run/root"]],
    ["capabilities", ["setpriv", "--bounding-set=-net_admin"]],
    ["capabilities", withStatus("CapPrm", "0")],
    ["capabilities", withStatus("CapEff", "0")],
    ["capabilities", withStatus("CapBnd", "0")],
    ["confinement", ["setpriv", "--no-new-privs"]],
    ["confinement", withStatus("Seccomp", "2")],
    ["confinement", withStatus("Seccomp_filters", "2")],
    // Launchers in these places know by themselves that the resident is not for them.
    ["not asked", ["unshare", "--mount"]],
    ["not asked", ["unshare", "--user", "--map-root-user"]],
    ["not asked", ["unshare", "--pid", "--fork"]],
    ["not asked", ["setpriv", "--reuid=65534", "--clear-groups"]],
  ];
  for (const [outcome, as] of callers) {
    const before = await statusOf(machine);
    const call = async () => {
      expect([as, await machine.run([...as, PATCHBAY, "version"])]).toMatchObject([as, { code: 0 }]);
      const { served, declined } = await statusOf(machine);
      const reasons = Object.keys(declined).filter((reason) => declined[reason] !== before.declined[reason]);
      return served === before.served ? reasons : [...reasons, "served"];
    };
    // A launcher does not wait long: on a busy machine its call may have run by itself.
    const reasons = await untilTrue(call, ({ length }) => length > 0 || outcome === "not asked");
    expect([as, reasons]).toEqual([as, outcome === "not asked" ? [] : [outcome]]);
  }
});

test("a caller with another label of a security module is declined", async () => {
  await using machine = await openMachine();
  await using _resident = await startResident(machine, 1);
  const { workers: [worker] } = await untilPresent(machine);
  await machine.sh(`echo engine >/run/label; mount --bind /run/label /proc/${worker!.pid}/attr/current`);
  const callAs = async (label: string) => {
    const as = saying("attr/current", `echo ${label}`).map((word) => `'${word}'`).join(" ");
    await machine.sh(`${as} ${PATCHBAY} version`);
    const { served, declined } = await statusOf(machine);
    return { isServed: served > 0, declined };
  };
  const heard = await untilTrue(() => callAs("container"), ({ declined }) => Object.keys(declined).length > 0);
  expect(heard).toEqual({ isServed: false, declined: { confinement: 1 } });
  expect((await untilTrue(() => callAs("engine"), ({ isServed }) => isServed)).declined).toEqual({ confinement: 1 });
});

test("the same answers as without, and nothing is left", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, conf);
  const alone = await roundOf();
  const moment = await quietMoment(machine);
  await using resident = await openServing(machine);
  for (let count = 0; count < 20; count++) expect(await roundOf()).toEqual(alone);
  // Each call forgets the children of earlier ones. When several calls come at the same time, each worker gets one.
  await untilTrue(
    () => Promise.all(Array.from({ length: 8 }, () => traceOf(machine))),
    () => resident.workers().every((pid) => childrenOf(pid).length === 0),
  );
  expect(await leftSince(moment, machine)).toEqual([]);

  async function roundOf() {
    const added = await net.call("ADD", container);
    const links = await machine.sh("ip -o -4 address show eth0 | grep -c 10.1.0.", { in: container });
    const checked = await net.call("CHECK", container);
    const again = await net.call("ADD", container);
    const wrong = await network(machine, { ...conf, mtu: "big" }).call("ADD", container);
    const deleted = await net.call("DEL", container);
    const gone = await machine.run(["ip", "link", "show", "eth0"], { in: container });
    const outcomes = [added, checked, again, wrong, deleted].map(({ code, stdout, stderr }) => {
      const text = (written: string) => written.replace(/([0-9a-f]{2}:){5}[0-9a-f]{2}|10\.1\.0\.\d+|veth\w+/g, "…");
      return [code, text(stdout), text(stderr)];
    });
    return { outcomes, links, gone: gone.code };
  }
});

test("stdin may be a pipe, a file that is read from its middle, or missing", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const call = { plugin: "bridge", command: "ADD", container, conf: { cniVersion: "1.1.0", name: "net", ...conf } };
  const env = environmentOf(patchbayPlugins(), call), text = JSON.stringify(call.conf);
  const through = async (CNI_COMMAND: string, script: string) => {
    const plugin = `${patchbayPlugins()}/bridge`, words = ["sh", "-c", script, plugin];
    return await machine.run(words, { env: { ...env, CNI_COMMAND, TEXT: text } });
  };
  await using _resident = await openServing(machine);
  const ways = [
    `printf %s "$TEXT" | $0`,
    `(sleep 0.1; printf %s "$TEXT") | $0`,
    `printf 'first line\n%s' "$TEXT" >/run/conf; { read -r _; exec $0; } </run/conf`,
  ];
  for (const way of ways) {
    const added = await through("ADD", way);
    expect([way, added.code, JSON.parse(added.stdout).ips?.length]).toEqual([way, 0, 1]);
    expect([way, await through("DEL", way)]).toEqual([way, { code: 0, stdout: "", stderr: "" }]);
  }
  const without = await through("ADD", "exec $0 <&-");
  expect([without.code, JSON.parse(without.stdout).code]).toEqual([1, 6]);
});

test("workers are killed again and again: every call succeeds, and nothing is left", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, conf);
  const addresses = network(machine, {
    type: "host-local",
    name: "addresses",
    ipam: { ...ipam, subnet: "10.2.0.0/24" },
  });
  await addresses.once(container);
  await net.once(container);
  const moment = await quietMoment(machine);
  await using resident = await openServing(machine);
  let isRunning = true;
  const killing = (async () => {
    for (let turn = 0; isRunning; turn++) {
      await Bun.sleep(1 + turn % 13);
      await machine.sh(`kill -KILL ${resident.workers().join(" ")} 2>/dev/null || true`);
      await machine.sh(`until ${PATCHBAY} version >/dev/null; do :; done`);
      await Bun.sleep(turn % 3 === 0 ? 250 : 0);
    }
  })();
  for (let count = 0; count < 60; count++) {
    await net.once(container);
    await addresses.once(container);
  }
  isRunning = false;
  await killing;
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("a resident that is stopped, gone or has left its socket behind costs time, and no call", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, conf);
  const resident = await openServing(machine);
  for (const pid of resident.workers()) process.kill(pid, "SIGSTOP");
  await net.add(container);
  for (const pid of resident.workers()) process.kill(pid, "SIGCONT");
  await net.del(container);
  await resident.kill("SIGKILL");
  expect(await machine.sh(`ls ${SOCKET}`)).toContain(SOCKET);
  await net.once(container);
  await using again = await openServing(machine);
  await net.once(container);
  expect(again.workers().length).toBeGreaterThan(0);
});

const hostile = `
  import { bind, libc } from "${import.meta.dir}/../../../src/ffi/libc.ts";
  const { connect } = bind({ connect: { args: ["i32", "ptr", "u32"], returns: "i32" } });
  const address = new Uint8Array([1, 0, ...new TextEncoder().encode("${SOCKET}"), 0]);
  const open = () => {
    const fd = libc.socket(1, 5, 0);
    if (connect(fd, address, address.length) !== 0) throw new Error("connect");
    return fd;
  };
  const send = (fd, bytes) => libc.sendto(fd, bytes, bytes.length, 0x4000, null, 0);
  const head = (...numbers) => {
    const bytes = new Uint8Array(32);
    numbers.forEach((value, index) => new DataView(bytes.buffer).setUint32(index * 4, value, true));
    return bytes;
  };
  const messages = [
    new Uint8Array(0), new Uint8Array(1), new Uint8Array(32), new Uint8Array(150000).fill(255),
    head(0x31424350, 1, 0), head(0x31424350, 0xffffffff, 0xffffffff), head(0x31424350, 0, 0),
    new Uint8Array([...head(0x31424350, 1, 1), 47, 0, 65, 0, 66, 0]), new Uint8Array([...head(0x31424350, 1, 1), 47, 0, 65]),
  ];
  for (let count = 0; count < 300; count++) {
    const fd = open();
    if (count % 10 !== 9) send(fd, messages[count % messages.length]);
    libc.close(fd);
  }
  // Callers that say nothing and never read.
  const silent = Array.from({ length: 20 }, open);
  for (const fd of silent) send(fd, messages[3]);
  console.log("done");
`;

test("rubbish, half messages and callers that never read cost no worker", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, conf);
  await using resident = await openServing(machine);
  const before = resident.workers();
  const { stdout, stderr } = await machine.run([process.execPath, "-e", hostile]);
  expect(stderr).toBe("");
  expect(stdout).toBe("done\n");
  await net.once(container);
  await untilServed(machine);
  expect(resident.workers()).toEqual(before);
});

test("a network may have the name of the socket", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, { ...conf, name: "serve.sock" });
  await using _resident = await openServing(machine);
  await net.once(container);
  expect(await traceOf(machine)).toBe("served");
});
