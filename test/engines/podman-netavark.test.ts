/** Debian's podman with Patchbay in the place of netavark, and with netavark before and after it. */
import { expect, test } from "bun:test";
import { EngineMachine, GATEWAY, NETWORK, PAGE, PROGRAM, SERVER, USERS } from "../support/engines/engine-machine.ts";
import { IMAGE, KEPT, Podman } from "../support/engines/podman.ts";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, type Moment, quietMoment } from "../support/leftovers.ts";
import { startResident } from "../support/resident.ts";
import { untilServed } from "../support/resident-status.ts";
import { untilTrue } from "../support/until-true.ts";
import { settled } from "../support/snapshot.ts";
import { ping } from "../support/traffic.ts";

const cannotRun = lacks("overlay file systems") || lacks("cgroups of version 2");
const DEBIANS = "/usr/lib/podman/netavark";

async function open(room: EngineMachine, netavark = PROGRAM, ...options: string[]): Promise<Podman> {
  const podman = await Podman.open(room, { netavark });
  await podman.call("network", "create", "--subnet", "10.1.0.0/24", "--gateway", GATEWAY, ...options, NETWORK);
  return podman;
}

/** The table with its base chains stays after the first container, as with netavark. */
async function momentAfterFirst(podman: Podman): Promise<Moment> {
  await podman.serve("first", 8000);
  await podman.remove("first");
  expect(await settled(() => podman.left())).toEqual([]);
  return await quietMoment(podman.room.machine);
}

async function expectNothingLeft(podman: Podman, since: Moment): Promise<void> {
  expect(await settled(() => podman.left())).toEqual([]);
  expect(await leftSince(since, podman.room.machine, KEPT)).toEqual([]);
}

async function addressOf(podman: Podman, name: string, network = NETWORK): Promise<string> {
  return await podman.call("inspect", "-f", `{{.NetworkSettings.Networks.${network}.IPAddress}}`, name);
}

test.skipIf(cannotRun).each(USERS)("ports, names, several networks, reload and restart%s", async (_, options) => {
  await using room = await EngineMachine.open(options);
  const podman = await open(room), moment = await momentAfterFirst(podman);
  await podman.serve("web", 8080);
  const address = await addressOf(podman, "web");
  expect(await ping(room.machine, undefined, address)).toBe(true);
  for (const place of [address, `${GATEWAY}:8080`, "web.dns.podman"]) {
    expect(await podman.once("asking", "wget", "-qO-", `http://${place}/`)).toBe(PAGE);
  }

  await podman.call("network", "create", "--subnet", "10.2.0.0/24", "other");
  await podman.call("network", "connect", "other", "web");
  expect(await room.page(await addressOf(podman, "web", "other"))).toBe(PAGE);
  await podman.call("network", "disconnect", "other", "web");
  await podman.call("network", "rm", "other");

  await room.machine.sh("nft flush ruleset");
  await podman.call("network", "reload", "web");
  expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
  expect(await addressOf(podman, "web")).toBe(address);
  await podman.call("restart", "-t", "0", "web");
  expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
  await podman.remove("web");
  await expectNothingLeft(podman, moment);
});

test.skipIf(cannotRun)(
  "through a resident: networks without names are served, and those with names run by themselves",
  async () => {
    await using room = await EngineMachine.open();
    const podman = await open(room, PROGRAM, "--disable-dns"), moment = await momentAfterFirst(podman);
    await podman.call("network", "create", "--subnet", "10.2.0.0/24", "named");
    await using resident = await startResident(room.machine, undefined, PROGRAM);
    const before = await untilServed(room.machine, PROGRAM);
    await podman.serve("web", 8080);
    expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
    await podman.call("restart", "-t", "0", "web");
    expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
    await podman.remove("web");
    const { served, declined } = await untilServed(room.machine, PROGRAM);
    // On a busy machine one may have run by itself.
    expect([served > before.served, declined]).toEqual([true, {}]);
    await podman.serve("other", 8080, "named");
    expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
    await podman.remove("other");
    await podman.call("network", "rm", "named");
    await expectNothingLeft(podman, moment);
    const after = await untilServed(room.machine, PROGRAM);
    expect(Object.keys(after.declined)).toEqual(["aardvark-dns"]);
    resident.kill("SIGTERM");
    expect(await resident.exited).toBe(0);
  },
);

test.skipIf(cannotRun)("rules that were flushed come back by firewall-reload, and no port twice", async () => {
  await using room = await EngineMachine.open();
  const podman = await open(room), moment = await momentAfterFirst(podman);
  await podman.serve("web", 8080);
  const ruleset = () => room.machine.sh("nft list table inet netavark");
  const before = await ruleset(), reload = "/opt/podman/netavark firewall-reload";
  await room.machine.sh(reload);
  expect(await ruleset()).toBe(before);
  await room.machine.sh(`nft flush ruleset; ${reload}`);
  expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
  await podman.remove("web");
  await expectNothingLeft(podman, moment);
});

