/** What a call leaves in the worker: nothing of which the next call, or anybody else, notices anything. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { expect, test } from "bun:test";
import { type Hooked, startHooked } from "../../support/hooked.ts";
import { type Machine, openMachine, type Outcome, type RunOptions } from "../../support/machine.ts";
import { environmentOf, PATCHBAY, patchbayPlugins } from "../../support/plugins.ts";
import { childrenOf, startResident } from "../../support/resident.ts";
import { statusOf, untilServed } from "../../support/resident-status.ts";
import { untilTrue } from "../../support/until-true.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

/** What of a process others can see, and what its next call would find. */
function stateOf(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const value = (name: string) => new RegExp(`^${name}:\\s*(\\S+)`, "m").exec(status)![1]!;
  const thread = `/proc/${pid}/task/${pid}`;
  return {
    directory: readlinkSync(`/proc/${pid}/cwd`),
    namespaces: ["net", "mnt"].map((kind) => readlinkSync(`${thread}/ns/${kind}`)),
    signals: ["SigBlk", "SigIgn", "SigCgt"].map(value),
    umask: value("Umask"),
    capabilities: value("CapEff"),
    descriptors: readdirSync(`/proc/${pid}/fd`).map((fd) => target(pid, fd)).sort(),
    written: [1, 2].map((fd) => /^pos:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, "utf8"))![1]),
  };
}

