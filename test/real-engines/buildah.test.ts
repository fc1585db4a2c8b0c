/** Debian's buildah runs commands in containers with Patchbay as its netavark, and with Patchbay's plugins. */
import { expect, test } from "bun:test";
import { ENGINE, EngineMachine, GATEWAY, NETWORK, PAGE, PROGRAM, ROOT } from "../support/engines/engine-machine.ts";
import { IMAGE, KEPT, Podman } from "../support/engines/podman.ts";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, type Moment, quietMoment } from "../support/leftovers.ts";
import { untilTrue } from "../support/until-true.ts";
import { ownShare } from "../support/share.ts";

const cannotRun = lacks("overlay file systems") || lacks("cgroups of version 2");

/** crun would want the right to raise limits for buildah's containers. */
const byRunc = ["--runtime", "runc", "--network", NETWORK];

class Buildah {
  #groups = 0;

  constructor(readonly podman: Podman) {}

  get room(): EngineMachine {
    return this.podman.room;
  }

  /** Returns the container's name. */
  async from(): Promise<string> {
    return await this.room.succeed(["buildah", "from", ...this.placed(), IMAGE]);
  }

  /** In a group of its own, that ends with the machine. */
  placed(): string[] {
    return ["--cgroup-parent", `/${this.room.group}/${++this.#groups}`];
  }

  command(container: string, ...words: string[]): string[] {
    return ["buildah", "run", ...byRunc, container, "/bin/busybox", ...words];
  }

  async run(container: string, ...words: string[]): Promise<string> {
    return await this.room.succeed(this.command(container, ...words));
  }
}

/** podman makes the network and the image, which buildah finds. */
async function open(room: EngineMachine, netavark?: string): Promise<Buildah> {
  const podman = await Podman.open(room, { netavark });
  if (netavark !== undefined) {
    await podman.call("network", "create", "--subnet", "10.1.0.0/24", "--gateway", GATEWAY, NETWORK);
  }
  // With a name that no container's process has.
  const program = `cp /bin/busybox ${ENGINE}/server; exec -a busybox ${ENGINE}/server`;
  room.start(["bash", "-c", `${program} httpd -f -p 8000 -h ${ROOT}/www`]);
  expect(await room.page("127.0.0.1:8000")).toBe(PAGE);
  return new Buildah(podman);
}

/** After a container, so that what stays after the last one is there. */
async function momentAfterFirst(buildah: Buildah, container: string): Promise<Moment> {
  await buildah.run(container, "true");
  return await quietMoment(buildah.room.machine);
}

/** With what runs in the container. */
const KILLED = ["buildah", "runc", "busybox"];
/** The runtime's files, and the killed container's name, which only the network's own end takes away. */
const KEPT_OF_KILLED = new RegExp(`${KEPT.source}|file (/run/runc/|.*/.patchbay.lock$)`);

const leftIn = (buildah: Buildah, since: Moment) => leftSince(since, buildah.room.machine, KEPT);

for (const [backend, netavark] of ownShare([["netavark", PROGRAM], ["plugins", undefined]] as const)) {
  test.skipIf(cannotRun)(`${backend}: containers that run, one after another and at once`, async () => {
    await using room = await EngineMachine.open();
    const buildah = await open(room, netavark), [one, other] = [await buildah.from(), await buildah.from()];
    const moment = await momentAfterFirst(buildah, one);
    expect(await buildah.run(one, "wget", "-qO-", `http://${GATEWAY}:8000/`)).toBe(PAGE);
    expect(await leftIn(buildah, moment)).toEqual([]);
    const addresses = await Promise.all(
      [one, other].map((each) => buildah.run(each, "sh", "-c", "busybox ip -4 -o addr show eth0; busybox sleep 1")),
    );
    expect(new Set(addresses.map((text) => /inet (10\.1\.0\.\d+)\/24/.exec(text)?.[1] ?? text)).size).toBe(2);
    expect(await leftIn(buildah, moment)).toEqual([]);
  });

  test.skipIf(cannotRun)(`${backend}: the steps of a build, and one that fails`, async () => {
    await using room = await EngineMachine.open();
    const buildah = await open(room, netavark);
    const moment = await momentAfterFirst(buildah, await buildah.from());
    const build = async (...steps: string[]) => {
      const file = [`FROM ${IMAGE}`, ...steps].join("\n");
      await room.machine.sh("mkdir -p /run/engine/build; cat >/run/engine/build/Containerfile", { stdin: file });
      return await room.run(
        ["buildah", "bud", ...byRunc, ...buildah.placed(), "-t", "built", "/run/engine/build"],
      );
    };
    const fetch = JSON.stringify(["/bin/busybox", "wget", "-O", "/www/fetched", `http://${GATEWAY}:8000/`]);
    expect(await build(`RUN ${fetch}`, `RUN ["/bin/busybox", "cat", "/www/fetched"]`)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(PAGE),
    });
    expect(await build(`RUN ${fetch}`, `RUN ["/bin/busybox", "false"]`)).toMatchObject({ code: 1 });
    expect(await leftIn(buildah, moment)).toEqual([]);
  });

  test.skipIf(cannotRun)(
    `${backend}: buildah never asks again for what it was killed with, and gc takes that away`,
    async () => {
      await using room = await EngineMachine.open();
      const buildah = await open(room, netavark), container = await buildah.from();
      const moment = await momentAfterFirst(buildah, container);
      const running = room.start(buildah.command(container, "sh", "-c", "echo ready; busybox sleep 1000"));
      await running.stdout.getReader().read();
      // One that is killed may have begun another just before.
      const endAll = () => {
        for (const name of KILLED) room.endNow(name);
        return room.processes();
      };
      await untilTrue(endAll, (names) => !names.some((name) => KILLED.includes(name)));
      await running.exited;
      const { stdout } = await room.run([PROGRAM, "gc", "--gone", "--dry-run"]);
      expect(stdout).toMatch(
        /^would delete eth0 of container buildah-\S+ from network net \(its namespace is gone.*\n$/,
      );
      expect(await buildah.run(container, "wget", "-qO-", `http://${GATEWAY}:8000/`)).toBe(PAGE);
      expect(await room.run([PROGRAM, "gc", "--gone", NETWORK])).toMatchObject({ code: 0 });
      expect(await leftSince(moment, room.machine, KEPT_OF_KILLED)).toEqual([]);
    },
  );
}
