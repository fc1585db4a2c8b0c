/**
 * netavark's setup and teardown through a resident: what it serves, what it leaves to the caller's own process, and that
 * nothing stays of a call whose worker or caller dies.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { startBus, startFirewalld } from "../../../support/firewalld.ts";
import { leftSince, quietMoment } from "../../../support/leftovers.ts";
import { type Machine, openMachine } from "../../../support/machine.ts";
import { attach, bridgeNetwork, containerIn, published } from "../../../support/netavark/attached.ts";
import { creation } from "../../../support/netavark/creation.ts";
import { AARDVARK, ND } from "../../../support/netavark/names.ts";
import { netavark, netavarkProgram } from "../../../support/netavark/netavark.ts";
import { statusOf } from "../../../support/resident-status.ts";
import { openServing, whileDying } from "../../../support/served.ts";
import { ping } from "../../../support/traffic.ts";
import { untilTrue } from "../../../support/until-true.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const simple = () => containerIn([{ network: bridgeNetwork() }], 1, [published(8080, 80)]);

/** The table and netavark's directory stay after the last container. */
async function momentAfterOne(machine: Machine) {
  const container = await machine.container("first"), input = containerIn([{ network: bridgeNetwork(9) }], 9);
  for (const verb of ["setup", "teardown"] as const) {
    expect(await attach(machine, verb, container, input)).toMatchObject({ code: 0, stderr: "" });
  }
  await machine.removeContainer(container);
  return await quietMoment(machine);
}

/** What the resident says of a call: served, why not, or that nobody asked it. On a busy machine it may not have been asked. */
async function howRun(machine: Machine, call: () => Promise<unknown>): Promise<string[]> {
  const before = await statusOf(machine);
  await call();
  const { served, declined } = await statusOf(machine);
  const reasons = Object.keys(declined).filter((reason) => declined[reason] !== before.declined[reason]);
  return served > before.served ? [...reasons, "served"] : reasons;
}

/** The process that has the lock of a file. */
async function holderOf(machine: Machine, path: string): Promise<number | undefined> {
  const inode = (await machine.sh(`stat -c %i ${path}`)).trim();
  const line = readFileSync("/proc/locks", "utf8").split("\n").find((one) => one.includes(`:${inode} `));
  return line === undefined ? undefined : Number(line.split(/ +/)[4]);
}

const isAsked = ({ length }: readonly string[]) => length > 0;

