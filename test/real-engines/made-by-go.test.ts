/**
 * Containers and pods that Debian's engines attached by Go's plugins, before Patchbay came to the host: our commands look
 * at them, mend them, and remove what they left when they have ended without the engine's DEL.
 */
import { expect, test } from "bun:test";
import { Containerd } from "../support/engines/containerd.ts";
import { EngineMachine, PAGE, PLUGINS, PROGRAM, ROOT, SERVER } from "../support/engines/engine-machine.ts";
import { Kubelet, OWN_FILES } from "../support/engines/kubelet.ts";
import { Podman } from "../support/engines/podman.ts";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { GO_PLUGINS } from "../support/plugins.ts";
import { settled } from "../support/snapshot.ts";
import { untilTrue } from "../support/until-true.ts";

const cannotRun = lacks("overlay file systems") || lacks("cgroups of version 2");

/** Go's plugins are where the engine looks, until `arrive`. */
async function hostOfGo() {
  const room = await EngineMachine.open(), own = `${PLUGINS}-own`;
  await room.machine.sh(`mv ${PLUGINS} ${own}; mkdir ${PLUGINS}; cp ${GO_PLUGINS}/* ${PLUGINS}`);
  const arrive = () => room.machine.sh(`rm -r ${PLUGINS}; mv ${own} ${PLUGINS}`);
  const patchbay = (...words: string[]) => room.machine.run([PROGRAM, ...words], { env: { CNI_PATH: PLUGINS } });
  return { room, arrive, patchbay };
}

async function isPageAt({ machine }: EngineMachine, place: string): Promise<boolean> {
  const { stdout } = await machine.run(["wget", "-qO-", "--timeout=1", "--tries=1", `http://${place}/`]);
  return stdout === `${PAGE}\n`;
}

/** `name`: what names it. `isReached`: by its port or its address. */
async function look(
  { room, patchbay }: Awaited<ReturnType<typeof hostOfGo>>,
  name: string,
  isReached: () => Promise<boolean>,
) {
  const ok = { code: 0, stderr: "" };
  expect(await patchbay("check", "net", name)).toEqual({ ...ok, stdout: "" });
  expect(await patchbay("inspect", "net", name)).toMatchObject({
    ...ok,
    stdout: expect.stringContaining("firewall (made by another program)"),
  });
  expect((await patchbay("status", "net")).code).toBe(0);
  await room.machine.sh(
    "iptables -t nat -F; for link in $(ls /sys/class/net | grep veth); do ip link set $link down; done",
  );
  expect(await isReached()).toBe(false);
  expect((await patchbay("inspect", "net", name)).code).toBe(1);
  expect(await patchbay("repair", "net", name)).toMatchObject({ code: 0 });
  expect(await isReached()).toBe(true);
}

async function collect({ room, patchbay }: Awaited<ReturnType<typeof hostOfGo>>, id: string) {
  await untilTrue(() => room.machine.sh("ls /sys/class/net | grep veth || true"), (links) => links === "");
  expect((await patchbay("gc")).stdout).toContain("its namespace is gone");
  expect(await patchbay("gc", "--gone")).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`deleting eth0 of container ${id}`),
  });
  expect(await room.machine.sh("ls /var/lib/cni/results /var/lib/cni/networks/net; iptables-save")).not.toMatch(
    /10[.]1[.]0[.]|net-/,
  );
}

test.skipIf(cannotRun)("podman's", async () => {
  const host = await hostOfGo();
  await using room = host.room;
  const podman = await Podman.open(room);
  await podman.serve("web", 8080);
  await host.arrive();
  const isReached = () => isPageAt(room, "127.0.0.1:8080");
  await look(host, "web", isReached);
  // Without podman.
  const id = await podman.call("inspect", "-f", "{{.Id}}", "web"),
    path = await podman.call("inspect", "-f", "{{.NetworkSettings.SandboxKey}}", "web");
  await room.machine.sh(`kill -9 $(ip netns pids $(basename ${path})); ip netns del $(basename ${path})`);
  await collect(host, `${id} (web)`);
});

test.skipIf(cannotRun)("containerd's, with the path of a process", async () => {
  const host = await hostOfGo();
  await using room = host.room;
  const containerd = await Containerd.open(room);
  await containerd.call(
    "run",
    "-d",
    "--cni",
    "--cgroup",
    `/${room.group}/web`,
    "--cpu-shares",
    "0",
    "--rootfs",
    ROOT,
    "web",
    ...SERVER,
  );
  const address = await containerd.addressOf("web");
  await host.arrive();
  const isReached = () => isPageAt(room, address);
  await look(host, "default-web", isReached);
  // Without ctr's own DEL.
  await containerd.call("task", "kill", "-s", "SIGKILL", "web");
  await untilTrue(() => containerd.call("task", "ls"), (list) => list.includes("STOPPED"));
  await collect(host, "default-web");
});

test.skipIf(cannotRun)("pods of containerd, running and ended: what removes them leaves nothing", async () => {
  const host = await hostOfGo();
  await using room = host.room;
  const kubelet = await Kubelet.open(room), { patchbay } = host, { machine } = room;
  const run = (name: string, hostPort: number) => kubelet.run(name, [{ hostPort, containerPort: 80 }]);
  // Chains stay after the first pod.
  await kubelet.remove((await run("first", 8080)).id);
  const moment = await quietMoment(machine);
  const web = await run("web", 8081), detached = await run("detached", 8082);
  const ended = await run("ended", 8083), gone = await run("gone", 8084);
  await host.arrive();

  await look(host, "default/web", () => isPageAt(room, "127.0.0.1:8081"));
  await kubelet.remove(web.id);
  expect(await patchbay("del", "net", "detached")).toMatchObject({ code: 0 });
  await kubelet.remove(detached.id);

  const namespaceOf = ({ address }: { address: string }) =>
    machine.sh(`for name in $(ls /run/netns); do
      ip netns exec $name ip addr show eth0 | grep -q " ${address}/" && printf $name
    done || true`);
  for (const pod of [ended, gone]) {
    await machine.sh(`kill -9 $(ip netns pids ${await namespaceOf(pod)})`);
    await untilTrue(() => kubelet.cri.podSandboxStatus(pod.id), ({ isReady }) => !isReady);
  }
  // Its rules went with those of web; its namespace stays until it is removed.
  expect((await patchbay("check", "net", "ended")).code).toBe(1);
  expect(await patchbay("repair", "net", "ended")).toMatchObject({ code: 0 });
  expect(await patchbay("check", "net", "ended")).toMatchObject({ code: 0 });
  await kubelet.remove(ended.id);
  await machine.sh(`ip netns del ${await namespaceOf(gone)}`);
  await collect(host, `${gone.id} (default/gone)`);
  await kubelet.remove(gone.id);
  expect(await settled(() => kubelet.left())).toEqual([]);
  // Our commands' lock stays.
  expect(await leftSince(moment, machine, new RegExp(`${OWN_FILES.source}|[.]patchbay[.]lock$`))).toEqual([]);
});
