/** Many callers at once, and callers that misbehave: no call fails, no worker is lost, and no descriptor stays open. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { openMachine } from "../../support/machine.ts";
import { environmentOf, PATCHBAY, patchbayPlugins } from "../../support/plugins.ts";
import { childrenOf, startResident } from "../../support/resident.ts";
import { untilServed } from "../../support/resident-status.ts";
import { untilTrue } from "../../support/until-true.ts";
import { talking } from "../../support/talking.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const CONNECTIONS = process.env.PATCHBAY_TEST_FULL_SWEEP === "1" ? 1_000_000 : 20_000;

const descriptorsOf = (pids: readonly number[]) => pids.map((pid) => readdirSync(`/proc/${pid}/fd`).sort());

/** Runs the program beside a resident with two workers, of which nothing may be left. */
async function nothingStaysOf(program: string): Promise<string> {
  await using machine = await openMachine();
  const resident = await startResident(machine, 2), workers = childrenOf(resident.pid);
  const run = async (text: string) => {
    const { stdout, stderr, code } = await machine.run([process.execPath, "-e", `${talking()}\n${text}`]);
    expect([stderr, code]).toEqual(["", 0]);
    return stdout;
  };
  // Both workers have to have served: some descriptors are opened by the first call.
  const serveBoth = `for (let count = 0; count < 20; count++) {
    const many = Array.from({ length: 40 }, open);
    for (const fd of many) send(fd, version);
    for (const fd of many) if (hear(fd)[0] !== 1) throw new Error("not ready");
    for (const fd of many) if (hear(fd)[0] !== 3) throw new Error("not done");
    many.forEach(close);
  }`;
  try {
    await run(serveBoth);
    const before = descriptorsOf(workers);
    const said = await run(program);
    await run(serveBoth);
    expect(childrenOf(resident.pid)).toEqual(workers);
    // A worker closes a connection after its last word.
    const isLeft = (fd: string, index: number) => !before[index]!.includes(fd);
    const left = () => descriptorsOf(workers).flatMap((all, index) => all.filter((fd) => isLeft(fd, index)));
    await untilTrue(left, (fds) => fds.length === 0);
    return said;
  } finally {
    resident.kill("SIGKILL");
    await resident.exited;
  }
}

test("connections that are closed at once", async () => {
  const said = await nothingStaysOf(`
    for (let count = 0; count < ${CONNECTIONS}; count++) close(open());
    console.log("done");
  `);
  expect(said).toBe("done\n");
});

test("requests with too many descriptors, and with none", async () => {
  const said = await nothingStaysOf(`
    const answers = new Map();
    for (let count = 0; count < 300; count++) {
      const many = [0, 1, 2, 13, 100][count % 5], fd = open();
      send(fd, version, Array(many).fill(0));
      const word = hear(fd)[0];
      answers.set(many, word);
      if (word === 1 && hear(fd)[0] !== 3) throw new Error("not done");
      close(fd);
    }
    console.log(JSON.stringify([...answers]));
  `);
  expect(JSON.parse(said)).toEqual([[0, 1], [1, 1], [2, null], [13, null], [100, null]]);
});

test("callers that leave in the middle, and callers that never read", async () => {
  const said = await nothingStaysOf(`
    const silent = [];
    for (let count = 0; count < 400; count++) {
      const fd = open(), way = count % 5;
      if (way === 0) send(fd, version.subarray(0, count % version.length || 1), [2]);
      else send(fd, version, [2]);
      if (way > 1) hear(fd);
      if (way === 4 && silent.length < 50) silent.push(fd);
      else close(fd);
    }
    console.log("done");
  `);
  expect(said).toBe("done\n");
});

/** How often it has slept since it began. */
function sleepsOf(pid: number): number {
  return Number(/^voluntary_ctxt_switches:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]);
}

test("a call wakes one worker, not all", async () => {
  await using machine = await openMachine();
  await using resident = await startResident(machine, 4);
  await untilServed(machine);
  const workers = childrenOf(resident.pid), calls = 60, before = workers.map(sleepsOf);
  await machine.sh(`for at in $(seq ${calls}); do ${PATCHBAY} version; done`);
  const slept = workers.map((pid, index) => sleepsOf(pid) - before[index]!);
  // Another may serve while the first has not quite ended its call.
  expect(slept.filter((count) => count < calls / 2).length).toBeGreaterThanOrEqual(2);
});

test("500 callers at once while workers die: each has an address of its own, and gives it back", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const resident = await startResident(machine, 2);
  const ipam = { type: "host-local", subnet: "10.1.0.0/16" };
  const conf = { cniVersion: "1.1.0", name: "net", type: "host-local", ipam };
  const env = environmentOf(patchbayPlugins(), { plugin: "host-local", command: "ADD", conf, container });
  const all = async (command: string) =>
    await machine.sh(
      `cat >/run/conf
      rm -rf /run/out; mkdir /run/out
      for at in $(seq 500); do
        { CNI_CONTAINERID=c$at ${patchbayPlugins()}/host-local </run/conf >/run/out/$at || echo $at >>/run/failed; } &
      done
      wait
      cat /run/failed 2>/dev/null || true`,
      { env: { ...env, CNI_COMMAND: command }, stdin: JSON.stringify(conf) },
    );
  let isRunning = true;
  const killing = (async () => {
    for (; isRunning; await Bun.sleep(150)) {
      await machine.sh(`kill -KILL ${childrenOf(resident.pid).join(" ")} 2>/dev/null || true`);
    }
  })();
  await using _ = {
    async [Symbol.asyncDispose]() {
      isRunning = false;
      await killing;
      resident.kill("SIGKILL");
      await resident.exited;
    },
  };
  expect(await all("ADD")).toBe("");
  const given = (await machine.sh("cat /run/out/* | tr -d ' ' | grep -o '\"address\":\"[^\"]*'")).trim().split("\n");
  expect(new Set(given).size).toBe(500);
  expect(await machine.sh("ls /var/lib/cni/networks/net | grep -c ^10")).toBe("500\n");
  expect(await all("DEL")).toBe("");
  expect(await machine.sh("ls /var/lib/cni/networks/net | grep -c ^10 || true")).toBe("0\n");
});