test.skipIf(cannotRun)("networks that are isolated, and one that is internal", async () => {
  await using room = await EngineMachine.open();
  const podman = await open(room);
  await podman.call("network", "create", "--subnet", "10.2.0.0/24", "-o", "isolate=true", "apart");
  await podman.call("network", "create", "--subnet", "10.3.0.0/24", "--internal", "inside");
  await podman.serve("web", 8080, "apart");
  const address = await addressOf(podman, "web", "apart");
  // Not as the container's first process, which no signal of its own ends.
  const asks = (network: string, place: string) =>
    podman.succeeds("asking", network, "sh", "-c", `busybox timeout 3 busybox wget -qO- http://${place}/; exit $?`);
  expect(await asks("apart", address)).toBe(true);
  expect(await asks(NETWORK, address)).toBe(true);
  await podman.call("network", "create", "--subnet", "10.4.0.0/24", "-o", "isolate=true", "also-apart");
  expect(await asks("also-apart", address)).toBe(false);
  expect(await asks("also-apart", "10.4.0.1:8080")).toBe(true);
  expect(await podman.onceIn("inside", "ip", "route")).toBe("10.3.0.0/24 dev eth0 scope link  src 10.3.0.2");
  await podman.remove("web");
  expect(await settled(() => podman.left())).toEqual([]);
});

test.skipIf(cannotRun)("ten containers at once, and the bridge goes with the last", async () => {
  await using room = await EngineMachine.open();
  const podman = await open(room), moment = await momentAfterFirst(podman);
  const names = Array.from({ length: 10 }, (_, index) => `web-${index}`);
  await Promise.all(names.map((name, index) => podman.serve(name, 8100 + index)));
  expect(await room.machine.sh("ip -br link show master podman1 | wc -l")).toBe("10\n");
  await Promise.all(names.map((name) => podman.remove(name)));
  expect(await room.machine.sh("ip -br link show type bridge")).toBe("");
  await expectNothingLeft(podman, moment);
});

test.skipIf(cannotRun)("containers of Debian's netavark are removed, and its next ones are its own", async () => {
  await using room = await EngineMachine.open();
  await room.machine.sh("iptables -nL >/dev/null; ip6tables -nL >/dev/null");
  // Its aardvark-dns warns that there is no syslog.
  const podman = await open(room, DEBIANS, "--disable-dns");
  const use = (program: string) => room.machine.sh(`ln -sf ${program} /opt/podman/netavark`);
  await podman.serve("theirs", 8080);
  await use(PROGRAM);
  await podman.serve("ours", 8081);
  expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
  await podman.remove("theirs");
  expect(await room.page("127.0.0.1:8081")).toBe(PAGE);
  await podman.remove("ours");
  expect(await room.machine.sh("ip -br link show type bridge")).toBe("");
  await use(DEBIANS);
  await podman.serve("theirs", 8080);
  await podman.remove("theirs");
  expect(await settled(() => podman.left())).toEqual([]);
});

test.skipIf(cannotRun)("back to Debian's netavark and here again, with containers running", async () => {
  await using room = await EngineMachine.open();
  const podman = await open(room), ports = { one: 8080, two: 8081 };
  const expectPages = async () => {
    for (const port of Object.values(ports)) expect(await room.page(`127.0.0.1:${port}`)).toBe(PAGE);
  };
  for (const [name, port] of Object.entries(ports)) await podman.serve(name, port);
  const addresses = await Promise.all(Object.keys(ports).map((name) => addressOf(podman, name)));

  await room.machine.sh(`ln -sf ${DEBIANS} /opt/podman/netavark; nft delete table inet netavark`);
  await podman.call("network", "reload", "--all");
  expect(await room.machine.sh("nft list tables")).not.toContain("netavark");
  await expectPages();
  expect(await Promise.all(Object.keys(ports).map((name) => addressOf(podman, name)))).toEqual(addresses);

  await room.machine.sh(`ln -sf ${PROGRAM} /opt/podman/netavark`);
  await podman.call("network", "reload", "--all");
  await expectPages();
  expect(await podman.once("asking", "wget", "-qO-", "http://two.dns.podman/")).toBe(PAGE);
  for (const name of Object.keys(ports)) await podman.remove(name);
  expect(await settled(() => podman.left())).toEqual([]);
  expect(await room.machine.sh("iptables-save; ip -br link show type bridge; find /run -name '*@eth0@*'"))
    .not.toMatch(/10\.1\.0\.|podman1|@eth0@/);
});

test.skipIf(cannotRun)("forty containers at once", async () => {
  await using room = await EngineMachine.open();
  const podman = await open(room), moment = await momentAfterFirst(podman);
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
    await using room = await EngineMachine.open();
    const podman = await open(room);
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
      room.endNow("conmon");
      await room.run(["podman", "rm", "-f", "-i", "-t", "0", "web"]);
      await podman.serve("web", 8100 + round);
      await podman.remove("web");
    }
    expect(interrupted).toBeGreaterThan(0);
  },
);

test.skipIf(cannotRun)("conmon killed with its container: `podman rm` leaves nothing", async () => {
  await using room = await EngineMachine.open();
  const podman = await open(room), moment = await momentAfterFirst(podman);
  for (const names of [["conmon"], ["busybox"], ["conmon", "busybox"]]) {
    await podman.serve("web", 8080);
    for (const name of names) room.endNow(name);
    // Without conmon, podman's first rm kills the container and fails, because nobody tells its exit status.
    await untilTrue(() => room.run(["podman", "rm", "-f", "-i", "-t", "0", "web"]), ({ code }) => code === 0);
  }
  await expectNothingLeft(podman, moment);
});

test.skipIf(cannotRun)("a boot: containers start again, with their ports", async () => {
  await using room = await EngineMachine.open();
  const podman = await open(room), moment = await momentAfterFirst(podman);
  await podman.serve("web", 8080);
  await podman.serve("other", 8081);
  await room.reboot();
  await podman.call("start", "web");
  expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
  for (const name of ["web", "other"]) await podman.remove(name);
  await expectNothingLeft(podman, moment);
});
