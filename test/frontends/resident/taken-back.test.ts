/** What a resident began for an ADD that got no answer is taken back, and nothing else. */
import { expect, test } from "bun:test";
import { killAt } from "../../support/injection.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { openMachine } from "../../support/machine.ts";
import { network } from "../../support/network.ts";
import { environmentOf, PATCHBAY, patchbayPlugins } from "../../support/plugins.ts";
import { openServing, whileDying } from "../../support/served.ts";
import { POOLS, serve } from "../../support/served-pool.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const ipam = { type: "host-local", subnet: "10.1.0.0/24" };
const conf = { type: "bridge", isGateway: true, ipMasq: true, ipam };

test("an engine that repeats ADD keeps what is attached, though the worker dies in the middle", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, conf);
  await net.add(container);
  const addresses = () => machine.sh("ip -o addr show eth0 | sed 's/ tentative//'", { in: container });
  const attached = await addresses();
  await using resident = await openServing(machine);
  // The second ADD is refused, because eth0 is there, and cuts off what it wrote to the ledger.
  const again = await whileDying(machine, resident, "ftruncate:signal=KILL:when=1", () => net.call("ADD", container));
  expect(again.code).toBe(1);
  expect(await addresses()).toBe(attached);
  await net.del(container);
});

const LEASES = "/var/lib/cni/networks/net";
const storing: [type: string, ipam: object, leases: string][] = [
  ["host-local", ipam, LEASES],
  ["buildkit-cni-host-local", ipam, LEASES],
  ["patchbay-cluster", { type: "patchbay-cluster", pool: "lan" }, `${POOLS}/lan`],
];
test.each(storing)("%s answers, though the worker dies when it has taken the lease", async (type, ipam, leases) => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  await serve(machine);
  await machine.sh(`mkdir /run/bin; ln -s ${PATCHBAY} /run/bin/${type}`);
  const net = network(machine, { type, ipam }, "/run/bin");
  await net.once(container);
  const moment = await quietMoment(machine);
  await using resident = await openServing(machine);
  // The first message says that the worker is ready, the second is the result.
  const added = await whileDying(machine, resident, "sendmsg:signal=KILL:when=2", () => net.call("ADD", container));
  expect([added.code, JSON.parse(added.stdout).ips?.length]).toEqual([0, 1]);
  expect(await machine.sh(`ls ${leases} | grep -c ^10`)).toBe("1\n");
  await net.del(container);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("ADD is taken back when its caller is killed before the answer", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, conf);
  await net.once(container);
  const moment = await quietMoment(machine);
  await using _resident = await openServing(machine);
  const call = { plugin: "bridge", command: "ADD", container, conf: { cniVersion: "1.1.0", name: "net", ...conf } };
  for (let count = 0; count < 5; count++) {
    // The launcher looks whether the listener has ended, and waits for the call's beginning and for its end.
    const { hit } = await killAt(machine, patchbayPlugins(), call, { syscall: "ppoll", nth: 3 });
    expect(hit).toBe(true);
    expect(await leftSince(moment, machine)).toEqual([]);
  }
});

test("a launcher that waits no longer runs the call once, whether the worker has begun or not", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, conf);
  await net.once(container);
  const moment = await quietMoment(machine);
  await using resident = await openServing(machine);
  const call = { plugin: "bridge", command: "ADD", container, conf: { cniVersion: "1.1.0", name: "net", ...conf } };
  const env = environmentOf(patchbayPlugins(), call), ways = new Set<string>();
  // The first two waits end at once, or when the worker has said that it begins, but as if nothing had come.
  for (let round = 0; round < 20 || (ways.size < 2 && round < 200); round++) {
    const isStopped = round % 2 === 0, delay = isStopped ? "" : ":delay_enter=50000";
    const signal = (name: NodeJS.Signals) => resident.workers().forEach((pid) => process.kill(pid, name));
    if (isStopped) signal("SIGSTOP");
    const injection = `inject=ppoll:retval=0${delay}:when=2..3`;
    const words = ["strace", "-e", "trace=ppoll,shutdown,execve", "-e", injection, `${patchbayPlugins()}/bridge`];
    const { code, stdout, stderr } = await machine.run(words, { env, stdin: JSON.stringify(call.conf) });
    if (isStopped) signal("SIGCONT");
    expect([code, stderr.includes("INJECTED")]).toEqual([0, true]);
    const result = JSON.parse(stdout);
    const address = await machine.sh("ip -o -4 address show eth0", { in: container });
    expect(address).toContain(result.ips[0].address);
    expect(await machine.sh("ls /sys/class/net | grep -c veth")).toBe("1\n");
    // On a busy machine it may have waited longer, because the worker still had the call.
    const given = stderr.split("shutdown")[1];
    if (given !== undefined) ways.add(given.includes("events=0}") ? "begun" : "not begun");
    await net.del(container);
    expect(await leftSince(moment, machine)).toEqual([]);
  }
  expect([...ways].sort()).toEqual(["begun", "not begun"]);
});
