/** What every host has to show: installed there, the program is the plugins and the runtime, by itself and with a resident. */
import { expect } from "bun:test";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { enterRoot, PROGRAM } from "../support/other-root.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { SOCKET } from "../support/resident.ts";
import { untilTrue } from "../support/until-true.ts";
import { ping } from "../support/traffic.ts";

const BIN = "/opt/cni/bin", NETWORKS = "/etc/cni/net.d";
export const ipam = { type: "host-local", subnet: "10.1.0.0/24" };

export interface Host {
  root: string;
  program?: string;
}

export async function onHost({ root, program }: Host, work: (inside: Machine, machine: Machine) => Promise<void>) {
  await using machine = await openMachine();
  await work(await enterRoot(machine, root, program ?? PATCHBAY), machine);
}

/** With an address for each container. */
export function bridge(backend: string) {
  return { type: "bridge", bridge: "br0", isGateway: true, ipMasq: true, ipMasqBackend: backend, ipam };
}

async function install(inside: Machine): Promise<void> {
  const { code, stdout, stderr } = await inside.run([PROGRAM, "install", "--bin", "/opt/bin", BIN]);
  expect([code, stderr, stdout.includes(`${BIN}/bridge: installed`)]).toEqual([0, "", true]);
}

/** As engines call it. */
export function pluginsAreCalled(host: Host, backend: string) {
  return onHost(host, async (inside, machine) => {
    await install(inside);
    const container = await machine.container(), net = network(inside, bridge(backend), BIN);
    await net.add(container);
    await net.del(container);
    const moment = await quietMoment(machine);
    const result = await net.add(container);
    expect(result.ips).toEqual([{ address: "10.1.0.3/24", gateway: "10.1.0.1", interface: 2 }]);
    expect(await ping(machine, container, "10.1.0.1")).toBe(true);
    const rules = backend === "iptables"
      ? await inside.sh("iptables-save -t nat")
      : await machine.sh("nft list ruleset");
    expect(rules).toContain("10.1.0.3");
    await net.check(container);
    await net.gc([container]);
    await net.check(container);
    await net.del(container);
    expect(await leftSince(moment, machine)).toEqual([]);
  });
}

/** As a person calls it, for a chain of plugins; `isServed`: through a resident. */
export function chainIsAttached(host: Host, backend: string, isServed: boolean) {
  return onHost(host, async (inside, machine) => {
    await install(inside);
    await inside.sh(`mkdir -p ${NETWORKS}; cat >${NETWORKS}/n.conflist`, { stdin: chainOf(backend) });
    const run = async (...words: string[]) => {
      const outcome = await inside.run(["/opt/bin/patchbay", ...words]);
      expect(outcome).toMatchObject({ code: 0, stderr: "" });
      return outcome.stdout;
    };
    await using _resident = isServed ? await serve(inside, run) : undefined;
    await chainComesAndGoes(machine, run);
    if (isServed) {
      // The command that lists what it removes runs by itself.
      expect(await run("serve", "--status")).toMatch(
        /^calls: [1-9]\d* served, (?:0 declined|1 declined \(command 1\)), 0 taken back$/m,
      );
    }
  });
}

/** A list with one of each kind of plugin, for the network n. */
export function chainOf(backend: string): string {
  const plugins = [
    bridge(backend),
    { type: "portmap", backend, capabilities: { portMappings: true } },
    { type: "firewall", backend },
    { type: "tuning", sysctl: { "net.ipv4.conf.eth0.arp_notify": "1" } },
  ];
  return JSON.stringify({ cniVersion: "1.1.0", name: "n", plugins });
}

type Run = (...words: string[]) => Promise<string>;

/** `run`: `patchbay`, which finds the network n and has to succeed. */
export async function chainComesAndGoes(machine: Machine, run: Run): Promise<void> {
  const container = await machine.container("web");
  await run("add", "n", "web", "--ports", "8080:80");
  await run("del", "n", "web");
  const moment = await quietMoment(machine);
  await run("add", "n", "web", "--ports", "8080:80");
  expect(await ping(machine, container, "10.1.0.1")).toBe(true);
  expect(await machine.sh("nft list ruleset")).toContain("8080");
  await run("check", "n", "web");
  expect(await run("inspect")).toContain("8080->80/tcp");
  await run("gc", "n", "--gone");
  await run("check", "n", "web");
  await run("del", "n", "web");
  expect(await leftSince(moment, machine, new RegExp(SOCKET))).toEqual([]);
}

async function serve(inside: Machine, run: Run) {
  const resident = inside.start(["/opt/bin/patchbay", "serve", "--workers=2", "--rehearsals=0"]);
  await untilTrue(
    () => inside.run(["/opt/bin/patchbay", "serve", "--status"]),
    ({ stdout }) => /workers: 2/.test(stdout) && stdout.includes("calls of this program are served"),
  );
  await run("version");
  return {
    async [Symbol.asyncDispose]() {
      resident.kill("SIGTERM");
      await resident.exited;
    },
  };
}

export function uninstalls(host: Host) {
  return onHost(host, async (inside) => {
    await install(inside);
    const { code, stderr } = await inside.run([PROGRAM, "install", "--uninstall", BIN]);
    expect([code, stderr, await inside.sh(`ls -A ${BIN} /opt/bin`)]).toEqual([
      0,
      "",
      expect.not.stringContaining("bridge"),
    ]);
  });
}
