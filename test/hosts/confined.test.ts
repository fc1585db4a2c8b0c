/** What the program says on a host that does not let it run, and what it does without: in the words that its caller knows. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { confined, type Confinement, hasMdwe } from "../support/confined.ts";
import { environmentOf, PATCHBAY, patchbayPlugins, stdinOf } from "../support/plugins.ts";
import { startResident } from "../support/resident.ts";
import { untilTrue } from "../support/until-true.ts";

let machine: Machine, container: Container;
beforeAll(async () => {
  machine = await openMachine();
  container = await machine.container();
  await machine.sh(`ln -s ${PATCHBAY} /run/netavark`);
});
afterAll(() => machine[Symbol.asyncDispose]());

const conf = {
  cniVersion: "1.1.0",
  name: "net",
  type: "bridge",
  ipMasq: true,
  ipMasqBackend: "nftables",
  ipam: { type: "host-local", subnet: "10.1.0.0/24" },
};

/** A call of bridge with words before it; `env` has variables that differ. */
async function bridge(command: string, before: readonly string[], env: Record<string, string> = {}) {
  const bin = patchbayPlugins(), call = { plugin: "bridge", command, conf, container, env };
  const words = [...before, `${bin}/bridge`];
  const outcome = await machine.run(words, { env: environmentOf(bin, call), stdin: stdinOf(call) });
  return { ...outcome, json: outcome.stdout === "" ? undefined : JSON.parse(outcome.stdout) };
}

/** In a mount namespace of its own, after the script. */
const after = (script: string) => ["unshare", "--mount", "sh", "-ec", `${script}; exec "$@"`, "sh"];

const forbidden = "memory that is writable and executable is forbidden here";
const allow = expect.stringContaining("MemoryDenyWriteExecute=no of systemd");
const noProc = "/proc is not mounted here";
const here = "/lib64/ld-linux-x86-64.so.2", loader = process.arch === "arm64" ? "/lib/ld-linux-aarch64.so.1" : here;

/** What the first code says, before the runtime can say anything. */
const unfit: Record<string, { before: string[]; msg: string; remedy: unknown }> = {
  "a filter as systemd's against writable and executable memory": {
    before: confined({ writeOrExecute: "by a filter" }),
    msg: forbidden,
    remedy: allow,
  },
  ...hasMdwe() && {
    "the kernel forbids writable and executable memory": {
      before: confined({ writeOrExecute: "by the kernel" }),
      msg: forbidden,
      remedy: allow,
    },
  },
  "no /proc": {
    before: after("mount -t tmpfs none /proc"),
    msg: noProc,
    remedy: "mount it: mount -t proc proc /proc",
  },
  "no C library": {
    before: noLibrary(),
    msg: `this host has no dynamic loader ${loader}`,
    remedy: expect.stringContaining("install the C library that it belongs to"),
  },
};

/** Nothing but the program and a static shell. */
function noLibrary(): string[] {
  const root = "/run/bare";
  return after(`
    mkdir -p ${root}/bin ${root}/proc ${root}/program
    cp /bin/busybox ${root}/bin
    mount -t proc proc ${root}/proc
    for path in ${PATCHBAY} /run; do mkdir -p ${root}$(dirname $path); done
    touch ${root}${PATCHBAY} && mount --bind ${PATCHBAY} ${root}${PATCHBAY}
    mkdir -p ${root}${patchbayPlugins()} && mount --bind ${patchbayPlugins()} ${root}${patchbayPlugins()}
    mkdir -p ${root}/run && ln -sf ${PATCHBAY} ${root}/run/netavark
    set -- chroot ${root} "$@"`);
}

for (const [name, { before, msg, remedy }] of Object.entries(unfit)) {
  test(`${name}: a plugin's error, netavark's, a line for a person`, async () => {
    for (const command of ["ADD", "DEL", "VERSION"]) {
      const { code, json, stderr } = await bridge(command, before);
      expect({ code, json, stderr }).toEqual({
        code: 1,
        json: { cniVersion: "1.1.0", code: 5, msg, details: remedy },
        stderr: "",
      });
    }
    const line = await machine.run([...before, PATCHBAY, "version"]);
    expect([line.code, line.stdout]).toEqual([1, ""]);
    expect(line.stderr).toStartWith(`patchbay: ${msg}; `);
    expect(line.stderr.indexOf("\n")).toBe(line.stderr.length - 1);
    const podmans = await machine.run([...before, "/run/netavark", "setup", "/run/none"], { stdin: "{}" });
    expect([podmans.code, podmans.stderr]).toEqual([1, ""]);
    expect(JSON.parse(podmans.stdout)).toEqual({ error: expect.stringContaining(`${msg}; `) });
  });
}

test("a call with the variables of a call of CNI, and words, is a person's", async () => {
  const words = [...after("mount -t tmpfs none /proc"), PATCHBAY, "version"];
  const { stdout, stderr } = await machine.run(words, { env: { CNI_COMMAND: "ADD" } });
  expect([stdout, stderr.startsWith(`patchbay: ${noProc}`)]).toEqual(["", true]);
});

const filtered = "this process has a filter of system calls (seccomp), which may forbid this one";

/** Calls that nothing works without: the error names the call and says why. */
const needed: [NonNullable<Confinement["refused"]>[number], string][] = [
  ["socket", "socket AF_NETLINK"],
  ["setns", "setns "],
  ["statx", "stat "],
  ["getrandom", "getrandom"],
];
for (const [refused, named] of needed) {
  test.each(["EPERM", "ENOSYS"] as const)(
    `a filter that refuses ${refused} is named in the error: %s`,
    async (errno) => {
      const { code, json } = await bridge("ADD", confined({ refused: [refused], errno }));
      expect([code, json.msg]).toEqual([1, expect.stringContaining(named)]);
      expect(json.details).toContain(filtered);
      expect((await bridge("DEL", [])).code).toBe(0);
    },
  );
}

/** Calls that newer kernels have, and filters of older engines do not know. */
test.each(["memfd_create", "pidfd_open"] as const)("without %s ADD, CHECK and DEL are done", async (refused) => {
  for (const errno of ["EPERM", "ENOSYS"] as const) {
    const before = confined({ refused: [refused], errno });
    const added = await bridge("ADD", before);
    expect([added.code, added.json.ips?.length]).toEqual([0, 1]);
    const call = { plugin: "bridge", command: "CHECK", conf: { ...conf, prevResult: added.json }, container };
    const bin = patchbayPlugins(), options = { env: environmentOf(bin, call), stdin: stdinOf(call) };
    expect((await machine.run([...before, `${bin}/bridge`], options)).code).toBe(0);
    expect((await bridge("DEL", before)).code).toBe(0);
    expect(await machine.sh("ip -br link show type veth")).toBe("");
  }
});

// The resident sees that a filter makes the caller differ from itself.
if (hasMdwe()) {
  test("a resident serves a caller that may not have such memory by the kernel", servedWithout);
}

async function servedWithout(): Promise<void> {
  const resident = await startResident(machine);
  try {
    const before = confined({ writeOrExecute: "by the kernel" });
    await untilTrue(async () => (await bridge("VERSION", before)).code, (code) => code === 0);
    expect((await bridge("ADD", before)).code).toBe(0);
    expect((await bridge("DEL", before)).code).toBe(0);
  } finally {
    resident.kill("SIGKILL");
    await resident.exited;
  }
}