test("setup and teardown are served: the answer is the same, packets pass, and nothing stays", async () => {
  await using machine = await openMachine();
  const moment = await momentAfterOne(machine), container = await machine.container(), input = simple();
  const alone = await attach(machine, "setup", container, input);
  await attach(machine, "teardown", container, input);
  await using _resident = await openServing(machine);
  const how = await untilTrue(() =>
    howRun(machine, async () => {
      const { code, json, stdout, stderr } = await attach(machine, "setup", container, input);
      const mac = json.net8.interfaces.eth0.mac_address;
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toBe(alone.stdout.replace(alone.json.net8.interfaces.eth0.mac_address, mac));
      expect(await ping(machine, undefined, "10.88.0.11")).toBe(true);
      expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stdout: "", stderr: "" });
    }), isAsked);
  expect(how).toEqual(["served"]);
  // What netavark refuses it refuses in the same words.
  const refused = (env = {}) => attach(machine, "setup", { netnsPath: "/run/netns/nowhere" }, input, env);
  const answer = await refused();
  expect(answer).toEqual(await refused({ PATCHBAY_RESIDENT: "off" }));
  expect(answer.json.error).toContain("invalid namespace path");
  await machine.removeContainer(container);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("what may wait for others runs by itself", async () => {
  await using machine = await openMachine();
  const container = await machine.container(), input = simple();
  const driver = "#!/bin/sh\ncat >/dev/null\necho '{}'\n";
  await machine.sh("mkdir -p /run/drivers; cat >/run/drivers/other; chmod 755 /run/drivers/other", { stdin: driver });
  await using _resident = await openServing(machine);
  const of = (network: ReturnType<typeof bridgeNetwork>, ...options: string[]) => async () => {
    for (const verb of ["setup", "teardown"]) {
      await netavark(machine, ["-c", ND, ...options, verb, container.netnsPath], containerIn([{ network }]));
    }
  };
  const how = (call: () => Promise<unknown>) => untilTrue(() => howRun(machine, call), isAsked);
  const named = bridgeNetwork(8, { dns_enabled: true });
  expect(await how(of(named, "-a", AARDVARK))).toEqual(["aardvark-dns"]);
  expect(await how(of(bridgeNetwork(8, { driver: "other" }), "--plugin-directory", "/run/drivers")))
    .toEqual(["another program"]);
  const leased = bridgeNetwork(8, { options: { mode: "unmanaged" }, subnets: [], ipam_options: { driver: "dhcp" } });
  expect(await how(of(leased))).toEqual(["DHCP"]);
  await machine.sh(`mkdir -p ${ND}/firewall`);
  const declinedForLock = async () => (await statusOf(machine)).declined["netavark's lock"] ?? 0;
  // The second one is taken in the middle of the work.
  for (const lock of [ND, `${ND}/firewall/firewall-reload.lock`]) {
    const before = await declinedForLock(), holder = machine.start(["flock", lock, "sleep", "infinity"]);
    await untilTrue(() => machine.run(["flock", "-n", lock, "true"]), ({ code }) => code !== 0);
    const begun = attach(machine, "setup", container, input);
    await untilTrue(declinedForLock, (count) => count > before);
    await machine.sh(`kill $(ps -o pid= --ppid ${holder.pid})`);
    expect(await begun).toMatchObject({ code: 0 });
    expect(await machine.sh("ls /sys/class/net | grep -c veth")).toBe("1\n");
    expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stdout: "", stderr: "" });
  }
  {
    await using _bus = await startBus(machine);
    // On a busy machine the bus may not answer in time.
    const call = () => howRun(machine, of(bridgeNetwork()));
    expect(await untilTrue(call, (how) => how.join() === "served")).toEqual(["served"]);
    await using _firewalld = await startFirewalld(machine);
    expect(await how(of(bridgeNetwork()))).toEqual(["firewalld"]);
  }
  // These are not even handed over.
  const before = await statusOf(machine);
  for (const env of [{}, { CNI_COMMAND: "ADD" }] as Record<string, string>[]) {
    expect(await netavark(machine, ["create"], creation(), { env })).toMatchObject({ code: 0 });
  }
  await machine.sh("cat >/run/input", { stdin: JSON.stringify(input) });
  for (const file of [["--file", "/run/input"], ["-f/run/input"], ["--file=/run/input"]]) {
    for (const verb of ["setup", "teardown"]) {
      expect(await netavark(machine, ["-c", ND, ...file, verb, container.netnsPath])).toMatchObject({ code: 0 });
    }
  }
  // They answer without reading their stdin, which never ends here.
  for (
    const words of [["setup", "--help"], ["-c", "setup", "version"], ["setup", "/x"], ["-c", ND, "setup", "--help"]]
  ) {
    const asked = machine.start([netavarkProgram(), ...words]);
    await asked.exited;
  }
  const { served, declined } = await statusOf(machine);
  expect({ served, declined }).toEqual({ served: before.served, declined: before.declined });
});

test("names that an earlier container has left are taken away by the caller, and then its own setup is as ever", async () => {
  await using machine = await openMachine();
  const [dead, container] = [await machine.container("dead"), await machine.container()];
  const named = containerIn([{ network: bridgeNetwork(7, { dns_enabled: true }) }], 2);
  await machine.sh(`mkdir -p ${ND}`);
  expect(await netavark(machine, ["-c", ND, "-a", AARDVARK, "setup", dead.netnsPath], named)).toMatchObject({
    code: 0,
  });
  await machine.removeContainer(dead);
  await using _resident = await openServing(machine);
  const how = await howRun(machine, async () => {
    expect(await attach(machine, "setup", container, simple())).toMatchObject({ code: 0, stderr: "" });
  });
  // On a busy machine it may not have been asked.
  expect(["", "aardvark-dns"]).toContain(how.join());
  expect(await machine.sh(`ls -I 'serve*' /run/patchbay; ls ${ND}/aardvark-dns`)).toBe("net8\n");
  expect(await attach(machine, "teardown", container, simple())).toMatchObject({ code: 0 });
});

