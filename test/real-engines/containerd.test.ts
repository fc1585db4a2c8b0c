/** Debian's containerd starts and removes containers with Patchbay's plugins, by themselves and through a resident. */
import { expect, test } from "bun:test";
import { Containerd, OWN_FILES } from "../support/engines/containerd.ts";
import { EngineMachine, PAGE, PROGRAM, USERS } from "../support/engines/engine-machine.ts";
import { expectStorm, ROUNDS, storm } from "../support/engines/storm.ts";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, type Moment, quietMoment } from "../support/leftovers.ts";
import { startResident } from "../support/resident.ts";
import { untilServed } from "../support/resident-status.ts";
import { ownShare } from "../support/share.ts";
import { settled } from "../support/snapshot.ts";
import { ping } from "../support/traffic.ts";

// Each test says itself whether there is a resident.
delete process.env.PATCHBAY_TEST_RESIDENT;

const cannotRun = lacks("overlay file systems") || lacks("cgroups of version 2");

async function expectNothingLeft(containerd: Containerd, since: Moment): Promise<void> {
  expect(await settled(() => containerd.left())).toEqual([]);
  expect(await leftSince(since, containerd.room.machine, OWN_FILES)).toEqual([]);
}

/** Bridge and base chains stay after the first container. */
async function momentAfterFirst(containerd: Containerd): Promise<Moment> {
  await containerd.pingOnce("first");
  expect(await settled(() => containerd.left())).toEqual([]);
  return await quietMoment(containerd.room.machine);
}

/** A web server is reached by its address, from the host and from another container. */
async function useContainers(containerd: Containerd): Promise<void> {
  const { room } = containerd;
  const { end } = containerd.serve("web");
  const address = await containerd.addressOf("web");
  expect(await ping(room.machine, undefined, address)).toBe(true);
  expect(await room.page(address)).toBe(PAGE);
  await containerd.succeedOnce("asking", `busybox wget -qO- http://${address}/ | busybox grep -x "${PAGE}"`);
  await containerd.pingOnce("ping");
  await end();
}

test.skipIf(cannotRun).each(ownShare(USERS))("containerd without a resident%s", async (_, options) => {
  await using room = await EngineMachine.open(options);
  const containerd = await Containerd.open(room), moment = await momentAfterFirst(containerd);
  await useContainers(containerd);
  await expectNothingLeft(containerd, moment);
});

test.skipIf(cannotRun).each(ownShare(USERS))(
  "containerd through a resident, which declines nothing%s",
  async (_, options) => {
    await using room = await EngineMachine.open(options);
    const containerd = await Containerd.open(room), moment = await momentAfterFirst(containerd);
    await using resident = await startResident(room.machine, undefined, PROGRAM);
    const before = await untilServed(room.machine, PROGRAM);
    await useContainers(containerd);
    await expectNothingLeft(containerd, moment);
    const { served, declined } = await untilServed(room.machine, PROGRAM);
    // Three containers, each with ADD and DEL of four plugins.
    expect(served - before.served).toBeGreaterThanOrEqual(3 * 2 * 4);
    expect(declined).toEqual({});
    resident.kill("SIGTERM");
    expect(await resident.exited).toBe(0);
  },
);

test.skipIf(cannotRun)("containerd while the resident is killed, stopped and upgraded", async () => {
  await using room = await EngineMachine.open();
  const containerd = await Containerd.open(room), moment = await momentAfterFirst(containerd);
  const weather = await storm(room.machine, ROUNDS, [
    async () => {
      const { end } = containerd.serve("web");
      expect(await room.page(await containerd.addressOf("web"))).toBe(PAGE);
      await end();
    },
    () => containerd.pingOnce("ping-1"),
    () => containerd.pingOnce("ping-2"),
  ]);
  expectStorm(weather);
  await expectNothingLeft(containerd, moment);
});
