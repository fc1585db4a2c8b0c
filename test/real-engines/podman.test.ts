/** Debian's podman starts and removes containers with Patchbay's plugins, by themselves and through a resident. */
import { expect, test } from "bun:test";
import { EngineMachine, GATEWAY, PAGE, PROGRAM, USERS } from "../support/engines/engine-machine.ts";
import { OWN_FILES, Podman } from "../support/engines/podman.ts";
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

async function expectNothingLeft(podman: Podman, since: Moment): Promise<void> {
  expect(await settled(() => podman.left())).toEqual([]);
  expect(await leftSince(since, podman.room.machine, OWN_FILES)).toEqual([]);
}

/** Bridge and base chains stay after the first container. */
async function momentAfterFirst(podman: Podman): Promise<Moment> {
  await podman.serve("first", 8000);
  await podman.remove("first");
  expect(await settled(() => podman.left())).toEqual([]);
  return await quietMoment(podman.room.machine);
}

/** A web server is reached by its address and by the host's port, from the host and from another container. */
async function useContainers(podman: Podman): Promise<void> {
  const { room } = podman;
  await podman.serve("web", 8080);
  const address = await podman.call("inspect", "-f", "{{.NetworkSettings.Networks.net.IPAddress}}", "web");
  expect(await podman.call("exec", "web", "busybox", "ip", "-o", "-4", "addr", "show", "eth0")).toContain(
    `inet ${address}/24 `,
  );
  expect(await ping(room.machine, undefined, address)).toBe(true);
  for (const place of [address, `${GATEWAY}:8080`]) expect(await room.page(place)).toBe(PAGE);
  for (const place of [address, `${GATEWAY}:8080`]) {
    expect(await podman.once("asking", "wget", "-qO-", `http://${place}/`)).toBe(PAGE);
  }
  await podman.remove("web");
}

test.skipIf(cannotRun).each(ownShare(USERS))("podman without a resident%s", async (_, options) => {
  await using room = await EngineMachine.open(options);
  const podman = await Podman.open(room), moment = await momentAfterFirst(podman);
  await useContainers(podman);
  await expectNothingLeft(podman, moment);
});

test.skipIf(cannotRun).each(ownShare(USERS))(
  "podman through a resident, which declines nothing%s",
  async (_, options) => {
    await using room = await EngineMachine.open(options);
    const podman = await Podman.open(room), moment = await momentAfterFirst(podman);
    await using resident = await startResident(room.machine, undefined, PROGRAM);
    const before = await untilServed(room.machine, PROGRAM);
    await useContainers(podman);
    await expectNothingLeft(podman, moment);
    const { served, declined } = await untilServed(room.machine, PROGRAM);
    // Three containers, each with ADD and DEL of four plugins.
    expect(served - before.served).toBeGreaterThanOrEqual(3 * 2 * 4);
    expect(declined).toEqual({});
    resident.kill("SIGTERM");
    expect(await resident.exited).toBe(0);
  },
);

test.skipIf(cannotRun)("podman while the resident is killed, stopped and upgraded", async () => {
  await using room = await EngineMachine.open();
  const podman = await Podman.open(room), moment = await momentAfterFirst(podman);
  const weather = await storm(room.machine, ROUNDS, [
    async () => {
      await podman.serve("web-1", 8081);
      await podman.remove("web-1");
    },
    async () => {
      await podman.serve("web-2", 8082);
      await podman.remove("web-2");
    },
    () => podman.pingOnce("ping"),
  ]);
  expectStorm(weather);
  await expectNothingLeft(podman, moment);
});
