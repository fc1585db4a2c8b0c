/** podman with Patchbay in the place of netavark: kinds of networks, and what containers say of theirs. */
import { expect, test } from "bun:test";
import { lacks } from "../kernel-features.ts";
import { NETWORK, PAGE, PROGRAM, SERVER } from "./engine-machine.ts";
import {
  cannotRun,
  expectNothingLeft,
  momentAfterFirst,
  openPodman,
  openRoom,
  type PodmanHost,
} from "./netavark-story.ts";
import { IMAGE } from "./podman.ts";

export function tellOfNetworks(host: PodmanHost): void {
  test.skipIf(cannotRun)("a pod of two containers; --network host and none are not touched", async () => {
    await using room = await openRoom(host);
    const podman = await openPodman(room), moment = await momentAfterFirst(podman);
    await podman.call(
      "pod",
      "create",
      "--name",
      "pod",
      "--network",
      NETWORK,
      "-p",
      "8080:80",
      "--infra-image",
      IMAGE,
      "--infra-command",
      "/bin/busybox sleep 9999",
    );
    await podman.call("run", "-d", "--pod", "pod", "--name", "web", IMAGE, ...SERVER);
    expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
    // podman tells of the pod alone; a container's process leads there.
    const pid = await podman.call("inspect", "-f", "{{.State.Pid}}", "web");
    expect(await room.machine.sh(`${PROGRAM} inspect --brief pid:${pid.trim()}`)).toMatch(/ 8080->80\/tcp +ok$/m);
    expect(await podman.call("run", "--rm", "--pod", "pod", IMAGE, "busybox", "wget", "-qO-", "http://127.0.0.1/"))
      .toBe(PAGE);
    await podman.call("pod", "rm", "-f", "-t", "0", "pod");
    expect(await podman.onceIn("none", "ip", "-o", "link")).not.toContain("eth0");
    expect((await podman.onceIn("host", "ip", "-o", "link")).length).toBeGreaterThan(0);
    await expectNothingLeft(podman, moment);
  });

  test.skipIf(cannotRun)("both families: ports of both, and chosen addresses", async () => {
    await using room = await openRoom(host);
    await room.machine.sh("echo 1 >/proc/sys/net/ipv6/conf/all/forwarding");
    const podman = await openPodman(room), moment = await momentAfterFirst(podman);
    const subnets = ["--subnet", "10.5.0.0/24", "--subnet", "fd05::/64", "--ipv6"];
    await podman.call("network", "create", ...subnets, "both");
    const chosen = ["--ip", "10.5.0.55", "--ip6", "fd05::55", "--mac-address", "0a:58:0a:05:00:37"];
    await podman.call(
      "run",
      "-d",
      "--name",
      "web",
      "--network",
      "both",
      ...chosen,
      "-p",
      "8080:80",
      "-p",
      "[::1]:8081:80",
      IMAGE,
      "/bin/busybox",
      "httpd",
      "-f",
      "-p",
      "[::]:80",
      "-h",
      "/www",
    );
    for (const place of ["10.5.0.55", "[fd05::55]", "127.0.0.1:8080", "10.5.0.1:8080", "[fd05::1]:8080"]) {
      expect(await room.page(place)).toBe(PAGE);
    }
    const inside = await podman.call("exec", "web", "busybox", "ip", "addr", "show", "eth0");
    expect(inside).toContain("0a:58:0a:05:00:37");
    await podman.remove("web");
    await podman.call("network", "rm", "both");
    await expectNothingLeft(podman, moment);
  });

  test.skipIf(cannotRun)("an internal network has no default route, and no way out", async () => {
    await using room = await openRoom(host);
    const podman = await openPodman(room), moment = await momentAfterFirst(podman);
    await podman.call("network", "create", "--internal", "--subnet", "10.6.0.0/24", "inside");
    expect(await podman.onceIn("inside", "ip", "route")).not.toContain("default");
    // The gateway of the other network is there as long as it has a container.
    await podman.serve("web", 8080);
    expect(await podman.succeeds("asking", NETWORK, "ping", "-c", "1", "-W", "5", "10.1.0.1")).toBe(true);
    expect(await podman.succeeds("asking", "inside", "ping", "-c", "1", "-W", "1", "10.1.0.1")).toBe(false);
    await podman.remove("web");
    await podman.call("network", "rm", "inside");
    await expectNothingLeft(podman, moment);
  });

  test.skipIf(cannotRun || lacks("macvlan links"))("a macvlan network on a parent", async () => {
    await using room = await openRoom(host);
    const podman = await openPodman(room), moment = await momentAfterFirst(podman);
    await room.machine.sh(`
      ip netns add lan
      ip link add lan0 type veth peer name lan1 netns lan
      ip link set lan0 up
      ip -n lan addr add 10.7.0.1/24 dev lan1
      ip -n lan link set lan1 up
    `);
    await podman.call("network", "create", "-d", "macvlan", "-o", "parent=lan0", "--subnet", "10.7.0.0/24", "lan");
    expect(await podman.onceIn("lan", "ping", "-c", "1", "-W", "5", "10.7.0.1")).toContain(" 1 packets received");
    await podman.call("network", "rm", "lan");
    await room.machine.sh("ip link del lan0; ip netns del lan");
    await expectNothingLeft(podman, moment);
  });
}
