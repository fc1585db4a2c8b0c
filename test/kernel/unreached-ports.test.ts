/** Ports by which nobody reaches the container: ADD makes it all the same, and `plan`, `hook`, `inspect` and `check` say so. */
import { expect, test } from "bun:test";
import { CONFIGS, hook, startHooked, writeNetwork } from "../support/hooked.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { PATCHBAY, patchbayPlugins } from "../support/plugins.ts";

const backends = ["nftables", "iptables"] as const;
const four = [{ subnet: "10.1.0.0/24" }], six = [{ subnet: "fd01::/64" }];
const networks = {
  both: { type: "host-local", ranges: [four, six] },
  v4: { type: "host-local", ranges: [four] },
  v6: { type: "host-local", ranges: [six] },
  none: undefined,
};

async function openHost(backend: string, of: Record<string, unknown> = networks) {
  const machine = await openMachine();
  await machine.sh("ip link set lo up");
  for (const [name, ipam] of Object.entries(of)) {
    await writeNetwork(machine, name, [
      { type: "bridge", bridge: `${name}0`, ipam },
      { type: "portmap", backend, capabilities: { portMappings: true } },
    ]);
  }
  return machine;
}

const told = (text: string) => [...text.matchAll(/host port \S+( at \S+)? leads nowhere: .*/g)].map(([line]) => line);

const loopback = (port: string, instead: string) =>
  `host port ${port} at [::1] leads nowhere: Linux lets no connection to ::1 leave the host; take ${instead}`;
const noAddress = 'the container has no address; the plugin that makes its interface needs "ipam"';
const cases: [network: keyof typeof networks, ports: string, lines: string[]][] = [
  ["both", "8080:80,127.0.0.1:81:80,[fd01::1]:82:80,[::]:83:80", []],
  ["both", "[::1]:80:80", [loopback("80/tcp", "127.0.0.1")]],
  ["both", "[::1]:5000-5009:5000-5009/udp,[::1]:90:9,[::1]:5010:1/udp,8080:80", [
    loopback("90/tcp", "127.0.0.1"),
    loopback("5000-5010/udp", "127.0.0.1"),
  ]],
  ["v4", "[::1]:80:80,81:80", [loopback("80/tcp", "127.0.0.1")]],
  ["v4", "[fd01::1]:80:80", [
    "host port 80/tcp at [fd01::1] leads nowhere: the container has no IPv6 address; take an IPv4 address of the host, or none",
  ]],
  ["v6", "[::1]:80:80", [loopback("80/tcp", "another IPv6 address of the host")]],
  ["v6", "0.0.0.0:80:80,[::]:80:80", [
    "host port 80/tcp at 0.0.0.0 leads nowhere: the container has no IPv4 address; take an IPv6 address of the host, or none",
  ]],
  ["none", "81:80", [`host port 81/tcp leads nowhere: ${noAddress}`]],
  ["none", "[::1]:81:80", [`host port 81/tcp at [::1] leads nowhere: ${noAddress}`]],
];

async function run(machine: Machine, verb: string, network: string, ...rest: string[]) {
  const container = machine.containers[0] ?? await machine.container();
  const outcome = await machine.run([PATCHBAY, verb, "--config-dir", CONFIGS, network, container.netnsPath, ...rest]);
  expect({ verb, ...outcome }).toMatchObject({ code: 0 });
  return outcome;
}

for (const backend of backends) {
  test(`${backend}: plan, inspect and check say it, ADD and the verb CHECK succeed, and DEL leaves nothing`, async () => {
    await using machine = await openHost(backend);
    for (const [network, ports, lines] of cases) {
      const { stderr: foreseen } = await run(machine, "plan", network, "--ports", ports);
      const { stderr: warned } = await run(machine, "add", network, "--ports", ports);
      const inspected = await machine.run([PATCHBAY, "inspect", network]);
      const { netnsPath } = machine.containers[0]!;
      await machine.sh(
        `ln -sf ${PATCHBAY} /run/cnitool; NETCONFPATH=${CONFIGS} /run/cnitool check ${network} ${netnsPath}`,
      );
      const checked = await machine.run([PATCHBAY, "check", "--config-dir", CONFIGS, network, netnsPath]);
      expect({
        network,
        ports,
        plan: told(foreseen),
        add: told(warned),
        inspect: told(inspected.stdout),
        check: told(checked.stderr),
      }).toEqual({ network, ports, plan: lines, add: [], inspect: lines, check: lines });
      await run(machine, "del", network);
      expect(await machine.sh("iptables-save -t nat; ip6tables-save -t nat; nft list tables")).not.toMatch(
        /CNI-DN|patchbay_portmap/,
      );
    }
  });

  test(`${backend}: hook says it, also of an annotation, and refuses none`, async () => {
    await using machine = await openHost(backend);
    await using web = await startHooked(machine, "web");
    for (const [network, ports, lines] of cases) {
      const annotations = { "dev.patchbay.networks": network, "dev.patchbay.ports": ports };
      const state = web.state({ annotations }), { code, stderr } = await hook(machine, ["add"], state);
      expect({ network, ports, code, told: told(stderr) }).toEqual({ network, ports, code: 0, told: lines });
      expect((await hook(machine, ["del"], state)).code).toBe(0);
    }
  });
}

test("plan does not foresee which addresses a lease or a plugin of another make will bring", async () => {
  const foreign = `#!/bin/sh
    [ "$CNI_COMMAND" != ADD ] || echo '{"cniVersion":"1.1.0","ips":[{"address":"10.1.0.9/24"}]}'`;
  await using machine = await openHost("nftables", { leased: { type: "dhcp" }, theirs: { type: "theirs" } });
  await machine.sh("mkdir -p /run/theirs; cat >/run/theirs/theirs; chmod 755 /run/theirs/theirs", { stdin: foreign });
  const container = await machine.container(), path = `/run/theirs:${patchbayPlugins()}`;
  for (const network of ["leased", "theirs"]) {
    const place = ["--config-dir", CONFIGS, "--plugin-path", path, network, container.netnsPath];
    const { stderr } = await machine.run([PATCHBAY, "plan", ...place, "--ports", "81:80,[::1]:82:80"]);
    expect({ network, told: told(stderr) }).toEqual({ network, told: [loopback("82/tcp", "127.0.0.1")] });
  }
});
