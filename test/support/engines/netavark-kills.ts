/** podman with Patchbay in the place of netavark: many containers at once, kills, and a boot. */
import { expect, test } from "bun:test";
import { untilTrue } from "../until-true.ts";
import { type EngineMachine, NETWORK, PAGE, SERVER } from "./engine-machine.ts";
import {
  addressOf,
  cannotRun,
  expectNothingLeft,
  momentAfterFirst,
  openPodman,
  openRoom,
  type PodmanHost,
} from "./netavark-story.ts";
import { IMAGE } from "./podman.ts";

export function tellOfKills(host: PodmanHost): void {
  test.skipIf(cannotRun)("ten containers at once, and the bridge goes with the last", async () => {
    await using room = await openRoom(host);
    const podman = await openPodman(room), moment = await momentAfterFirst(podman);
    const names = Array.from({ length: 10 }, (_, index) => `web-${index}`);
    await Promise.all(names.map((name, index) => podman.serve(name, 8100 + index)));
    expect(await room.machine.sh("ip -br link show master podman1 | wc -l")).toBe("10\n");
    await Promise.all(names.map((name) => podman.remove(name)));
    expect(await room.machine.sh("ip -br link show type bridge")).toBe("");
    await expectNothingLeft(podman, moment);
  });

  test.skipIf(cannotRun)("forty containers at once", async () => {
    await using room = await openRoom(host);
    const podman = await openPodman(room), moment = await momentAfterFirst(podman);
    // Ports podman would choose are free when a container is created, and may be another's when it starts.
    const ports = new Map(Array.from({ length: 40 }, (_, index) => [`web-${index}`, 8000 + index]));
    const names = [...ports.keys()];
    await Promise.all(
      Array.from(
        ports,
        ([name, port]) =>
          podman.call("create", "--name", name, "--network", NETWORK, "-p", `${port}:80`, IMAGE, ...SERVER),
      ),
    );
    await Promise.all(names.map((name) => podman.call("start", name)));
    const addresses = new Set(await Promise.all(names.map((name) => addressOf(podman, name))));
    expect(addresses.size).toBe(40);
    expect(await room.machine.sh("ip -br link show master podman1 | wc -l")).toBe("40\n");
    for (const port of [8000, 8039]) expect(await room.page(`127.0.0.1:${port}`)).toBe(PAGE);
    await podman.call("rm", "-f", "-t", "0", ...names);
    await expectNothingLeft(podman, moment);
  });

  test.skipIf(cannotRun)(
    "podman killed in the middle of run: the name is free again, and the next container works",
    async () => {
      await using room = await openRoom(host);
      const podman = await openPodman(room), moment = await momentAfterFirst(podman);
      let interrupted = 0;
      for (let round = 0; round < 6; round++) {
        const words = [
          "run",
          "-d",
          "--name",
          "web",
          "--network",
          NETWORK,
          "-p",
          `${8200 + round}:80`,
          IMAGE,
          ...SERVER,
        ];
        const starting = room.start(["podman", ...words]);
        await Bun.sleep(40 + 80 * round);
        starting.kill("SIGKILL");
        if (await starting.exited !== 0) interrupted++;
        for (const name of ["conmon", "crun"]) room.endNow(name);
        await removeKilled(room);
        await podman.serve("web", 8100 + round);
        await podman.remove("web");
      }
      expect(interrupted).toBeGreaterThan(0);
      // podman does not know the namespaces that it had not written down yet, and what is attached there counts as alive.
      await room.machine.sh("for name in $(ls /run/netns); do ip netns del $name; done");
      await podman.serve("web", 8080);
      await podman.remove("web");
      await expectNothingLeft(podman, moment);
    },
  );

  test.skipIf(cannotRun)("conmon killed with its container: `podman rm` leaves nothing", async () => {
    await using room = await openRoom(host);
    const podman = await openPodman(room), moment = await momentAfterFirst(podman);
    for (const names of [["conmon"], ["busybox"], ["conmon", "busybox"]]) {
      await podman.serve("web", 8080);
      for (const name of names) room.endNow(name);
      await removeKilled(room);
    }
    await expectNothingLeft(podman, moment);
  });

  test.skipIf(cannotRun)("a boot: containers start again, with their ports", async () => {
    await using room = await openRoom(host);
    const podman = await openPodman(room), moment = await momentAfterFirst(podman);
    await podman.serve("web", 8080);
    await podman.serve("other", 8081);
    await room.reboot();
    await podman.call("start", "web");
    expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
    for (const name of ["web", "other"]) await podman.remove(name);
    await expectNothingLeft(podman, moment);
  });
}

/** Without conmon, podman's first rm kills the container and fails, because nobody tells its exit status. */
async function removeKilled(room: EngineMachine): Promise<void> {
  await untilTrue(() => room.run(["podman", "rm", "-f", "-i", "-t", "0", "web"]), ({ code }) => code === 0);
}
