/** `netavark firewall-reload`: restores rules, none twice, from ledgers and from netavark's files. */
import { expect, test } from "bun:test";
import { type Machine, openMachine } from "../../../support/machine.ts";
import { attach, bridgeNetwork, containerIn, published } from "../../../support/netavark/attached.ts";
import { ND } from "../../../support/netavark/names.ts";
import { netavark, netavarkProgram } from "../../../support/netavark/netavark.ts";
import { startBus, startFirewalld } from "../../../support/firewalld.ts";
import { untilTrue } from "../../../support/until-true.ts";

const ports = [published(8080, 80), published(8081, 80, { host_ip: "192.0.2.1" })];
const input = containerIn([{ network: bridgeNetwork(8, { options: { isolate: "true" } }) }], 1, ports);

const reload = (machine: Machine, directory = ND) =>
  netavark(machine, ["-c", directory, "firewall-reload"], undefined, { env: { RUST_LOG: "netavark=info" } });
const SUCCESS = "[INFO  netavark::commands::firewall_reload] Successfully reloaded firewall rules\n";

/** The sorted lines: the order of networks and ports does not count. */
async function rules(machine: Machine): Promise<string[]> {
  return (await machine.sh("nft list table inet netavark")).split("\n").map((line) => line.trim()).sort();
}

test("nothing twice, everything again, and teardown finds it", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  expect(await attach(machine, "setup", container, input)).toMatchObject({ code: 0, stderr: "" });
  const before = await rules(machine);
  const withoutFiles = `rm ${ND}/firewall/networks/* ${ND}/firewall/ports/*; nft flush ruleset`;
  for (const damage of ["true", "nft flush ruleset", "nft flush chain inet netavark FORWARD", withoutFiles]) {
    await machine.sh(damage);
    expect(await reload(machine, `${ND}/.`)).toMatchObject({ code: 0, stderr: SUCCESS });
    expect(await rules(machine)).toEqual(before);
  }
  expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
  expect(await machine.sh("nft list table inet netavark | grep -c nv_ || true")).toBe("0\n");
  expect(await machine.sh(`find ${ND}/firewall/networks ${ND}/firewall/ports -type f`)).toBe("");
});

test("containers of netavark's, without a ledger; a file that cannot be read leaves the others theirs", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const networks = [{ isolate: "true" }, { isolate: "false" }].map((options, index) =>
    bridgeNetwork(7 + index, { options, dns_enabled: true })
  );
  const several = [...ports, published(9000, 90, { range: 3, protocol: "udp" })];
  const input = containerIn(networks.map((network) => ({ network })), 1, several);
  // With a port of its own, aardvark-dns needs rules in networks with names.
  const env = { NETAVARK_DNS_PORT: "5353" };
  expect(await attach(machine, "setup", container, input, env)).toMatchObject({ code: 0, stderr: "" });
  const before = await rules(machine);
  await machine.sh(`rm -r /run/patchbay; nft flush ruleset; cd ${ND}/firewall
    echo '{"subnets": 7' >networks/0torn; echo '{"port_mappings": [{}]}' >ports/0torn`);
  const { code, stderr } = await reload(machine);
  expect(code).toBe(0);
  for (const path of ["networks/0torn", "ports/0torn"]) {
    expect(stderr).toContain(`${ND}/firewall/${path} is left out`);
  }
  const withoutOwner = (lines: string[]) => lines.map((line) => line.replace(/if: (eth[01])?/, "if: ")).sort();
  expect(withoutOwner(await rules(machine))).toEqual(withoutOwner(before));
});

test.each([
  ["whose teardown was killed", `printf '%s\\n' '{"givenUp":"published-ports"}' >>`, 0],
  ["whose setup was killed", `sed -i '/^{"answer"/d'`, 1],
])("a port stays with the container that runs, in spite of one %s", async (_, kill, code) => {
  await using machine = await openMachine();
  const [killed, runs] = [1, 2].map((number) =>
    containerIn([{ network: bridgeNetwork(8) }], number, [published(8080, 80), published(9000 + number, 80)])
  );
  const place = await machine.container(), ledger = `/run/patchbay/net8/${killed!.container_id}@eth0@netavark-bridge`;
  await attach(machine, "setup", place, killed!);
  await machine.sh(`cp '${ledger}' /run/ledger`);
  await attach(machine, "teardown", place, killed!);
  expect(await attach(machine, "setup", await machine.container(), runs!)).toMatchObject({ code: 0, stderr: "" });
  await machine.sh(`cp /run/ledger '${ledger}'; ${kill} '${ledger}'`);
  for (const damage of ["true", "nft flush ruleset"]) {
    await machine.sh(damage);
    expect(await reload(machine)).toMatchObject({ code });
    expect((await machine.sh("nft list table inet netavark")).match(/8080 .*?: (\S+ \. 80)/)?.[1]).toBe(
      "10.88.0.12 . 80",
    );
  }
});

