/** podman with Patchbay in the place of netavark: what containers have, and whose netavark made it. */
import { expect, test } from "bun:test";
import { startResident } from "../resident.ts";
import { untilServed } from "../resident-status.ts";
import { settled } from "../snapshot.ts";
import { ping } from "../traffic.ts";
import { GATEWAY, NETWORK, PAGE, PROGRAM, USERS } from "./engine-machine.ts";
import {
  addressOf,
  cannotRun,
  expectNothingLeft,
  momentAfterFirst,
  openPodman,
  openRoom,
  type PodmanHost,
  THEIRS,
} from "./netavark-story.ts";

export function tellOfContainers(host: PodmanHost): void {
  test.skipIf(cannotRun).each(USERS)("ports, names, several networks, reload and restart%s", async (_, options) => {
    await using room = await openRoom(host, options);
    const podman = await openPodman(room), moment = await momentAfterFirst(podman);
    await podman.serve("web", 8080);
    const address = await addressOf(podman, "web");
    expect(await ping(room.machine, undefined, address)).toBe(true);
    for (const place of [address, `${GATEWAY}:8080`]) {
      expect(await podman.once("asking", "wget", "-qO-", `http://${place}/`)).toBe(PAGE);
    }
    expect(await podman.onceNamesAnswer("asking", "wget", "-qO-", "http://web.dns.podman/")).toBe(PAGE);

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
      await using room = await openRoom(host);
      const podman = await openPodman(room, PROGRAM, "--disable-dns"), moment = await momentAfterFirst(podman);
      await podman.call("network", "create", "--subnet", "10.2.0.0/24", "named");
      await using resident = await startResident(room.inside, undefined, PROGRAM);
      const before = await untilServed(room.inside, PROGRAM);
      await podman.serve("web", 8080);
      expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
      await podman.call("restart", "-t", "0", "web");
      expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
      await podman.remove("web");
      const { served, declined } = await untilServed(room.inside, PROGRAM);
      // On a busy machine one may have run by itself.
      expect([served > before.served, declined]).toEqual([true, {}]);
      await podman.serve("other", 8080, "named");
      expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
      await podman.remove("other");
      await podman.call("network", "rm", "named");
      await expectNothingLeft(podman, moment);
      const after = await untilServed(room.inside, PROGRAM);
      expect(Object.keys(after.declined)).toEqual(["aardvark-dns"]);
      resident.kill("SIGTERM");
      expect(await resident.exited).toBe(0);
    },
  );

  test.skipIf(cannotRun)("rules that were flushed come back by firewall-reload, and no port twice", async () => {
    await using room = await openRoom(host);
    const podman = await openPodman(room), moment = await momentAfterFirst(podman);
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
    await using room = await openRoom(host);
    const podman = await openPodman(room);
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

  test.skipIf(cannotRun)("containers of Debian's netavark are removed, and its next ones are its own", async () => {
    await using room = await openRoom(host);
    await room.machine.sh("iptables -nL >/dev/null; ip6tables -nL >/dev/null");
    // Its aardvark-dns warns that there is no syslog.
    const podman = await openPodman(room, THEIRS, "--disable-dns");
    const use = (program: string) => room.machine.sh(`ln -sf ${program} /opt/podman/netavark`);
    await podman.serve("theirs", 8080);
    await use(PROGRAM);
    await podman.serve("ours", 8081);
    expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
    await podman.remove("theirs");
    expect(await room.page("127.0.0.1:8081")).toBe(PAGE);
    await podman.remove("ours");
    expect(await room.machine.sh("ip -br link show type bridge")).toBe("");
    await use(THEIRS);
    await podman.serve("theirs", 8080);
    await podman.remove("theirs");
    expect(await settled(() => podman.left())).toEqual([]);
  });

  test.skipIf(cannotRun)("back to Debian's netavark and here again, with containers running", async () => {
    await using room = await openRoom(host);
    const podman = await openPodman(room), ports = { one: 8080, two: 8081 };
    const expectPages = async () => {
      for (const port of Object.values(ports)) expect(await room.page(`127.0.0.1:${port}`)).toBe(PAGE);
    };
    for (const [name, port] of Object.entries(ports)) await podman.serve(name, port);
    const addresses = await Promise.all(Object.keys(ports).map((name) => addressOf(podman, name)));

    await room.machine.sh(`ln -sf ${THEIRS} /opt/podman/netavark; nft delete table inet netavark`);
    await podman.call("network", "reload", "--all");
    expect((await room.machine.sh("nft list tables")).includes("netavark")).toBe(host.writesNftables);
    await expectPages();
    expect(await Promise.all(Object.keys(ports).map((name) => addressOf(podman, name)))).toEqual(addresses);

    await room.machine.sh(`ln -sf ${PROGRAM} /opt/podman/netavark`);
    await podman.call("network", "reload", "--all");
    await expectPages();
    expect(await podman.onceNamesAnswer("asking", "wget", "-qO-", "http://two.dns.podman/")).toBe(PAGE);
    for (const name of Object.keys(ports)) await podman.remove(name);
    expect(await settled(() => podman.left())).toEqual([]);
    expect(await room.machine.sh("iptables-save; ip -br link show type bridge; find /run -name '*@eth0@*'"))
      .not.toMatch(/10\.1\.0\.|podman1|@eth0@/);
  });
}
