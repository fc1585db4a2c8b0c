/** Several networks of a container, several subnets of a family, several ways to set an option. */
import { expect, test } from "bun:test";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { attach, bridgeNetwork, containerIn, published } from "../../support/netavark/attached.ts";
import { ND } from "../../support/netavark/names.ts";
import { netavark } from "../../support/netavark/netavark.ts";
import { PATCHBAY } from "../../support/plugins.ts";

test("two subnets of a family: the first's gateway, and ports of the first address", async () => {
  await using machine = await openMachine();
  const subnets = [[8, 1], [6, 2], [7, 3]].flatMap(([number, last]) => [
    { subnet: `10.8${number}.0.0/24`, gateway: `10.8${number}.0.${last}` },
    { subnet: `fd00:${number}::/64`, gateway: `fd00:${number}::${last}` },
  ]);
  const container = await machine.container(), network = bridgeNetwork(8, { subnets });
  const input = containerIn([{ network }], 1, [published(8080, 80)]);
  expect(await attach(machine, "setup", container, input)).toMatchObject({ code: 0, stderr: "" });
  const lines = async (command: string) => (await machine.sh(command, { in: container })).trim().split(/\s*\n/);
  expect(await lines("ip -o -4 addr show eth0 | grep -o '10[^ ]*/24'")).toHaveLength(3);
  expect(await lines("ip route show default")).toEqual(["default via 10.88.0.1 dev eth0 proto static metric 100"]);
  expect((await lines("ip -6 route show default")).map((line) => line.split(" ")[2])).toEqual(["fd00:8::1"]);
  const table = await machine.sh("nft list table inet netavark");
  const targets = [...table.matchAll(/tcp \. 8080 comment "[^"]*" : (\S+)/g)].map(([, address]) => address!);
  expect([...new Set(targets)].sort()).toEqual(["10.88.0.11", "fd00:8::11"]);
  // They are podman's, and no file of CNI's is missing.
  expect(await machine.sh(`${PATCHBAY} ls --config-dir /run`)).toBe("no networks in /run\n");
  expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
});

/** Both networks have equal routes: default routes, one by each network's gateway, one by the same gateway, one without. */
const sideBySide = (number: number) =>
  bridgeNetwork(number, {
    routes: [
      { destination: "198.51.100.0/24", gateway: `10.8${number}.0.2` },
      { destination: "2001:db8:1::/64", gateway: `fd00:${number}::2` },
      { destination: "203.0.113.0/24", gateway: "10.88.0.3" },
      { destination: "192.0.2.0/24", route_type: "blackhole" },
    ],
  });

/** One line for each next hop, without the kernel's own routes. */
async function routesIn(machine: Machine, container: Container): Promise<string[]> {
  const text = await machine.sh("ip -j route; ip -6 -j route", { in: container });
  // deno-lint-ignore no-explicit-any
  const routes = text.trim().split("\n").flatMap((line) => JSON.parse(line) as any[]);
  return routes.filter(({ protocol }) => protocol === "static").flatMap(({ nexthops, ...route }) =>
    (nexthops ?? [route]).map((hop: typeof route) =>
      [route.type, route.dst, hop.gateway, route.metric, hop.dev].filter(Boolean).join(" ")
    )
  ).sort();
}

test.each([["first", 0], ["last", 1]])(
  "equal routes of two networks stand side by side, the %s leaves",
  async (_, left) => {
    await using machine = await openMachine();
    const container = await machine.container(), stays = 1 - left;
    const calls = [8, 7].map((number, index) =>
      containerIn([{ network: sideBySide(number), attachment: { interface_name: `eth${index}` } }])
    );
    const call = async (verb: "setup" | "teardown", index: number) =>
      expect(await attach(machine, verb, container, calls[index]!)).toMatchObject({ code: 0, stderr: "" });
    const inspect = async () => (await machine.run([PATCHBAY, "inspect"])).stdout;
    const of = (number: number, link: string) => [
      `default 10.8${number}.0.1 100 ${link}`,
      `198.51.100.0/24 10.8${number}.0.2 100 ${link}`,
      `default fd00:${number}::1 100 ${link}`,
      `2001:db8:1::/64 fd00:${number}::2 100 ${link}`,
    ];
    const shared = ["203.0.113.0/24 10.88.0.3 100 eth0", "blackhole 192.0.2.0/24 100"];
    const both = [...of(8, "eth0"), ...of(7, "eth1"), ...shared].sort();
    for (const index of [0, 1]) await call("setup", index);
    expect(await routesIn(machine, container)).toEqual(both);
    expect((await machine.run([PATCHBAY, "inspect"])).code).toBe(0);
    expect(await machine.sh(`${PATCHBAY} inspect --brief`)).toMatch(
      /^2 attachments: 2 ok\n\ncontainer .*\n(\S+ +\S+ +\S+ +eth[01] +10\.8[78]\.\S+ fd00:[78]::\S+ +- +ok\n){2}$/,
    );

    // Each link's own route is looked for, not one like it.
    await machine.sh("ip route del default dev eth1; ip -6 route del default via fd00:8::1 dev eth0", {
      in: container,
    });
    const told = await inspect();
    expect(told).toContain("route 0.0.0.0/0 via 10.87.0.1 metric 100 through eth1 is missing");
    expect(told).toContain("route ::/0 via fd00:8::1 metric 100 through eth0 is missing");
    expect(told.match(/is missing/g)).toHaveLength(2);
    await machine.sh(`${PATCHBAY} repair`);
    expect(await routesIn(machine, container)).toEqual(both);

    await call("teardown", left);
    const link = `eth${stays}`, number = [8, 7][stays]!;
    // The same gateway is reached by the first network's link, so its route goes with that.
    const remaining = [...of(number, link), ...shared.filter((line) => !line.includes("eth0") || stays === 0)];
    expect(await routesIn(machine, container)).toEqual(remaining.sort());
    await call("setup", left);
    expect(await routesIn(machine, container)).toEqual(both);
    await call("teardown", stays);
    await call("teardown", left);
    expect(await routesIn(machine, container)).toEqual([]);
  },
);

test("the document of the page for podman is one that setup and teardown take", async () => {
  await using machine = await openMachine();
  const page = await Bun.file(`${import.meta.dir}/../../../docs/engines/podman.md`).text();
  const [, input] = /```json\n(.*?"container_id".*?)```/s.exec(page)!, container = await machine.container("web");
  expect(await attach(machine, "setup", container, JSON.parse(input!))).toMatchObject({ code: 0, stderr: "" });
  expect(await machine.sh("ip -br addr show eth0", { in: container })).toContain("10.89.40.2/24");
  expect(await machine.sh("nft list table inet netavark")).toContain("tcp . 8080");
  expect(await attach(machine, "teardown", container, JSON.parse(input!))).toMatchObject({ code: 0, stderr: "" });
});

test("without aardvark-dns, no network that would have names promises servers, whichever it is", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const networks = [6, 7, 8].map((number) => bridgeNetwork(number, { dns_enabled: number !== 6 }));
  const input = { ...containerIn(networks.map((network) => ({ network }))), dns_servers: ["192.0.2.53"] };
  await machine.sh(`mkdir -p ${ND}`);
  const args = ["-c", ND, "--aardvark-binary=", "setup", container.netnsPath];
  const { json } = await netavark(machine, args, input);
  for (const name of ["net6", "net7", "net8"]) {
    expect(json[name]).toMatchObject({ dns_server_ips: ["192.0.2.53"], dns_search_domains: [] });
  }
  expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
});

