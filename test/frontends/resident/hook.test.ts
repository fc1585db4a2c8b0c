/** `patchbay hook` through a resident: it gets the state on stdin, and a dead worker's half is taken back. */
import { readdirSync } from "node:fs";
import { expect, test } from "bun:test";
import { CONFIGS, hook, silent, startHooked, writeNetwork } from "../../support/hooked.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { openResident, openServing, traceOf, untilServed } from "../../support/served.ts";
import { untilTrue } from "../../support/until-true.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const env = { NETCONFPATH: CONFIGS };

async function openNetworks(): Promise<Machine> {
  const machine = await openMachine();
  for (const [name, number] of [["front", 1], ["back", 2]] as const) {
    const ipam = { type: "host-local", subnet: `10.${number}.0.0/24` };
    await writeNetwork(machine, name, [{ type: "bridge", bridge: `${name}0`, isGateway: true, ipam }]);
  }
  return machine;
}

test("both hooks are served, with stdin as a pipe and as a file; what may wait runs by itself", async () => {
  await using machine = await openNetworks();
  await machine.sh(`
    mkdir /run/plugins; printf '#!/bin/sh\\ncat >/dev/null\\necho "{}"\\n' >/run/plugins/foreign
    chmod +x /run/plugins/foreign; for name in bridge host-local; do ln -s ${PATCHBAY} /run/plugins/$name; done`);
  await writeNetwork(machine, "other", [{ type: "foreign" }]);
  await using web = await startHooked(machine, "web");
  const stdin = JSON.stringify(web.state());
  for (const verb of ["add", "del"]) {
    expect(await traceOf(machine, { env, stdin }, ["hook", verb, "front", "back"])).toBe("alone");
  }
  const moment = await quietMoment(machine);
  await using resident = await openServing(machine);
  const descriptors = () => resident.workers().map((pid) => readdirSync(`/proc/${pid}/fd`).length);
  const open: number[] = [];
  for (let round = 0; round < 6; round++) {
    for (const words of [["hook", "add", "front", "back"], ["hook", "del"]]) {
      expect(await traceOf(machine, { env, stdin }, words)).toBe("served");
      const links = await web.inside("ip -br link");
      if (words[1] === "add") expect(links).toMatch(/eth0@[^]*eth1@/);
      else expect(links).not.toContain("eth");
    }
    open.push(...descriptors());
  }
  // Some are opened by a worker's first call. What a call opens is closed a moment after its answer.
  const most = Math.max(...open.slice(0, 4));
  await untilTrue(descriptors, (now) => now.every((count) => count <= most));
  const foreign = { env: { ...env, CNI_PATH: "/run/plugins" }, stdin };
  expect(await traceOf(machine, foreign, ["hook", "add", "front", "other"])).toBe("alone");
  expect(await web.inside("ip -br link")).toContain("eth0@");
  expect(await traceOf(machine, foreign, ["hook", "del"])).toBe("alone");
  const optionFirst = ["--config-dir", CONFIGS, "hook"];
  expect(await traceOf(machine, { stdin }, [...optionFirst, "add", "front"])).toBe("alone");
  expect(await traceOf(machine, { stdin }, [...optionFirst, "del"])).toBe("alone");
  await web.end();
  expect(await leftSince(moment, machine, /last_reserved_ip/)).toEqual([]);
});

test("a worker that dies half-way: the hook runs again, and its own half is not in its way", async () => {
  await using machine = await openNetworks();
  await using web = await startHooked(machine, "web");
  expect(await hook(machine, ["add", "front", "back"], web.state())).toEqual(silent);
  expect(await hook(machine, ["del"], web.state())).toEqual(silent);
  const moment = await quietMoment(machine);
  await using resident = await openResident(machine);
  let dead = 0;
  for (const nth of [1, 4, 8, 12, 20]) {
    await untilServed(machine);
    const tracers = new Map<number, Bun.Subprocess>();
    // The one that takes a dead one's place may come while they are looked through.
    const traceAll = async () => {
      const workers = resident.workers();
      for (const pid of workers) if (!tracers.has(pid)) tracers.set(pid, killAt(nth, pid));
      return await Promise.all(workers.map(isTraced));
    };
    await untilTrue(traceAll, (all) => all.length > 0 && all.every((one) => one));
    expect(await hook(machine, ["add", "front", "back"], web.state())).toMatchObject({ code: 0, stdout: "" });
    await web.inside("ping -c 1 -W 60 10.1.0.1; ping -c 1 -W 60 10.2.0.1");
    if ([...tracers.keys()].some((pid) => !resident.workers().includes(pid))) dead++;
    for (const tracer of tracers.values()) {
      tracer.kill("SIGTERM");
      await tracer.exited;
    }
    await untilServed(machine);
    expect(await hook(machine, ["del"], web.state())).toMatchObject({ code: 0, stdout: "" });
    expect(await leftSince(moment, machine, /last_reserved_ip/)).toEqual([]);
  }
  expect(dead).toBeGreaterThan(2);
});

/** The worker dies at its nth message to the kernel. */
function killAt(nth: number, worker: number): Bun.Subprocess {
  const trace = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=sendto,sendmsg"];
  const inject = ["-e", `inject=sendto,sendmsg:signal=KILL:when=${nth}`];
  return Bun.spawn(["strace", ...trace, ...inject, "-p", String(worker)], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  });
}

async function isTraced(pid: number): Promise<boolean> {
  const status = await Bun.file(`/proc/${pid}/status`).text().catch(() => "");
  return /^TracerPid:\t[1-9]/m.test(status);
}
