/** `netavark setup` and `teardown` with names: containers resolve one another at the servers that setup returns. */
import { expect, test } from "bun:test";
import type { PodmanNetwork } from "../../../../src/interop/podman-documents/netavark.schema.ts";
import { leftSince, momentOf } from "../../../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../../../support/machine.ts";
import { bridgeNetwork, containerIn } from "../../../support/netavark/attached.ts";
import { creation } from "../../../support/netavark/creation.ts";
import { AARDVARK, daemons, filesIn, ND } from "../../../support/netavark/names.ts";
import { netavark } from "../../../support/netavark/netavark.ts";
import { type Answer, PATCHBAY } from "../../../support/plugins.ts";
import { untilTrue } from "../../../support/until-true.ts";

const network = (index: number, more: Partial<PodmanNetwork> = {}): PodmanNetwork => ({
  ...creation({ name: `n${index}`, id: `${index}ab`.repeat(22).slice(0, 64) }).network,
  network_interface: `podman${index}`,
  subnets: [{ subnet: `10.5${5 + index}.0.0/24`, gateway: `10.5${5 + index}.0.1` }],
  ipam_options: { driver: "host-local" },
  ...more,
});

/** The document of a container in the networks, with the address of that number in each. */
function callFor(container: Container, number: number, networks: PodmanNetwork[], names: string[]) {
  return {
    container_id: `${number}`.repeat(64),
    container_name: container.name,
    networks: networks.map(({ name }, index) => ({
      name,
      interface_name: `eth${index}`,
      static_ips: [`10.5${5 + Number(name.slice(1))}.0.${number}`],
      aliases: names,
    })),
    network_info: Object.fromEntries(networks.map((each) => [each.name, each])),
  };
}

async function call(
  machine: Machine,
  verb: "setup" | "teardown",
  container: Container,
  input: unknown,
  binary = AARDVARK,
): Promise<Answer> {
  return await netavark(machine, ["-c", ND, `--aardvark-binary=${binary}`, verb, container.netnsPath], input);
}

/** The addresses that the server returns to the container. */
async function ask(machine: Machine, container: Container, name: string, server: string): Promise<string[]> {
  const { stdout } = await machine.run(["timeout", "20", "busybox", "nslookup", "-type=a", name, server], {
    in: container,
  });
  return [...stdout.split(/\n\n/)[1]?.matchAll(/^Address(?: \d+)?: (\S+)/gm) ?? []].map(([, address]) => address!)
    .sort();
}

test("containers know one another until they go", async () => {
  await using machine = await openMachine();
  await machine.sh(`mkdir ${ND}`);
  const [one, two] = [await machine.container("one"), await machine.container("two")];
  const inOne = callFor(one, 7, [network(0)], ["web"]), inBoth = callFor(two, 8, [network(0), network(1)], ["jug"]);
  const first = await call(machine, "setup", one, inOne);
  expect(first).toMatchObject({ code: 0, stderr: "" });
  expect(first.json.n0).toMatchObject({ dns_server_ips: ["10.55.0.1"], dns_search_domains: ["dns.podman"] });
  expect(await ask(machine, one, "web", "10.55.0.1")).toEqual(["10.55.0.7"]);
  expect(await ask(machine, one, "one.dns.podman", "10.55.0.1")).toEqual(["10.55.0.7"]);

  expect(await call(machine, "setup", two, inBoth)).toMatchObject({ code: 0, stderr: "" });
  await untilTrue(() => ask(machine, one, "jug", "10.55.0.1"), (found) => found.join() === "10.55.0.8");
  expect(await ask(machine, two, "web", "10.55.0.1")).toEqual(["10.55.0.7"]);
  await untilTrue(() => ask(machine, two, "jug", "10.56.0.1"), (found) => found.includes("10.56.0.8"));
  // One process serves both networks.
  expect(await daemons(machine)).toHaveLength(1);

  await machine.removeContainer(one);
  expect(await call(machine, "teardown", one, inOne)).toMatchObject({ code: 0, stdout: "" });
  await untilTrue(() => ask(machine, two, "web", "10.55.0.1"), (found) => found.length === 0);
  expect(await ask(machine, two, "jug", "10.55.0.1")).toContain("10.55.0.8");
  expect(await call(machine, "teardown", two, inBoth)).toMatchObject({ code: 0, stdout: "" });
  expect(await daemons(machine)).toEqual([]);
  expect(Object.keys(await filesIn(machine)).filter((path) => path.startsWith("aardvark-dns/"))).toEqual([]);
});

