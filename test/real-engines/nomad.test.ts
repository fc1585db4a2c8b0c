/** The network and the job of docs/engines/nomad.md, called by go-cni as Nomad calls it. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../support/documents.ts";
import { type GoCall, GoEngine } from "../support/engines/go-engine.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { serve } from "../support/traffic.ts";

const page = readFileSync(join(root, "docs/engines/nomad.md"), "utf8");
const network = JSON.parse(/^```json\n([^]*?)^```$/m.exec(page)![1]!) as { name: string };
const said = (pattern: RegExp) => pattern.exec(page)![1]!;
const HOST_IP = "192.0.2.1";

test("the job's port answers, and nothing of it is left when its namespace is gone", async () => {
  const directory = said(/cni_path +\= "(.*)"/),
    [hostPort, containerPort] = [/static = (\d+)/, /to += (\d+)/].map(said);
  expect(said(/mode = "cni\/(.*)"/)).toBe(network.name);
  expect(page).toContain(`patchbay install ${directory}\n`);
  await using machine = await openMachine();
  await machine.sh(`
    mkdir -p /run/opt; mount --bind /run/opt /opt; ${PATCHBAY} install ${directory}; ip addr add ${HOST_IP}/32 dev lo`);
  // As Nomad finds out a plugin's version.
  expect(await machine.sh(`${directory}/bridge 2>&1`)).toMatch(/ v\d+\.\d+\.\d+\S*\s/);
  await using nomad = new GoEngine(machine, { plugins: [directory], networks: [network] });
  const id = "6b235529-8111-4bbe-520b-d639b1d2a94e";
  const portMappings = ["tcp", "udp"].map((protocol) => {
    return { hostPort: Number(hostPort), containerPort: Number(containerPort), protocol, hostIP: HOST_IP };
  });
  const labels = { IgnoreUnknown: "true", NOMAD_REGION: "global", NOMAD_JOB_ID: "web", NOMAD_ALLOC_ID: id };
  const callOf = (call: string, netns: string): GoCall => ({
    call,
    id,
    netns,
    labels,
    capabilities: { portMappings },
  });
  // Bridges and base chains stay after the first.
  const first = await machine.container();
  expect(await nomad.one(callOf("setup", first.netnsPath))).toMatchObject({
    result: { Interfaces: expect.anything() },
  });
  expect(await nomad.one(callOf("remove", first.netnsPath))).toEqual({});
  await machine.removeContainer(first);
  const moment = await quietMoment(machine);

  const container = await machine.container();
  const { error, result } = await nomad.one(callOf("setup", container.netnsPath));
  expect([error, result.Interfaces.eth0.IPConfigs[0].IP]).toEqual([
    undefined,
    expect.stringMatching(/^10\.120\.0\./),
  ]);
  expect(await machine.sh("ip link show lo", { in: container })).toContain("UP");
  {
    await using server = await serve(machine, container, "tcp", Number(containerPort));
    expect(await server.ask(undefined, HOST_IP, Number(hostPort))).toBeDefined();
  }
  expect(await machine.sh(`${PATCHBAY} inspect ${network.name} ${id} --brief`)).toContain(" ok\n");
  await machine.removeContainer(container);
  expect(await nomad.one(callOf("remove", ""))).toEqual({});
  expect(await leftSince(moment, machine)).toEqual([]);
});
