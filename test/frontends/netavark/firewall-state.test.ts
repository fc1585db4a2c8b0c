/** The files for netavark's own reload: who writes which, what is missed, and when they go. */
import { expect, test } from "bun:test";
import { firewallStateKind } from "../../../src/resources/netavark/firewall-state.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { drive, type Step } from "../../support/resources.ts";

const DIRECTORY = "/run/nd/firewall";
const of = (containerId: string, more: object = {}) => ({
  directory: DIRECTORY,
  driver: "nftables",
  bridge: "podman8",
  networkId: "5ca1ab1e",
  containerId,
  network: { first: containerId },
  container: { id: containerId },
  ...more,
});
const step = (verb: Step["verb"], spec: object): Step => ({ verb, kind: firewallStateKind.kind, spec });

async function filesIn(machine: Machine): Promise<string[]> {
  const script = `cd ${DIRECTORY} && find . -type f | sort | while read -r path; do
    echo "$(stat -c %a "$path") $path $(cat "$path")"
  done`;
  return (await machine.sh(script)).split("\n").slice(0, -1);
}

const lock = "600 ./firewall-reload.lock ", driver = "644 ./firewall-driver nftables";
const ofNetwork = '644 ./networks/5ca1ab1e {"first":"c1"}';
const ofContainer = (id: string) => `644 ./ports/5ca1ab1e_${id} {"id":"${id}"}`;

test("the network's file is the first container's, and goes with the last port of the bridge", async () => {
  await using machine = await openMachine();
  const one = of("c1"), two = of("c2");
  await machine.sh(
    "mkdir /run/nd; ip link add podman8 type bridge; ip link add v0 master podman8 type veth peer name v1",
  );
  expect(await drive(machine, [step("remove", one), step("apply", one), step("apply", two), step("verify", two)]))
    .toEqual([
      "removed",
      "applied",
      "applied",
      [],
    ]);
  expect(await filesIn(machine)).toEqual([driver, lock, ofNetwork, ofContainer("c1"), ofContainer("c2")]);
  expect(await machine.sh(`stat -c %a ${DIRECTORY}/networks ${DIRECTORY}/ports`)).toBe("755\n755\n");
  await machine.sh(`rm ${DIRECTORY}/*/5ca1*`);
  expect(await drive(machine, [step("verify", two), step("repair", one), step("verify", one), step("verify", two)]))
    .toEqual([
      [`${DIRECTORY}/networks/5ca1ab1e is missing`, `${DIRECTORY}/ports/5ca1ab1e_c2 is missing`],
      "repaired",
      [],
      [`${DIRECTORY}/ports/5ca1ab1e_c2 is missing`],
    ]);
  expect(await drive(machine, [step("repair", two), step("remove", one)])).toEqual(["repaired", "removed"]);
  expect(await filesIn(machine)).toEqual([driver, lock, ofNetwork, ofContainer("c2")]);
  await machine.sh("ip link del v0");
  expect(await drive(machine, [step("remove", two)])).toEqual(["removed"]);
  expect(await filesIn(machine)).toEqual([driver, lock]);
});

test("what cannot be written whole is taken back", async () => {
  await using machine = await openMachine();
  await machine.sh(`mkdir -p ${DIRECTORY}/ports/5ca1ab1e_c1/full`);
  const [error] = await drive(machine, [step("apply", of("c1"))]);
  expect(error).toContain("5ca1ab1e_c1");
  expect((await filesIn(machine)).join("\n")).not.toContain("networks/");
});
