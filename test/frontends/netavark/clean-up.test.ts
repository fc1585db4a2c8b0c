/** Clean-up with a document that setup would refuse. */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { openMachine } from "../../support/machine.ts";
import { attach, bridgeNetwork, containerIn, published } from "../../support/netavark/attached.ts";

const ports = [published(8080, 80), published(9090, 80, { host_ip: "192.0.2.1" })];
const input = containerIn([{ network: bridgeNetwork(8) }], 1, ports);

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
