/** Debian's containerd under an init of its own: its first pod starts a resident, which outlives the engine. */
import { expect, test } from "bun:test";
import { EngineMachine, PAGE, PLUGINS, PROGRAM } from "../support/engines/engine-machine.ts";
import { Kubelet, OWN_FILES } from "../support/engines/kubelet.ts";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import type { Status } from "../support/resident-status.ts";
import { settled } from "../support/snapshot.ts";
import { untilTrue } from "../support/until-true.ts";

// The first call is to run by itself.
delete process.env.PATCHBAY_TEST_RESIDENT;

const cannotRun = lacks("overlay file systems") || lacks("cgroups of version 2");

/** Process 1 starts containerd again whenever that ends. */
const INIT =
  `exec unshare --pid --fork --kill-child --mount-proc setsid --wait sh -c 'while :; do "$@"; done' sh "$@"`;

async function statusOf(room: EngineMachine): Promise<Status> {
  const engine = await untilTrue(() => Promise.resolve(room.pidOf("containerd")), (pid) => pid !== undefined);
  const { stdout, stderr } = await room.machine.run([
    ...["nsenter", `--target=${engine}`, "--pid", "--mount", "--root"],
    ...[PROGRAM, "serve", "--status", "--json"],
  ]);
  if (stdout === "") throw new Error(stderr);
  return JSON.parse(stdout);
}

test.skipIf(cannotRun)("pods are served by it, also after containerd was killed and started again", async () => {
  await using room = await EngineMachine.open();
  const kubelet = await Kubelet.open(room, PLUGINS, INIT);
  const first = await kubelet.run("first", [{ hostPort: 8000, containerPort: 80 }]);
  const { pid, isByCall, served } = await untilTrue(() => statusOf(room), ({ problem }) => problem === undefined);
  expect(isByCall).toBe(true);
  await kubelet.remove(first.id);
  const ofPods = ["containerd", "setsid", "unshare", "sh", "patchbay"];
  const left = async () => (await kubelet.left()).filter((one) => !ofPods.includes(one));
  expect(await settled(left)).toEqual([]);
  const moment = await quietMoment(room.machine);

  for (let round = 0; round < 3; round++) {
    const web = await kubelet.run(`web${round}`, [{ hostPort: 8080, containerPort: 80 }]);
    expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
    room.endNow("containerd");
    await untilTrue(() => kubelet.cri.notReady().then(() => true, () => false), Boolean);
    await kubelet.untilReady();
    await kubelet.remove(web.id);
  }
  const after = await statusOf(room);
  expect([after.pid, after.problem]).toEqual([pid, undefined]);
  expect(after.served).toBeGreaterThan(served);
  expect(await settled(left)).toEqual([]);
  expect(await leftSince(moment, room.machine, OWN_FILES)).toEqual([]);
});
