/** A quiet moment includes everything that follows from what was done, however late the kernel does it. */
import { expect, test } from "bun:test";
import { quietMoment } from "./leftovers.ts";
import { openMachine } from "./machine.ts";
import { snapshot } from "./snapshot.ts";

test("a quiet moment waits until links are in the state that their carrier puts them in", async () => {
  await using machine = await openMachine();
  await machine.sh(`
    ip link add br0 type bridge; ip link set br0 up; ip link add p1 type veth peer name p2
    ip link set p2 up; ip link set p1 master br0 up`);
  // The kernel looks at what is not urgent once a second.
  for (let time = 1; time <= 3; time++) {
    await machine.sh("ip link set p1 down");
    await quietMoment(machine);
    expect((await snapshot(machine)).unfinished).toEqual([]);
    await machine.sh(`ip link set p1 up; until ip -br link show br0 | grep -q "UP "; do sleep 0.01; done`);
  }
});

test("a quiet moment waits for duplicate detection", async () => {
  await using machine = await openMachine();
  await machine.sh(`
    ip link add p1 type veth peer name p2; ip link set p1 up; ip link set p2 up; ip -6 address add fd00::1/64 dev p1`);
  const address = (await quietMoment(machine)).lines.find((line) => line.includes("fd00::1/64"));
  expect(address).not.toContain("tentative");
});
