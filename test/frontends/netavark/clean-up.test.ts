/** Clean-up with a ledger of an older build, and with a document that setup would refuse. */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { attach, bridgeNetwork, containerIn, published } from "../../support/netavark/attached.ts";
import { ND } from "../../support/netavark/names.ts";
import { netavark } from "../../support/netavark/netavark.ts";
import { PATCHBAY } from "../../support/plugins.ts";

const ports = [published(8080, 80), published(9090, 80, { host_ip: "192.0.2.1" })];
const input = containerIn([{ network: bridgeNetwork(8) }], 1, ports);
const LEDGER = `/run/patchbay/net8/${input.container_id}@eth0@netavark-bridge`;

/** Attaches the container, and writes the configuration of an older build into its ledger. */
async function attachedByOlderBuild(machine: Machine, container: Container): Promise<void> {
  expect(await attach(machine, "setup", container, input)).toMatchObject({ code: 0, stderr: "" });
  const [header, ...rest] = (await machine.sh(`cat ${LEDGER}`)).split("\n");
  // Recorded from that build: the specifications of resources in place of podman's document.
  const stdin = await Bun.file(`${import.meta.dir}/configuration-of-an-older-build.json`).text();
  const older = [JSON.stringify({ ...JSON.parse(header!), stdin: stdin.trim() }), ...rest].join("\n");
  await machine.sh(`cat >${LEDGER}`, { stdin: older });
}

const ways: [what: string, remove: (machine: Machine, container: Container) => Promise<unknown>][] = [
  ["teardown", async (machine, container) => {
    expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
    await machine.removeContainer(container);
  }],
  ["patchbay del", async (machine, container) => {
    await machine.sh(`${PATCHBAY} del net8 ${input.container_id}`);
    await machine.removeContainer(container);
  }],
  ["gc of what is gone", async (machine, container) => {
    await machine.removeContainer(container);
    await machine.sh(`${PATCHBAY} gc --gone`);
  }],
  ["the setup of another, after it is gone", async (machine, container) => {
    await machine.removeContainer(container);
    const other = await machine.container("other"), second = containerIn([{ network: bridgeNetwork(7) }], 2);
    for (const verb of ["setup", "teardown"] as const) {
      expect(await attach(machine, verb, other, second)).toMatchObject({ code: 0, stderr: "" });
    }
    await machine.removeContainer(other);
  }],
];

test.each(ways)("a ledger of an older build: %s removes everything", async (_, remove) => {
  await using machine = await openMachine();
  const first = await machine.container("first");
  for (const verb of ["setup", "teardown"] as const) await attach(machine, verb, first, input);
  await machine.removeContainer(first);
  const before = await quietMoment(machine), container = await machine.container();
  await attachedByOlderBuild(machine, container);
  // Its rules come back, too.
  const rules = await machine.sh("nft list table inet netavark");
  await machine.sh("nft flush ruleset");
  expect(await netavark(machine, ["-c", ND, "firewall-reload"])).toMatchObject({ code: 0 });
  expect(await machine.sh("nft list table inet netavark")).toBe(rules);
  await remove(machine, container);
  expect(await leftSince(before, machine, /cni\/\.patchbay\.lock$/)).toEqual([]);
});

const unusable: [what: string, more: Parameters<typeof bridgeNetwork>[1]][] = [
  ["an MTU that is no number", { options: { mtu: "wide" } }],
  ["no bridge", { network_interface: "" }],
  ["another IPAM driver", { ipam_options: { driver: "mystery" } }],
];

test.each(unusable)("teardown of a network that has %s: by the ledger, or not at all", async (_, more) => {
  await using machine = await openMachine();
  const container = await machine.container(), broken = containerIn([{ network: bridgeNetwork(8, more) }], 1, ports);
  for (const verb of ["setup", "teardown"] as const) await attach(machine, verb, container, input);
  const before = await quietMoment(machine);
  expect(await attach(machine, "setup", container, input)).toMatchObject({ code: 0, stderr: "" });
  const { code, stdout, stderr } = await attach(machine, "teardown", container, broken);
  expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
  expect(stderr).toContain("DEL uses the ledger only: ");
  expect(await leftSince(before, machine)).toEqual([]);
  // Without a ledger nothing says what to remove.
  const again = await attach(machine, "teardown", container, broken);
  expect({ code: again.code, keys: Object.keys(again.json) }).toEqual({ code: 1, keys: ["error"] });
});

test("teardown of two networks, one of which is not described: the other goes, and the error says which", async () => {
  await using machine = await openMachine();
  const container = await machine.container(),
    both = containerIn([7, 8].map((each) => ({ network: bridgeNetwork(each) })));
  expect(await attach(machine, "setup", container, both)).toMatchObject({ code: 0, stderr: "" });
  const { net8 } = both.network_info, known = { ...both, network_info: { net8 } };
  const { code, json } = await attach(machine, "teardown", container, known);
  expect({ code, json }).toEqual({ code: 1, json: { error: "network info for network net7 not found" } });
  expect(await machine.sh("ls -I 'serve*' /run/patchbay; ip -br link show type bridge | cut -d' ' -f1")).toBe(
    "net7\npodman7\n",
  );
  expect(await attach(machine, "teardown", container, both)).toMatchObject({ code: 0 });
});