test("of a container that was attached again without a teardown, what the last setup made", async () => {
  await using machine = await openMachine();
  const network = bridgeNetwork(8);
  const neighbour = containerIn([{ network }], 2, [published(7070, 80)]);
  await attach(machine, "setup", await machine.container("neighbour"), neighbour);
  // The host's rules of each stay until a teardown: podman was killed, and the container has another namespace now. The
  // first one still lives, so nothing cleans up after it.
  for (const hostPort of [8080, 9090]) {
    const container = await machine.container(`at${hostPort}`);
    const again = containerIn([{ network }], 1, [published(hostPort, 80)]);
    expect(await attach(machine, "setup", container, again)).toMatchObject({ code: 0, stderr: "" });
  }
  await machine.sh("nft flush ruleset");
  expect(await reload(machine)).toMatchObject({ code: 0, stderr: SUCCESS });
  const map = await machine.sh("nft list map inet netavark nv_8abcdef0_10_88_0_0_nm24_ports");
  expect(map.match(/(?<=tcp \. )[0-9]+/g)?.sort()).toEqual(["7070", "9090"]);
  for (const each of [containerIn([{ network }], 1), neighbour]) {
    expect(await attach(machine, "teardown", { netnsPath: "/run/netns/none" }, each)).toMatchObject({ code: 0 });
  }
  expect(await machine.sh("nft list table inet netavark | grep -c nv_ || true")).toBe("0\n");
});

test("without any container there is nothing to do", async () => {
  await using machine = await openMachine();
  expect(await reload(machine)).toMatchObject({ code: 0, stderr: SUCCESS });
  expect((await machine.run(["nft", "list", "table", "inet", "netavark"])).code).toBe(1);
});

test("the service writes them whenever they are flushed, and never what teardown has removed", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  await attach(machine, "setup", container, input);
  const before = await rules(machine);
  await machine.sh("nft flush ruleset");
  const service = machine.start([netavarkProgram(), "-c", ND, "firewalld-reload"]);
  const areBack = () => rules(machine).then((found) => found.join() === before.join(), () => false);
  for (const damage of ["true", "nft flush ruleset", "nft flush chain inet netavark FORWARD"]) {
    await machine.sh(damage);
    await untilTrue(areBack, Boolean);
  }
  for (let round = 0; round < 5; round++) {
    expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0 });
    expect(await machine.sh("nft list table inet netavark | grep -c nv_ || true")).toBe("0\n");
    expect(await attach(machine, "setup", container, input)).toMatchObject({ code: 0 });
  }
  expect(await rules(machine)).toEqual(before);
  expect(service.exitCode).toBeNull();
  service.kill("SIGTERM");
  await service.exited;
});

test("where firewalld runs, the subnets are in its zone trusted as long as the network has containers", async () => {
  await using machine = await openMachine();
  await using _bus = await startBus(machine);
  await using firewalld = await startFirewalld(machine);
  const [one, two] = [await machine.container("one"), await machine.container("two")];
  const second = containerIn([{ network: bridgeNetwork(8, { options: { isolate: "true" } }) }], 2);
  const trusted = [["10.88.0.0/24", "trusted"], ["fd00:8::/64", "trusted"]];
  await attach(machine, "setup", one, input);
  await attach(machine, "setup", two, second);
  expect(firewalld.sources().sort()).toEqual(trusted as [string, string][]);
  await attach(machine, "teardown", one, input);
  expect(firewalld.sources()).toHaveLength(2);
  expect(await attach(machine, "teardown", two, second)).toMatchObject({ code: 0, stderr: "" });
  expect(firewalld.sources()).toEqual([]);
});
