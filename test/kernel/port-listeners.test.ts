/** Ports at which a program of the host listens: `plan` warns, and `hook` refuses them to a container's annotation. */
import { expect, test } from "bun:test";
import { CONFIGS, hook, silent, startHooked, writeNetwork } from "../support/hooked.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";

const bridge = {
  type: "bridge",
  bridge: "front0",
  isGateway: true,
  ipam: { type: "host-local", ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "fd01::/64" }]] },
};

/** A host with listeners of all sorts, and the process of them. */
async function openHost() {
  const machine = await openMachine();
  await machine.sh("ip link set lo up; ip address add 192.0.2.1/32 dev lo");
  await writeNetwork(machine, "front", [bridge, {
    type: "portmap",
    backend: "nftables",
    capabilities: { portMappings: true },
  }]);
  const program = `
    const socket = { data() {}, open() {} };
    Bun.listen({ hostname: "0.0.0.0", port: 8001, socket });
    Bun.listen({ hostname: "::", port: 8002, socket });
    Bun.listen({ hostname: "127.0.0.1", port: 8003, socket });
    Bun.listen({ hostname: "192.0.2.1", port: 8004, socket });
    await Bun.udpSocket({ hostname: "0.0.0.0", port: 8005 });
    Bun.listen({ hostname: "::1", port: 8006, socket });
    await Bun.udpSocket({ hostname: "127.0.0.53", port: 53 });
    Bun.listen({ hostname: "127.0.0.53", port: 53, socket });
    console.log("listens")`;
  const listener = machine.start([process.execPath, "-e", program]);
  expect(new TextDecoder().decode((await listener.stdout.getReader().read()).value)).toBe("listens\n");
  const ending = async () => {
    listener.kill();
    await listener.exited;
    await machine[Symbol.asyncDispose]();
  };
  return { machine, [Symbol.asyncDispose]: ending };
}

async function warnings(machine: Machine, verb: string, ports: string) {
  const container = machine.containers[0] ?? await machine.container();
  const run = (command: string, ...rest: string[]) =>
    machine.run([PATCHBAY, command, "--config-dir", CONFIGS, "front", container.netnsPath, ...rest]);
  const { code, stderr } = await run(verb, "--ports", ports);
  expect(code).toBe(0);
  if (verb === "add") expect((await run("del")).code).toBe(0);
  const listening = stderr.split("\n").filter((line) => line.includes(" listens at "));
  const next = ", and the container gets what comes there; take another port, or stop that program";
  expect(listening.filter((line) => !line.endsWith(next))).toEqual([]);
  return [...stderr.matchAll(/host port (\S+): (\S+) \(process (\d+)\) of this host listens at (\S+),/g)]
    .map(([, port, name, pid, at]) => ({ port, isNamed: name!.startsWith("bun"), pid: Number(pid) > 0, at }));
}

const who = { isNamed: true, pid: true };
const cases: [ports: string, told: Awaited<ReturnType<typeof warnings>>][] = [
  ["8001:80", [{ ...who, port: "8001/tcp", at: "0.0.0.0" }]],
  ["127.0.0.1:8001:80", [{ ...who, port: "8001/tcp", at: "0.0.0.0" }]],
  ["[::1]:8001:80", []],
  ["8001:80/udp", []],
  ["8002:80", [{ ...who, port: "8002/tcp", at: "[::]" }]],
  ["192.0.2.1:8002:80", [{ ...who, port: "8002/tcp", at: "[::]" }]],
  ["8003:80", [{ ...who, port: "8003/tcp", at: "127.0.0.1" }]],
  ["192.0.2.1:8003:80", []],
  ["8004:80", [{ ...who, port: "8004/tcp", at: "192.0.2.1" }]],
  ["127.0.0.1:8004:80", []],
  ["8005:80/udp", [{ ...who, port: "8005/udp", at: "0.0.0.0" }]],
  ["53:53/udp,53:53/tcp", []],
  ["127.0.0.53:53:53/udp", [{ ...who, port: "53/udp", at: "127.0.0.53" }]],
  ["8006:80,[::]:8006:80/udp", []],
  ["[::1]:8006:80,[::1]:8002:80", []],
  ["8099:80,8099:80/sctp", []],
  ["8004:80,8005:80/udp,8001-8003:1-3", [
    { ...who, port: "8001/tcp", at: "0.0.0.0" },
    { ...who, port: "8002/tcp", at: "[::]" },
    { ...who, port: "8003/tcp", at: "127.0.0.1" },
    { ...who, port: "8004/tcp", at: "192.0.2.1" },
    { ...who, port: "8005/udp", at: "0.0.0.0" },
  ]],
];

test("plan warns of a port at which a program of the host listens, and of no other; add does not look", async () => {
  await using host = await openHost();
  const { machine } = host;
  for (const [ports, told] of cases) {
    expect({ ports, told: await warnings(machine, "plan", ports) }).toEqual({ ports, told });
    expect({ ports, told: await warnings(machine, "add", ports) }).toEqual({ ports, told: [] });
  }
});

test("hook refuses such a port to an annotation before it makes anything, unless its author permits it", async () => {
  await using host = await openHost();
  const { machine } = host;
  await using web = await startHooked(machine, "web");
  for (const [ports, told] of cases) {
    const state = web.state({ annotations: { "dev.patchbay.networks": "front", "dev.patchbay.ports": ports } });
    const { code, stderr } = await hook(machine, ["add"], state);
    expect({ ports, code }).toEqual({ ports, code: told.length > 0 ? 1 : 0 });
    if (told.length === 0) {
      expect(await hook(machine, ["del"], state)).toEqual(silent);
      continue;
    }
    expect(stderr).toMatch(
      /annotation dev\.patchbay\.ports: host port \d+\/(tcp|udp): bun\S* \(process \d+\) of this host listens at /,
    );
    expect(stderr).toContain("--ports-in-use");
    expect(await machine.sh("find /run/patchbay /var/lib/cni -name '*web*' 2> /dev/null || true")).toBe("");
    for (const args of [["add", "--ports-in-use"], ["add", "--ports", ports]]) {
      const permitted = await hook(machine, args, state);
      expect([permitted.code, permitted.stderr]).toEqual([0, expect.stringContaining("of this host listens at")]);
      expect(await hook(machine, ["del"], state)).toEqual(silent);
    }
  }
});
