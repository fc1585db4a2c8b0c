/** A link that carries no packets yet is waited for, and one that never does is an error. */
import { expect, test } from "bun:test";
import { openMachine } from "../../support/machine.ts";
import { drive, type Step } from "../../support/resources.ts";

const PAIR = "ip link add veth1 type veth peer name veth2; ip link set veth1 up";
const apply: Step = { verb: "apply", kind: "carrier", spec: { ifName: "veth1" } };
const sh = (kind: string): Step => ({ verb: "sh", kind });

test("ADD fails while the other end is down, and says which link it is", async () => {
  await using machine = await openMachine();
  const [, told, differences] = await drive(machine, [sh(PAIR), apply, { ...apply, verb: "verify" }]);
  expect(told).toMatch(/bridge port in error state: lower-layer-down/);
  expect(differences).toEqual(["link veth1 is lower-layer-down"]);
});

test("ADD waits for an end that is not up yet", async () => {
  await using machine = await openMachine();
  const soon = "(sleep 0.1; ip link set veth2 up) >/dev/null 2>&1 &";
  const [, , told, differences] = await drive(machine, [sh(PAIR), sh(soon), apply, { ...apply, verb: "verify" }]);
  expect([told, differences]).toEqual(["applied", []]);
});

test("a link that is gone is not waited for for ever", async () => {
  await using machine = await openMachine();
  const [told, differences] = await drive(machine, [apply, { ...apply, verb: "verify" }]);
  expect(told).toMatch(/not-present/);
  expect(differences).toEqual(["link veth1 is not-present"]);
});
