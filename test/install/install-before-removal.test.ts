/** `install --uninstall --dry-run`: what packages ask before their links go, and what it answers while something is attached. */
import { expect, test } from "bun:test";
import { type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { PATCHBAY } from "../support/plugins.ts";

const BIN = "/run/plugins";

const asked = (machine: Machine, ...options: string[]) =>
  machine.run([PATCHBAY, "install", "--uninstall", "--dry-run", ...options, BIN]);
const files = (machine: Machine) => machine.sh(`cd ${BIN}; find . | LC_ALL=C sort`);

/** Links that lead out of the directory, as those of packages do. */
const packaged = (machine: Machine) =>
  machine.sh(`mkdir ${BIN}; for name in bridge tap; do ln -s ${PATCHBAY} ${BIN}/$name; done`);

/** iptables' rules are not asked about: every plugin finds them. */
const routed = { type: "bridge", isGateway: true, ipam: { type: "host-local", subnet: "10.1.0.0/24" } };

test.each(
  [
    ["nothing", undefined, [], 0],
    ["what Go's plugins remove, and none stays", routed, [], 3],
    ["what Go's plugins remove, and they come", routed, ["--replaced"], 0],
    ["what not every release of Go's plugins removes, and they come", { type: "tap", ipam: {} }, ["--replaced"], 3],
    ["what nobody removes, and that is wanted", { type: "tap", ipam: {} }, ["--force"], 0],
    ["entries of our own tables, and Go's plugins come", { ...routed, ipMasq: true, ipMasqBackend: "nftables" }, [
      "--replaced",
    ], 3],
  ] as const,
)("%s: nothing is changed, and the exit status says whether it may go", async (_, conf, options, code) => {
  await using machine = await openMachine();
  await packaged(machine);
  const container = await machine.container("c1"), net = conf && network(machine, conf);
  await net?.add(container);
  const before = await files(machine), said = await asked(machine, ...options);
  expect([said.code, await files(machine)]).toEqual([code, before]);
  if (code === 3) expect(said.stderr).toContain("eth0 of container ctr-c1 in network net");
  await net?.del(container);
  expect((await asked(machine)).code).toBe(0);
});

test("another plugin that is in the directory counts, and one whose file is kept", async () => {
  await using machine = await openMachine();
  await packaged(machine);
  const container = await machine.container("c1"), net = network(machine, routed);
  await net.add(container);
  expect((await asked(machine)).code).toBe(3);
  await machine.sh(`rm ${BIN}/bridge; cp /bin/true ${BIN}/bridge; cp /bin/true ${BIN}/host-local`);
  expect((await asked(machine)).code).toBe(0);
  await machine.sh(`${PATCHBAY} install --no-resident ${BIN}`);
  expect((await asked(machine)).code).toBe(0);
  await net.del(container);
});

test.each([
  ["the state directory", "chmod 777 /run/patchbay", "/run/patchbay"],
  ["a network's directory", "chmod 777 /run/patchbay/net", "/run/patchbay/net"],
  [
    "a network's directory behind a link",
    "mv /run/patchbay/net /run; ln -s /run/net /run/patchbay/net",
    "/run/patchbay/net",
  ],
  [
    "a ledger that is a link to nothing",
    "ln -sf /run/none /run/patchbay/net/ctr-c1@eth0@bridge",
    "/run/patchbay/net/ctr-c1@eth0@bridge",
  ],
  ["a ledger", "chmod 666 /run/patchbay/net/*@*", "/run/patchbay/net/ctr-c1@eth0@bridge"],
  ["a torn ledger", "truncate -s 20 /run/patchbay/net/*@*", "/run/patchbay/net/ctr-c1@eth0@bridge"],
])("%s that cannot be read or trusted: what is attached is not known", async (_, script, path) => {
  await using machine = await openMachine();
  await packaged(machine);
  const container = await machine.container("c1"), net = network(machine, routed);
  await net.add(container);
  await machine.sh(script);
  for (const options of [[], ["--replaced"]]) {
    const { code, stderr } = await asked(machine, ...options);
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: expect.stringContaining(`cannot be read or trusted:\n  ${path}\n`),
    });
  }
  expect((await asked(machine, "--force")).code).toBe(0);
  const real = await machine.run([PATCHBAY, "install", "--uninstall", BIN]);
  expect([real.code, await machine.sh(`ls ${BIN}`)]).toEqual([1, "bridge\ntap\n"]);
});

test("what a newer version made is what Go's plugins do not remove", async () => {
  await using machine = await openMachine();
  await packaged(machine);
  const container = await machine.container("c1"), net = network(machine, routed);
  await net.add(container);
  await machine.sh(`sed -i 's/"kind":"bridge[a-z-]*"/"kind":"from-the-future"/' /run/patchbay/net/*@*
    grep -q from-the-future /run/patchbay/net/*@*`);
  const { code, stderr } = await asked(machine, "--replaced");
  expect([code, stderr]).toEqual([
    3,
    expect.stringContaining("what a newer version of this program made (from-the-future)"),
  ]);
});

test("what cannot be asked is no refusal", async () => {
  await using machine = await openMachine();
  await machine.sh(`ln -s plugins ${BIN}`);
  expect(await asked(machine)).toEqual({
    code: 1,
    stdout: "",
    stderr: `patchbay install: open ${BIN}: too many levels of symbolic links\n`,
  });
});

test.each(["--dry-run", "--replaced", "--force"])("%s without --uninstall is refused", async (option) => {
  await using machine = await openMachine();
  const { code, stderr } = await machine.run([PATCHBAY, "install", option, BIN]);
  expect([code, stderr.split("\n")[0]]).toEqual([2, `patchbay install: ${option} needs --uninstall`]);
  expect(await machine.sh(`ls ${BIN} 2>/dev/null || echo none`)).toBe("none\n");
});

test("a directory with control characters in its name is refused: it would become lines of a unit", async () => {
  await using machine = await openMachine();
  expect((await machine.run([PATCHBAY, "install", "/run/\u009b2J"])).code).toBe(2);
  const { code, stderr } = await machine.run([PATCHBAY, "install", "/run/x\nExecStartPre=/bin/touch /run/y"]);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('"/run/x\\nExecStartPre=/bin/touch /run/y" has control characters'),
  ]);
});

test("somebody who holds the directory's lock does not keep others from installing", async () => {
  await using machine = await openMachine();
  await machine.sh(`mkdir -m 755 ${BIN}`);
  const script = `exec 9<${BIN}; flock -x 9; echo held; exec sleep 1000`;
  const holder = machine.start(["setpriv", "--reuid=65534", "--clear-groups", "sh", "-c", script]);
  await holder.stdout.getReader().read();
  const { code, stderr } = await machine.run([PATCHBAY, "install", "--no-resident", BIN]);
  expect([code, stderr]).toEqual([0, expect.stringContaining("goes on without the lock")]);
  holder.kill("SIGKILL");
  await holder.exited;
});
