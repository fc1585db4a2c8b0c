/** Debian's containerd as kubelets call it: pods get their addresses and host ports from Patchbay's plugins. */
import { expect, test } from "bun:test";
import { ENGINE, EngineMachine, GATEWAY, PAGE, USERS } from "../support/engines/engine-machine.ts";
import { Kubelet, OWN_FILES } from "../support/engines/kubelet.ts";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, type Moment, quietMoment } from "../support/leftovers.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { settled } from "../support/snapshot.ts";
import { untilTrue } from "../support/until-true.ts";

const cannotRun = lacks("overlay file systems") || lacks("cgroups of version 2");

const PORTS = Array.from({ length: 10 }, (_, index) => 8100 + index);

/** Bridge and base chains stay after the first pod. */
async function momentAfterFirst(kubelet: Kubelet): Promise<Moment> {
  const { id } = await kubelet.run("first", [{ hostPort: 8000, containerPort: 80 }]);
  await kubelet.remove(id);
  expect(await settled(() => kubelet.left())).toEqual([]);
  return await quietMoment(kubelet.room.machine);
}

async function expectNothingLeft(kubelet: Kubelet, since: Moment): Promise<void> {
  expect(await settled(() => kubelet.left())).toEqual([]);
  expect(await leftSince(since, kubelet.room.machine, OWN_FILES)).toEqual([]);
}

test.skipIf(cannotRun).each(USERS)(
  "a pod has its address and host ports, until it is stopped%s",
  async (_, options) => {
    await using room = await EngineMachine.open(options);
    const kubelet = await Kubelet.open(room), moment = await momentAfterFirst(kubelet);
    const { id, address } = await kubelet.run("web", [{ hostPort: 8080, containerPort: 80 }]);
    expect(address).toStartWith("10.1.0.");
    for (const place of [address, `${GATEWAY}:8080`, "127.0.0.1:8080"]) expect(await room.page(place)).toBe(PAGE);
    await kubelet.remove(id);
    await expectNothingLeft(kubelet, moment);
  },
);

test.skipIf(cannotRun)("a pod whose network is refused leaves nothing, and is told why", async () => {
  await using room = await EngineMachine.open();
  const kubelet = await Kubelet.open(room), moment = await momentAfterFirst(kubelet);
  await expect(kubelet.run("web", [{ hostPort: 70000, containerPort: 80 }])).rejects.toThrow("70000");
  for (const id of await kubelet.cri.sandboxIds()) await kubelet.remove(id);
  await expectNothingLeft(kubelet, moment);
});

test.skipIf(cannotRun)("ten pods at once, and containerd killed beside them", async () => {
  await using room = await EngineMachine.open();
  const kubelet = await Kubelet.open(room), moment = await momentAfterFirst(kubelet);
  const pods = await runTen(kubelet);
  expect(new Set(pods.map(({ address }) => address)).size).toBe(10);
  await kubelet.kill();
  await expectPages(kubelet);
  await kubelet.start();
  for (const { id, address } of pods) {
    expect(await kubelet.cri.podSandboxStatus(id)).toEqual({ isReady: true, ips: [address] });
  }
  await Promise.all(pods.map(({ id }) => kubelet.remove(id)));
  await expectNothingLeft(kubelet, moment);
});

test.skipIf(cannotRun)("containerd killed while it starts pods, and while it removes them", async () => {
  await using room = await EngineMachine.open();
  const kubelet = await Kubelet.open(room), moment = await momentAfterFirst(kubelet);
  let interrupted = 0;
  for (let round = 0; round < 4; round++) {
    const starting = Promise.allSettled(["a", "b", "c", "d"].map((name) => kubelet.run(name)));
    await Bun.sleep(100 + 150 * round);
    await kubelet.kill();
    interrupted += (await starting).filter(({ status }) => status === "rejected").length;
    await kubelet.start();
    const removing = Promise.allSettled((await kubelet.cri.sandboxIds()).map((id) => kubelet.remove(id)));
    await Bun.sleep(60 * round);
    await kubelet.kill();
    await removing;
    await kubelet.start();
    for (const id of await kubelet.cri.sandboxIds()) await kubelet.remove(id);
  }
  expect(interrupted).toBeGreaterThan(0);
  // containerd forgets a pod that it was starting, with its shim and with its namespace: nobody calls DEL for it.
  await room.machine.sh("for name in $(ls /run/netns); do ip netns del $name; done");
  const left = async () => {
    await room.machine.sh(`${PATCHBAY} gc --gone`);
    return await leftSince(moment, room.machine, OWN_FILES);
  };
  await untilTrue(left, ({ length }) => length === 0);
});

test.skipIf(cannotRun)("a boot: pods of before are removed, and new ones get addresses and ports", async () => {
  await using room = await EngineMachine.open();
  const kubelet = await Kubelet.open(room), moment = await momentAfterFirst(kubelet);
  const before = await runTen(kubelet);
  await room.reboot();
  await kubelet.start();
  for (const { id } of before) expect((await kubelet.cri.podSandboxStatus(id)).isReady).toBe(false);
  const after = await runTen(kubelet, "again");
  await expectPages(kubelet);
  await Promise.all([...before, ...after].map(({ id }) => kubelet.remove(id)));
  await expectNothingLeft(kubelet, moment);
});

test.skipIf(cannotRun)("the file that containerd takes for pods is the one that explain names", async () => {
  await using room = await EngineMachine.open();
  const kubelet = await Kubelet.open(room), directory = "/etc/cni/net.d", { machine } = room;
  await machine.sh(`mkdir -p /run/containerd; ln -s ${ENGINE}/containerd.sock /run/containerd/containerd.sock`);
  const other = {
    cniVersion: "1.0.0",
    name: "other",
    plugins: [{ type: "bridge", bridge: "other0", ipam: { type: "host-local", subnet: "10.9.0.0/24" } }],
  };
  await machine.sh(`cat >${directory}/05-other.conflist`, { stdin: JSON.stringify(other) });
  const addresses = async () => {
    const { id, address } = await kubelet.run("web");
    await kubelet.remove(id);
    return address;
  };
  await untilTrue(addresses, (address) => address.startsWith("10.9.0."));
  const explained = async () => JSON.parse((await machine.run([PATCHBAY, "explain", "--all", "--json"])).stdout);
  const taken = {
    engine: "containerd",
    directory,
    network: "other",
    path: `${directory}/05-other.conflist`,
    passedOver: [`${directory}/10-net.conflist`],
  };
  expect(await explained()).toMatchObject({ engines: [taken] });
  await machine.sh(`echo '{' >${directory}/01-broken.conflist`);
  await untilTrue(() => kubelet.cri.notReady(), (notReady) => notReady.length > 0);
  expect((await explained()).host).toEqual([
    { code: "engine-without-network", text: expect.stringContaining("01-broken.conflist") },
  ]);
});

function runTen(kubelet: Kubelet, name = "web"): Promise<{ id: string; address: string }[]> {
  return Promise.all(
    PORTS.map((port) => kubelet.run(`${name}-${port}`, [{ hostPort: port, containerPort: 80 }])),
  );
}

async function expectPages({ room }: Kubelet): Promise<void> {
  for (const port of PORTS) expect(await room.page(`127.0.0.1:${port}`)).toBe(PAGE);
}
