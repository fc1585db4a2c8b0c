/**
 * Debian's podman with containers in networks whose driver is Patchbay: what podman shows of them, reload, restart,
 * connect and disconnect, several networks, crashes, many at once.
 */
import { expect, test } from "bun:test";
import { EngineMachine, GATEWAY, NETWORK, PAGE, PROGRAM, SERVER } from "../support/engines/engine-machine.ts";
import { OWN_FILES, Podman } from "../support/engines/podman.ts";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, type Moment, quietMoment } from "../support/leftovers.ts";
import { startResident } from "../support/resident.ts";
import { untilServed } from "../support/resident-status.ts";
import { settled } from "../support/snapshot.ts";

// Each test says itself whether there is a resident.
delete process.env.PATCHBAY_TEST_RESIDENT;

const cannotRun = lacks("overlay file systems") || lacks("cgroups of version 2");

const common = { driver: "patchbay", dns_enabled: false, internal: false, ipv6_enabled: false };
const networkOf = (name: string, id: string) => ({
  ...common,
  name,
  id: id.repeat(64),
  options: { conflist: name },
  ipam_options: { driver: "none" },
});
const own = {
  cniVersion: "1.0.0",
  name: "own",
  plugins: [
    {
      type: "bridge",
      bridge: "own0",
      isGateway: true,
      ipMasq: true,
      hairpinMode: true,
      ipam: { type: "host-local", ranges: [[{ subnet: "10.9.0.0/24" }]], routes: [{ dst: "0.0.0.0/0" }] },
    },
    { type: "portmap", capabilities: { portMappings: true } },
    { type: "tuning", sysctl: { "net.core.somaxconn": "77" } },
  ],
};
const IMAGE = "localhost/box";

async function open(room: EngineMachine): Promise<{ podman: Podman; moment: Moment }> {
  await room.machine.sh("cat >/etc/cni/net.d/20-own.conflist", { stdin: JSON.stringify(own) });
  const podman = await Podman.open(room, {
    netavark: PROGRAM,
    networks: [networkOf("own", "a"), networkOf(NETWORK, "b")],
  });
  // Bridges and base chains stay after the first containers.
  for (const network of [NETWORK, "own"]) await run(podman, "first", network, 8000, true);
  expect(await settled(() => podman.left())).toEqual([]);
  return { podman, moment: await quietMoment(room.machine) };
}

async function run(podman: Podman, name: string, network: string, port: number, isOver = false): Promise<void> {
  await podman.call("run", "-d", "--name", name, "--network", network, "-p", `${port}:80`, IMAGE, ...SERVER);
  if (isOver) await podman.remove(name);
}

async function expectNothingLeft(podman: Podman, since: Moment): Promise<void> {
  expect(await settled(() => podman.left())).toEqual([]);
  expect(await leftSince(since, podman.room.machine, OWN_FILES)).toEqual([]);
}

// deno-lint-ignore no-explicit-any
async function shown(podman: Podman, name: string): Promise<any> {
  return JSON.parse(await podman.call("inspect", "-f", "{{json .NetworkSettings.Networks}}", name));
}

test.skipIf(cannotRun)("podman's networks: inspect, ports, reload, restart, connect and disconnect", async () => {
  await using room = await EngineMachine.open();
  const { podman, moment } = await open(room);
  for (const network of ["own", NETWORK]) {
    await run(podman, "web", network, 8080);
    const before = await shown(podman, "web"), { IPAddress, MacAddress, Gateway, IPPrefixLen } = before[network];
    expect(IPPrefixLen).toBe(24);
    expect([GATEWAY, "10.9.0.1"]).toContain(Gateway);
    const inside = await podman.call("exec", "web", "busybox", "ip", "addr", "show", "eth0");
    expect(inside).toContain(`inet ${IPAddress}/24 `);
    expect(inside).toContain(MacAddress);
    expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
    await podman.call("network", "reload", "web");
    expect(await shown(podman, "web")).toEqual(before);
    expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
    await podman.call("restart", "-t", "0", "web");
    expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
    const other = network === "own" ? NETWORK : "own";
    await podman.call("network", "connect", other, "web");
    const both = await shown(podman, "web");
    expect(Object.keys(both).sort()).toEqual([NETWORK, "own"]);
    expect(await room.page(both[other].IPAddress)).toBe(PAGE);
    await podman.call("network", "disconnect", network, "web");
    expect(await room.page(both[other].IPAddress)).toBe(PAGE);
    await podman.remove("web");
  }
  await expectNothingLeft(podman, moment);
});

test.skipIf(cannotRun)("two networks, chosen addresses, and what podman is told when it does not work", async () => {
  await using room = await EngineMachine.open();
  const { podman, moment } = await open(room);
  const words = ["run", "--rm", "--network", `${NETWORK},own`, IMAGE, "busybox"];
  const routes = await podman.call(...words, "ip", "route");
  for (const network of ["10.1.0.0/24", "10.9.0.0/24"]) expect(routes).toContain(network);
  expect(await podman.call(...words, "cat", "/proc/sys/net/core/somaxconn")).toBe("77");
  const chosen = ["--mac-address", "0a:58:0a:09:00:4d", IMAGE, "busybox", "ip", "addr", "show", "eth0"];
  for (const [network, ip] of [["own", "10.9.0.77"], [NETWORK, "10.1.0.77"]] as const) {
    expect(await podman.call("run", "--rm", "--network", network, "--ip", ip, ...chosen.slice(2))).toContain(ip);
  }
  expect(await podman.call("run", "--rm", "--network", "own", ...chosen)).toContain("0a:58:0a:09:00:4d");
  const { code, stderr } = await room.run([
    "podman",
    "run",
    "--rm",
    "--network",
    NETWORK,
    "--ip",
    "10.77.0.1",
    ...chosen,
  ]);
  expect({ failed: code !== 0, stderr }).toEqual({ failed: true, stderr: expect.stringContaining("10.77.0.1") });
  await expectNothingLeft(podman, moment);
});

test.skipIf(cannotRun)(
  "through a resident: it serves the driver, and leaves netavark, which waits for it, to the caller",
  async () => {
    await using room = await EngineMachine.open();
    const { podman, moment } = await open(room);
    await using resident = await startResident(room.machine, undefined, PROGRAM);
    const before = await untilServed(room.machine, PROGRAM);
    await run(podman, "web", `${NETWORK},own`, 8080);
    expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
    await podman.remove("web");
    await expectNothingLeft(podman, moment);
    const { served, declined } = await untilServed(room.machine, PROGRAM);
    expect(served - before.served).toBeGreaterThanOrEqual(4);
    expect(Object.keys(declined)).toEqual(["another program"]);
    resident.kill("SIGTERM");
    expect(await resident.exited).toBe(0);
  },
);

test.skipIf(cannotRun)("many at once, killed and started again", async () => {
  await using room = await EngineMachine.open();
  const { podman, moment } = await open(room);
  const names = Array.from({ length: 8 }, (_, index) => `web-${index}`);
  await Promise.all(names.map((name, index) => run(podman, name, index % 2 === 0 ? "own" : NETWORK, 8080 + index)));
  for (const index of names.keys()) expect(await room.page(`127.0.0.1:${8080 + index}`)).toBe(PAGE);
  await podman.call("kill", ...names);
  await podman.call("start", ...names);
  for (const index of names.keys()) expect(await room.page(`127.0.0.1:${8080 + index}`)).toBe(PAGE);
  await Promise.all(names.map((name) => podman.remove(name)));
  await expectNothingLeft(podman, moment);
});