test("subnets that an earlier container has left in firewalld's zone go, while the resident leaves them to the caller", async () => {
  await using machine = await openMachine();
  await using _bus = await startBus(machine);
  await using firewalld = await startFirewalld(machine);
  const [dead, container] = [await machine.container("dead"), await machine.container()];
  const earlier = containerIn([{ network: bridgeNetwork(5) }], 5);
  expect(await attach(machine, "setup", dead, earlier)).toMatchObject({ code: 0 });
  expect(firewalld.sources().length).toBe(2);
  await machine.removeContainer(dead);
  await using _resident = await openServing(machine);
  expect(await attach(machine, "setup", container, simple())).toMatchObject({ code: 0, stderr: "" });
  // Another firewall than at setup: nothing of this call says that firewalld may be asked.
  const env = { NETAVARK_FW: "none" };
  expect(await attach(machine, "teardown", container, simple(), env)).toMatchObject({ code: 0, stderr: "" });
  expect(firewalld.sources()).toEqual([]);
  expect(await machine.sh("ls -I 'serve*' /run/patchbay")).toBe("");
  const { declined } = await statusOf(machine);
  expect(Object.keys(declined)).toEqual(["firewalld"]);
});

/** At moments of the call that are far apart: a line in the ledger, a link, rules, the answer. */
const moments = ["sendmsg:signal=KILL:when=2", ...[1, 3, 6, 9].map((nth) => `write:signal=KILL:when=${nth}`)];

test.each(moments)(
  "a worker that dies in setup (%s) leaves the container attached, as one call does",
  async (injection) => {
    await using machine = await openMachine();
    const moment = await momentAfterOne(machine), container = await machine.container(), input = simple();
    await using resident = await openServing(machine);
    const answer = await whileDying(machine, resident, injection, () => attach(machine, "setup", container, input));
    expect(answer).toMatchObject({ code: 0, json: { net8: expect.anything() } });
    expect(await machine.sh("ls /sys/class/net | grep -c veth")).toBe("1\n");
    expect(await ping(machine, undefined, "10.88.0.11")).toBe(true);
    expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stdout: "" });
    await machine.removeContainer(container);
    expect(await leftSince(moment, machine)).toEqual([]);
  },
);

const inTeardown = [1, 2, 4, 7].map((nth) => `recvfrom:signal=KILL:when=${nth * 4}`);

test.each(inTeardown)(
  "a worker that dies in teardown (%s): the caller goes on, and says nothing of it",
  async (injection) => {
    await using machine = await openMachine();
    const moment = await momentAfterOne(machine), container = await machine.container(), input = simple();
    expect(await attach(machine, "setup", container, input)).toMatchObject({ code: 0 });
    await using resident = await openServing(machine);
    const answer = await whileDying(
      machine,
      resident,
      injection,
      () => attach(machine, "teardown", container, input),
    );
    expect(answer).toMatchObject({ code: 0, stdout: "" });
    await machine.removeContainer(container);
    expect(await leftSince(moment, machine)).toEqual([]);
  },
);

test("a caller that is killed before the answer has nothing attached, also while others wait for the lock", async () => {
  await using machine = await openMachine();
  await momentAfterOne(machine);
  const container = await machine.container();
  // netavark leaves it up.
  await machine.sh("ip link set lo up", { in: container });
  const moment = await quietMoment(machine);
  const two = containerIn([{ network: bridgeNetwork(6) }, { network: bridgeNetwork(5) }], 3);
  await using resident = await openServing(machine, 1);
  const takenBack = async () => (await statusOf(machine)).takenBack;
  for (const document of [simple(), two]) {
    const before = await takenBack();
    // Each answer of the kernel takes the worker 20 ms, so the others come while it works.
    const slow = ["strace", "-qq", "-o", "/dev/null", "-e", "inject=sendto:delay_exit=20000"];
    const tracer = machine.start([...slow, "-p", String(resident.workers()[0])]);
    await untilTrue(
      () => readFileSync(`/proc/${resident.workers()[0]}/status`, "utf8"),
      (text) => !/TracerPid:\t0/.test(text),
    );
    const caller = await untilTrue(async () => {
      const started = machine.start([netavarkProgram(), "-c", ND, "setup", container.netnsPath]);
      started.stdin.write(JSON.stringify(document));
      await started.stdin.end();
      const holder = () => started.exitCode === null ? holderOf(machine, ND) : 0;
      if (await untilTrue(holder, (pid) => pid !== undefined) === resident.workers()[0]) return started;
      // On a busy machine the call runs by itself.
      expect(await started.exited).toBe(0);
      expect(await attach(machine, "teardown", container, document)).toMatchObject({ code: 0 });
      return undefined;
    }, (started) => started !== undefined);
    const other = machine.start(["flock", ND, "sleep", "0.3"]);
    caller!.kill("SIGKILL");
    await untilTrue(takenBack, (count) => count > before);
    tracer.kill("SIGINT");
    await Promise.all([tracer.exited, other.exited]);
    expect(await leftSince(moment, machine)).toEqual([]);
  }
});
