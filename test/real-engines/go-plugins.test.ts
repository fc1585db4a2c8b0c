/**
 * From Debian's Go plugins to Patchbay and back, beneath engines whose containers run on: what one made is reached until
 * the other removes it.
 */
import { expect, test } from "bun:test";
import { EngineMachine, NETWORK, PAGE, PLUGINS, PROGRAM } from "../support/engines/engine-machine.ts";
import { Kubelet, OWN_FILES as OF_CONTAINERD } from "../support/engines/kubelet.ts";
import { OWN_FILES as OF_PODMAN, Podman } from "../support/engines/podman.ts";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, momentOf } from "../support/leftovers.ts";
import { GO_PLUGINS, PATCHBAY } from "../support/plugins.ts";
import { settled } from "../support/snapshot.ts";

const cannotRun = lacks("overlay file systems") || lacks("cgroups of version 2");

interface Engine {
  room: EngineMachine;
  /** A web server, which the host has as `port`. */
  serve(port: number): Promise<unknown>;
  remove(port: number): Promise<void>;
  left(): Promise<string[]>;
  ownFiles: RegExp;
}

async function podmanIn(room: EngineMachine): Promise<Engine> {
  const podman = await Podman.open(room), name = (port: number) => `web-${port}`;
  return {
    room,
    serve: (port) => podman.serve(name(port), port),
    remove: (port) => podman.remove(name(port)),
    left: () => podman.left(),
    ownFiles: OF_PODMAN,
  };
}

async function kubeletIn(room: EngineMachine): Promise<Engine> {
  const kubelet = await Kubelet.open(room), ids = new Map<number, string>();
  return {
    room,
    async serve(port) {
      ids.set(port, (await kubelet.run(`web-${port}`, [{ hostPort: port, containerPort: 80 }])).id);
    },
    remove: (port) => kubelet.remove(ids.get(port)!),
    left: () => kubelet.left(),
    // containerd's network for loopback has no file, so gc does not know it. Its ledgers name nothing that stays.
    ownFiles: new RegExp(`${OF_CONTAINERD.source}|^[+] file /run/patchbay/cni-loopback/`),
  };
}

const use = {
  go: ({ machine }: EngineMachine) => machine.sh(`rm ${PLUGINS}/*; cp ${GO_PLUGINS}/* ${PLUGINS}`),
  ours: ({ machine }: EngineMachine) => machine.sh(`rm ${PLUGINS}/*; ${PATCHBAY} install ${PLUGINS}`),
};

for (const [name, open] of Object.entries({ podman: podmanIn, "containerd for kubelets": kubeletIn })) {
  test.skipIf(cannotRun)(`${name}: Go's plugins, ours and Go's again, with containers running`, async () => {
    await using room = await EngineMachine.open();
    const engine = await open(room);
    // Bridges, base chains and Go's own chains stay after the first containers.
    for (const turn of ["go", "ours"] as const) {
      await use[turn](room);
      await engine.serve(8000);
      await engine.remove(8000);
    }
    expect(await settled(() => engine.left())).toEqual([]);
    const tidyUp = () => room.machine.sh(`${PROGRAM} gc --gone ${NETWORK}`);
    await tidyUp();
    const moment = await momentOf(room.machine);

    const running: number[] = [];
    let next = 0;
    const reachAll = async () => {
      for (const port of running) expect(await room.page(`127.0.0.1:${port}`)).toBe(PAGE);
    };
    for (const who of ["go", "ours", "go"] as const) {
      await use[who](room);
      // The oldest was made by others.
      if (running.length > 0) await engine.remove(running.shift()!);
      for (let count = 0; count < 2; count++) {
        const port = 8100 + next++;
        await engine.serve(port);
        running.push(port);
      }
      await reachAll();
    }
    // Two of Go's and one of ours: each is removed by the other.
    await engine.remove(running.shift()!);
    await engine.remove(running.shift()!);
    await use.ours(room);
    await reachAll();
    for (const port of running) await engine.remove(port);
    expect(await settled(() => engine.left())).toEqual([]);
    // Go's plugins do not know our ledgers: what these name is gone from the network, and gc tidies up.
    await tidyUp();
    expect(await leftSince(moment, room.machine, engine.ownFiles)).toEqual([]);
  });
}
