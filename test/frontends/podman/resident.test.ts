/** Calls of podman's plugin driver through a resident: served by the rules of `patchbay add`, or left to the caller. */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY, patchbayPlugins } from "../../support/plugins.ts";
import { CONFIGS, DriverNetwork, port, type Wanted, writeConflist } from "../../support/podman-driver.ts";
import { childrenOf, startResident } from "../../support/resident.ts";
import { openServing, untilServed } from "../../support/served.ts";

// Each machine has one of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

async function openOwn(machine: Machine): Promise<DriverNetwork> {
  const ipam = { type: "host-local", subnet: "10.8.0.0/24" };
  const plugins = [{ type: "bridge", bridge: "own0", isGateway: true, ipMasq: true, ipam }, {
    type: "portmap",
    capabilities: { portMappings: true },
  }];
  await writeConflist(machine, { name: "own", plugins });
  return await DriverNetwork.create(machine, { options: { conflist: "own" } });
}

const wanted: Wanted = { ips: ["10.8.0.5"], ports: [port(8080, 80)] };

test("create, setup and teardown are served; what may wait for others is left to them", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), plugins = "/run/plugins";
  await machine.sh(`mkdir ${plugins}; cp -P ${patchbayPlugins()}/* ${plugins}`);
  await machine.sh(`cat >${plugins}/foreign; chmod 755 ${plugins}/foreign`, {
    stdin: `#!/bin/sh\ncat >/dev/null; echo '{"cniVersion":"1.0.0"}'\n`,
  });
  await writeConflist(machine, {
    name: "web",
    plugins: [{ type: "bridge", bridge: "web0", ipam: { type: "host-local", subnet: "10.7.0.0/24" } }, {
      type: "foreign",
    }],
  });
  const net = await openOwn(machine);
  const other = await DriverNetwork.create(machine, { options: { conflist: "web", pluginPath: plugins } });
  await net.once(container, wanted);
  await other.call("setup", container);
  await other.teardown(container);
  const moment = await quietMoment(machine);
  await using _resident = await openServing(machine);
  const told: string[] = [];
  for (const [name, one, ask] of [["own", net, wanted], ["foreign", other, {}]] as const) {
    const document = JSON.stringify(one.document(container, ask));
    const words = { create: [], setup: [container.netnsPath], teardown: [container.netnsPath], info: [] };
    for (const verb of ["create", "setup", "teardown", "teardown", "info"] as const) {
      const stdin = verb === "create" ? JSON.stringify(one.network) : document;
      told.push(`${name} ${verb}: ${await traced(machine, [verb, ...words[verb]], stdin)}`);
      if (verb === "setup") expect(await machine.sh("ip link show eth0", { in: container })).toContain("UP");
    }
  }
  expect(told).toEqual([
    "own create: served",
    "own setup: served",
    "own teardown: served",
    "own teardown: served",
    "own info: served",
    "foreign create: served",
    "foreign setup: alone",
    "foreign teardown: alone",
    "foreign teardown: alone",
    "foreign info: served",
  ]);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("an error is answered as podman reads it, also through a resident", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const net = DriverNetwork.written(machine, { options: { conflist: "gone" } });
  await using _resident = await openServing(machine);
  const { code, json, stderr } = await net.call("setup", container);
  expect({ code, json, stderr }).toEqual({
    code: 1,
    json: { error: expect.stringContaining("option conflist=gone") },
    stderr: "",
  });
});

test("setup whose worker dies is run again by its own process, and nothing is left of the first time", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const net = await openOwn(machine);
  await net.once(container, wanted);
  const moment = await quietMoment(machine);
  const resident = await startResident(machine, 1);
  let killed = 0;
  for (let nth = 3; nth < 40; nth += 6) {
    await untilServed(machine);
    const [pid] = childrenOf(resident.pid);
    const words = ["-f", "-o", "/dev/null", "-p", String(pid), "-e", `inject=sendto:signal=KILL:when=${nth}`];
    const tracer = Bun.spawn(["strace", ...words], { stdout: "ignore", stderr: "pipe" });
    const { value } = await tracer.stderr.getReader().read();
    expect(new TextDecoder().decode(value)).toContain("attached");
    const { interfaces } = await net.setup(container, wanted);
    expect(Object.keys(interfaces)).toEqual(["eth0"]);
    tracer.kill("SIGTERM");
    await tracer.exited;
    if (!childrenOf(resident.pid).includes(pid!)) killed++;
    await net.teardown(container, wanted);
    expect({ nth, left: await leftSince(moment, machine) }).toEqual({ nth, left: [] });
  }
  expect(killed).toBeGreaterThan(2);
  resident.kill("SIGKILL");
  await resident.exited;
});

/** Whether the call, which must succeed, has loaded a runtime of its own. */
async function traced(machine: Machine, words: readonly string[], stdin: string): Promise<"served" | "alone"> {
  const { code, stdout, stderr } = await machine.run(["strace", "-e", "trace=openat", PATCHBAY, ...words], {
    stdin,
    env: { NETCONFPATH: CONFIGS },
  });
  expect([words, code, stdout]).toEqual([words, 0, expect.anything()]);
  return stderr.includes("ld-linux") ? "alone" : "served";
}