/** The descriptors without numbers of inodes: what was stale is opened anew. */
function target(pid: number, fd: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`).replace(/\[\d+\]/, "");
  } catch {
    return "closed meanwhile";
  }
}

const ipam = { type: "host-local", subnet: "10.1.0.0/24" };
const bridge = { cniVersion: "1.1.0", name: "net", type: "bridge", isGateway: true, ipMasq: true, ipam };

interface Call {
  name: string;
  /** Default: `patchbay version`. */
  words?: string[];
  /** CNI_COMMAND of a plugin. */
  command?: string;
  conf?: Record<string, unknown>;
  env?: Record<string, string>;
  /** A command that runs before it, in the same shell. */
  script?: string;
  /** Default: it is served. */
  declined?: string;
}

const calls: Call[] = [
  { name: "ADD", command: "ADD" },
  { name: "CHECK without a result", command: "CHECK" },
  { name: "ADD that fails after its first effect", command: "ADD" },
  { name: "DEL", command: "DEL" },
  { name: "DEL without anything", command: "DEL" },
  { name: "a wrong configuration", command: "ADD", conf: { ...bridge, mtu: "big" } },
  { name: "a wrong namespace", command: "ADD", env: { CNI_NETNS: "/run/nowhere" } },
  { name: "a namespace that is another thing", command: "ADD", env: { CNI_NETNS: "/proc/1/ns/mnt" } },
  {
    name: "a path that is another one for each process",
    command: "ADD",
    env: { CNI_NETNS: "/proc/self/ns/net" },
    declined: "path of the process",
  },
  {
    name: "a variable that the next call does not set",
    env: { CNI_ARGS: "IgnoreUnknown=1;X=Y", XDG_RUNTIME_DIR: "/x" },
  },
  { name: "another state directory", command: "ADD", env: { PATCHBAY_STATE_DIR: "/run/state" } },
  { name: "the same, deleted", command: "DEL", env: { PATCHBAY_STATE_DIR: "/run/state" } },
  { name: "a trace in a file", command: "ADD", env: { PATCHBAY_TRACE: "/run/trace" } },
  { name: "a trace on stderr", command: "DEL", env: { PATCHBAY_TRACE: "1" } },
  { name: "a trace that cannot be written", command: "STATUS", env: { PATCHBAY_TRACE: "/run/no/trace" } },
  { name: "a directory of its own", script: "cd /run/mounted" },
  { name: "another umask", script: "umask 0", command: "ADD" },
  { name: "the same umask", script: "umask 0", command: "DEL" },
  { name: "blocked and ignored signals", script: "trap '' INT CHLD PIPE TERM" },
  { name: "a result for which a message is too short", words: ["lint", "/run/long"] },
  {
    name: "a directory that is hidden",
    script: "mkdir -p /run/hidden/one; cd /run/hidden/one; mount -t tmpfs tmpfs /run/hidden",
    declined: "directory",
  },
  ...[
    ["add", "net", "c1"],
    ["check", "net", "c1"],
    ["inspect", "--json"],
    ["plan", "net", "c1", "-i", "eth7"],
    ["status"],
    ["ls"],
    ["del", "net", "c1"],
    ["add", "net", "PID"],
    ["check", "net", "PID"],
    ["del", "net", "PID"],
    // The path leads to this very network namespace, which is refused.
    ["add", "net", "OWN"],
    ["hook", "add"],
  ].map((words): Call => ({ name: words.join(" "), words, script: ":" })),
  { name: "a command that is left to the caller", words: ["install", "--help"], declined: "command" },
  { name: "a command that lists what it changes", words: ["gc", "net", "--gone"], declined: "command" },
  { name: "a bus", env: { DBUS_SYSTEM_BUS_ADDRESS: "unix:path=/nowhere" }, declined: "bus" },
  { name: "DHCP", command: "STATUS", conf: { ...bridge, ipam: { type: "dhcp" } }, declined: "DHCP" },
  {
    name: "duplicate address detection",
    command: "STATUS",
    conf: { ...bridge, enabledad: true },
    declined: "duplicate address detection",
  },
  {
    name: "a directory of its own, declined",
    script: "cd /run/mounted",
    words: ["dhcp", "--help"],
    declined: "command",
  },
];

/** A process in a network namespace of its own. */
let holder: Hooked | undefined;

async function make(machine: Machine, call: Call): Promise<Outcome> {
  const { words = ["version"], command, conf = bridge, env = {}, script = ":" } = call;
  const container = machine.containers[0]!;
  const operands = words.map((word) =>
    word === "PID" ? `pid:${holder!.pid}` : word === "OWN" ? `pid:${machine.pid}` : word
  );
  const options: RunOptions = command === undefined ? { env: { NETCONFPATH: "/run/networks", ...env } } : {
    env: { ...environmentOf(patchbayPlugins(), { plugin: "bridge", command, conf, container }), ...env },
    stdin: JSON.stringify(conf),
  };
  const program = command === undefined ? [PATCHBAY, ...operands] : [`${patchbayPlugins()}/bridge`];
  return await machine.run(["sh", "-c", `${script}; exec "$@"`, "sh", ...program], options);
}

/** Answers that depend on nothing but what these calls say. */
async function answersOf(machine: Machine): Promise<unknown[]> {
  const answers = [];
  const args = { cni: { ips: ["10.2.0.9"] } };
  const conf = { ...bridge, name: "probe", args, ipam: { ...ipam, subnet: "10.2.0.0/24" } };
  for (const command of ["ADD", "CHECK", "DEL"]) {
    const call = { plugin: "host-local", command, conf, containerId: "probe", container: machine.containers[0]! };
    const options = { env: environmentOf(patchbayPlugins(), call), stdin: JSON.stringify(conf) };
    answers.push(await machine.run([`${patchbayPlugins()}/host-local`], options));
  }
  answers.push(await machine.run(["sh", "-c", `cd /run; ${PATCHBAY} version`]));
  answers.push(await machine.run([PATCHBAY, "lint", "/run/nowhere"]), await machine.run([PATCHBAY, "nonsense"]));
  // On a busy machine a call runs by itself, and waits for its turn.
  answers.push(
    await machine.sh("find /run/patchbay /var/lib/cni -printf '%p %m\\n' | grep -v 'lock\\|results\\|~turns' | sort"),
  );
  return answers;
}

test("a worker is after each call what it was before", async () => {
  await using machine = await openMachine();
  await machine.container("c1");
  await machine.sh(`
    mkdir /run/mounted /run/long; mount -t tmpfs tmpfs /run/mounted
    for at in $(seq 3000); do echo '{' >/run/long/$(printf %0100d $at).conflist; done`);
  const { cniVersion, name, ...plugin } = bridge;
  await machine.sh("mkdir /run/networks; cat >/run/networks/net.conflist", {
    stdin: JSON.stringify({ cniVersion, name, plugins: [plugin] }),
  });
  await using _held = holder = await startHooked(machine, "held");
  await using _resident = await startResident(machine, 1);
  const { workers } = await untilServed(machine), pid = workers[0]!.pid;
  // What it keeps from call to call is there after one of each kind.
  await make(machine, calls[0]!);
  await make(machine, calls[3]!);
  await answersOf(machine);
  const answers = await answersOf(machine), before = stateOf(pid);
  expect(before).toMatchObject({ directory: "/", umask: "0077", written: ["0", "0"] });
  const counted = async (reason: string | undefined) => {
    const { served, declined } = await statusOf(machine);
    return reason === undefined ? served : declined[reason] ?? 0;
  };
  for (const call of calls) {
    const count = await counted(call.declined);
    // A launcher does not wait long: on a busy machine its call may have run by itself.
    const attempt = async () => ({ outcome: await make(machine, call), count: await counted(call.declined) });
    const { outcome } = await untilTrue(attempt, (made) => made.count > count);
    const state = await untilTrue(() => stateOf(pid), (now) => Bun.deepEquals(now, before));
    expect([call.name, state]).toEqual([call.name, before]);
    if (!/ADD|DEL/.test(call.command ?? "") && call.script === undefined) {
      const alone = await make(machine, { ...call, env: { ...call.env, PATCHBAY_RESIDENT: "off" } });
      expect([call.name, outcome]).toEqual([call.name, alone]);
    }
    // An attachment of the table's own may be there.
    const same = (all: unknown[]) => all.slice(0, -1);
    expect([call.name, same(await answersOf(machine))]).toEqual([call.name, same(answers)]);
  }
  await machine.sh("umount /run/mounted; test -s /run/trace");
  // A child that removes a link ends later than its call, and the worker takes notice without another one.
  await make(machine, { name: "ADD", command: "ADD" });
  await make(machine, { name: "DEL", command: "DEL" });
  expect(await untilTrue(() => childrenOf(pid), ({ length }) => length === 0)).toEqual([]);
  expect(await answersOf(machine)).toEqual(answers);
});