test("an option counts more than the environment", async () => {
  await using machine = await openMachine();
  const container = await machine.container(), input = containerIn([{ network: bridgeNetwork() }]);
  await machine.sh(`mkdir -p ${ND}`);
  for (const verb of ["setup", "teardown"]) {
    const args = ["-c", ND, "--firewall-driver", "none", verb, container.netnsPath];
    expect(await netavark(machine, args, input, { env: { NETAVARK_FW: "nftables" } })).toMatchObject({ code: 0 });
    expect((await machine.run(["nft", "list", "table", "inet", "netavark"])).code).toBe(1);
  }
});

/** podman 6 sends a list, and expects isolation of networks that do not say it. So does a caller with --file. */
const inputs: [what: string, isMap: boolean, args: string[], isolation: string][] = [
  ["a list", false, [], "Strict"],
  ["a map", true, [], "Never"],
  ["a map in a file", true, ["--file", "/run/input.json"], "Strict"],
];

test.each(inputs)("isolation of a network that does not say it: by %s", async (_, isMap, args, isolation) => {
  await using machine = await openMachine();
  const container = await machine.container(), input = containerIn([{ network: bridgeNetwork() }]);
  const map = Object.fromEntries(input.networks.map(({ name, ...rest }) => [name, rest]));
  const text = JSON.stringify(isMap ? { ...input, networks: map } : input);
  await machine.sh(`mkdir -p ${ND}; cat >/run/input.json`, { stdin: text });
  const call = (verb: string) =>
    netavark(machine, ["-c", ND, ...args, verb, container.netnsPath], args.length > 0 ? "" : text);
  expect(await call("setup")).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(await machine.sh(`cat ${ND}/firewall/networks/*`))).toMatchObject({ isolation });
  expect(await call("teardown")).toMatchObject({ code: 0, stderr: "" });
});