test("a network of IPv6 has names although the kernel would look for duplicates of the gateway's address first", async () => {
  await using machine = await openMachine();
  await machine.sh(`mkdir ${ND}; sysctl -qw net.ipv6.conf.all.accept_dad=1; ip link add podman7 type bridge
    sysctl -qw net.ipv6.conf.podman7.router_solicitation_delay=0 net.ipv6.neigh.podman7.retrans_time_ms=500
    ip link set podman7 up; ip addr add 10.87.0.1/24 dev podman7; ip addr add fd00:7::1/64 dev podman7`);
  const networks = [
    bridgeNetwork(8, { dns_enabled: true }),
    bridgeNetwork(7, { dns_enabled: true, options: { mode: "unmanaged" } }),
  ];
  for (const network of networks) {
    const container = await machine.container();
    const input = containerIn([{ network, attachment: { aliases: ["web"] } }], Number(network.name.slice(-1)));
    expect(await call(machine, "setup", container, input)).toMatchObject({ code: 0, stderr: "" });
    const answers = network.subnets!.map(({ gateway }) => ask(machine, container, "web", gateway!));
    expect(await Promise.all(answers)).toEqual([[expect.any(String)], [expect.any(String)]]);
    expect(await call(machine, "teardown", container, input)).toMatchObject({ code: 0 });
  }
});

test("inspect says that nobody answers for names, and repair starts aardvark-dns", async () => {
  await using machine = await openMachine();
  // Another program has the second network's place.
  await machine.sh(`mkdir ${ND}; ip addr add 10.56.0.1/32 dev lo; ip link set lo up`);
  const [one, two] = [await machine.container("one"), await machine.container("two")];
  const inputs = [callFor(one, 7, [network(0)], ["web"]), callFor(two, 8, [network(1)], ["jug"])] as const;
  const inspect = () => machine.run([PATCHBAY, "inspect"]), repair = () => machine.run([PATCHBAY, "repair"]);
  const script = `await Bun.udpSocket({ hostname: "10.56.0.1", port: 53 }); console.log("ready")`;
  const other = machine.start([process.execPath, "-e", script]);
  await other.stdout.getReader().read();
  await call(machine, "setup", one, inputs[0]);
  expect(await inspect()).toMatchObject({ code: 0 });
  // Whenever it reads its files it listens anew.
  const reloads = machine.start(["sh", "-c", `while kill -HUP ${await daemons(machine)}; do sleep 0.01; done`]);
  for (let round = 0; round < 20; round++) expect(await inspect()).toMatchObject({ code: 0 });
  reloads.kill();
  await reloads.exited;
  await call(machine, "setup", two, inputs[1]);
  const silent = { code: 1, stdout: expect.stringContaining("does not listen at 10.56.0.1, port 53") };
  expect(await inspect()).toMatchObject(silent);
  expect(await repair()).toMatchObject(silent);
  other.kill();
  await other.exited;
  const [daemon] = await daemons(machine);
  await machine.sh(`kill -KILL ${daemon}`);
  expect(await inspect()).toMatchObject({ code: 1, stdout: expect.stringContaining("aardvark-dns does not run") });
  expect(await repair()).toMatchObject({ code: 0 });
  expect(await ask(machine, one, "web", "10.55.0.1")).toEqual(["10.55.0.7"]);
  expect(await ask(machine, two, "jug", "10.56.0.1")).toEqual(["10.56.0.8"]);
  expect(await inspect()).toMatchObject({ code: 0 });
  await call(machine, "teardown", one, inputs[0]);
  await call(machine, "teardown", two, inputs[1]);
});

test("when aardvark-dns cannot start, nothing of the container is left", async () => {
  await using machine = await openMachine();
  await machine.sh(`mkdir ${ND}; printf '#!/bin/sh\\necho no water >&2; exit 1\\n' >/run/dry; chmod +x /run/dry`);
  const container = await machine.container("one"), input = callFor(container, 7, [network(0), network(1)], ["web"]);
  // Tables of the kernel stay after the first.
  await call(machine, "setup", container, input);
  await call(machine, "teardown", container, input);
  const moment = await momentOf(machine);
  const { code, json } = await call(machine, "setup", container, input, "/run/dry");
  expect([code, json]).toEqual([1, {
    error: "error while applying dns entries: aardvark-dns failed to start: no water",
  }]);
  expect(await leftSince(moment, machine)).toEqual([]);
  expect(await daemons(machine)).toEqual([]);
});
