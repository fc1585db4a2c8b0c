/** A network's subnets in firewalld's zone `trusted`, as long as its bridge has ports. */
import { expect, test } from "bun:test";
import { trustedSubnetsKind } from "../../../src/resources/netavark/trusted-subnets.ts";
import { startBus, startFirewalld } from "../../support/firewalld.ts";
import { openMachine } from "../../support/machine.ts";
import { drive, type Step } from "../../support/resources.ts";

const subnets = ["10.8.0.0/24", "fd08::/64"];
const step = (verb: Step["verb"], ...own: string[]): Step => ({
  verb,
  kind: trustedSubnetsKind.kind,
  spec: { bridge: "podman8", subnets: own.map((subnet) => ({ subnet })) },
});
const all = (verb: Step["verb"]) => step(verb, ...subnets);

test("where firewalld runs, they are there, what is missing is told, and the last container takes them along", async () => {
  await using machine = await openMachine();
  await using _bus = await startBus(machine);
  await using firewalld = await startFirewalld(machine);
  await machine.sh("ip link add podman8 type bridge; ip link add v0 master podman8 type veth peer name v1");
  const missing = subnets.map((subnet) => `${subnet} is not in firewalld's zone trusted`);
  expect(
    await drive(machine, [all("verify"), step("apply", subnets[0]!), all("verify"), all("repair"), all("verify")]),
  )
    .toEqual([missing, "applied", missing.slice(1), "repaired", []]);
  expect(firewalld.sources().sort()).toEqual(subnets.map((subnet) => [subnet, "trusted"]));
  expect(await drive(machine, [all("remove"), all("verify")])).toEqual(["removed", []]);
  await machine.sh("ip link del v0");
  expect(await drive(machine, [all("remove"), all("remove")])).toEqual(["removed", "removed"]);
  expect(firewalld.sources()).toEqual([]);
});

test("where it does not run there is nothing to do", async () => {
  await using machine = await openMachine();
  expect(await drive(machine, [all("apply"), all("verify"), all("remove")])).toEqual(["applied", [], "removed"]);
});
