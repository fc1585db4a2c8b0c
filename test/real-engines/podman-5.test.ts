/**
 * Debian 13's podman 5.4 with Patchbay in the place of netavark: the stories of podman 4.3 (podman-netavark.test.ts,
 * podman-networks.test.ts), and what podman 4.3 cannot do.
 */
import type { Subprocess } from "bun";
import { expect, test } from "bun:test";
import { EngineMachine, NETWORK, PAGE, PLUGINS, PROGRAM, SERVER } from "../support/engines/engine-machine.ts";
import { tellOfContainers } from "../support/engines/netavark-containers.ts";
import { tellOfKills } from "../support/engines/netavark-kills.ts";
import { tellOfNetworks } from "../support/engines/netavark-networks.ts";
import {
  addressOf,
  cannotRun,
  debian13,
  momentAfterFirst,
  openPodman,
  openRoom,
  THEIRS,
} from "../support/engines/netavark-story.ts";
import { IMAGE, KEPT, type Podman } from "../support/engines/podman.ts";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import type { Machine } from "../support/machine.ts";
import { settled } from "../support/snapshot.ts";
import { untilTrue } from "../support/until-true.ts";

const either = [["netavark 1.14", THEIRS], ["Patchbay", PROGRAM]] as const;

tellOfContainers(debian13);
tellOfNetworks(debian13);
tellOfKills(debian13);

test.skipIf(cannotRun)("the netavark of this podman is 1.14, and Patchbay is 2.1", async () => {
  for (const [netavark, version] of [[THEIRS, "netavark 1.14."], [PROGRAM, "netavark 2.1.0+patchbay."]] as const) {
    await using room = await openRoom(debian13);
    const podman = await openPodman(room, netavark);
    expect(await podman.call("version", "-f", "{{.Client.Version}}")).toMatch(/^5\.4\./);
    expect(await podman.call("info", "-f", "{{.Host.NetworkBackendInfo.Version}}")).toStartWith(version);
  }
});

test.skipIf(cannotRun)(
  "options of networks and containers: as with netavark 1.14",
  async () => {
    const [theirs, ours] = [await seenWith(THEIRS), await seenWith(PROGRAM)];
    expect(ours).toEqual(theirs);
    expect(ours.inside).toEqual(expect.arrayContaining([
      expect.stringContaining("inet 10.2.0.50/24"),
      expect.stringContaining("inet6 fd03::2/64"),
      "10.99.0.0/24 via 10.2.0.9 dev front  metric 55",
      "default via 10.3.0.1 dev back  metric 77",
    ]));
  },
);

/** What a container in two networks shows of them, and podman of the container. */
async function seenWith(netavark: string) {
  await using room = await openRoom(debian13);
  await room.machine.sh("echo 1 >/proc/sys/net/ipv6/conf/all/forwarding");
  const podman = await openPodman(room, netavark);
  const front = ["--subnet", "10.2.0.0/24", "--route", "10.99.0.0/24,10.2.0.9,55", "--interface-name", "front0"];
  await podman.call("network", "create", ...front, "-o", "no_default_route=true", "-o", "isolate=strict", "front");
  const back = ["--subnet", "10.3.0.0/24", "--subnet", "fd03::/64", "--ipv6", "-o", "metric=77", "-o", "mtu=1400"];
  await podman.call("network", "create", ...back, "back");
  const networks = [
    "front:ip=10.2.0.50,mac=0a:58:0a:02:00:32,interface_name=front",
    "back:mac=0a:58:0a:03:00:32,interface_name=back,host_interface_name=web0,alias=larder",
  ].flatMap((one) => ["--network", one]);
  const ports = ["9000-9002:80-82", "9003:80/udp", "127.0.0.1:9004:83"].flatMap((one) => ["-p", one]);
  await podman.call("run", "-d", "--name", "web", "--hostname", "web", ...networks, ...ports, IMAGE, ...SERVER);
  const inside = await podman.call(
    "exec",
    "web",
    "busybox",
    "sh",
    "-c",
    `
    busybox ip -o addr show scope global; busybox ip -o link show; busybox ip route; busybox ip -6 route
    busybox cat /etc/resolv.conf /etc/hosts; busybox nslookup larder.dns.podman 10.3.0.1`,
  );
  const shown = JSON.parse(await podman.call("inspect", "-f", "{{json .NetworkSettings}}", "web"));
  const host = await room.machine.sh("ip -br addr show dev front0 scope global; ip -br link show dev web0; ip route");
  await podman.remove("web");
  return {
    inside: steadyLines(inside),
    host: steadyLines(host),
    ports: shown.Ports,
    networks: JSON.parse(withoutNumbers(JSON.stringify(shown.Networks))),
  };
}

/**
 * The order of networks is nobody's promise, and the kernel takes time for what it says of carriers and addresses. The flag
 * says that it does not look for duplicates; netavark tells that to the link instead.
 */
function steadyLines(text: string): string[] {
  return withoutNumbers(text).split("\n").map((line) => line.replace(/<[^>]*>| tentative| flags 02/g, "").trim())
    .filter((line) => !line.includes("fe80::")).sort();
}

/** Without the numbers of links and containers. */
function withoutNumbers(text: string): string {
  return text.replace(/^[0-9]+: /gm, "").replace(/@if[0-9]+|@[a-z]+/g, "").replace(
    /link-netnsid \S+|qlen [0-9]+/g,
    "",
  )
    .replace(/\b[0-9a-f]{64}\b|\b[0-9a-f]{12}\b/g, "ID").replace(/\b([0-9a-f]{2}:){5}[0-9a-f]{2}\b/g, "MAC");
}

test.skipIf(cannotRun)(
  "name servers that a network gets and loses while its containers run",
  async () => {
    await using room = await openRoom(debian13);
    const podman = await openPodman(room);
    await room.machine.sh("ip addr add 192.0.2.53/32 dev lo");
    const dns = ["--no-resolv", "--no-hosts", "--listen-address=192.0.2.53", "--address=/far.example/192.0.2.99"];
    await using _ = await serve(room.machine, undefined, 53, dns);
    await podman.serve("web", 8080);
    const ask = () => room.run(["podman", "exec", "web", "busybox", "nslookup", "far.example", "10.1.0.1"]);
    const servers = () => room.machine.sh(`head -n 1 /run/containers/networks/aardvark-dns/${NETWORK}`);
    await podman.call("network", "update", NETWORK, "--dns-add", "192.0.2.53");
    expect(await servers()).toBe("10.1.0.1 192.0.2.53\n");
    await untilTrue(ask, ({ stdout }) => stdout.includes("192.0.2.99"));
    await podman.call("network", "update", NETWORK, "--dns-drop", "192.0.2.53");
    expect(await servers()).toBe("10.1.0.1\n");
    await untilTrue(ask, ({ stdout }) => !stdout.includes("192.0.2.99"));
    await podman.remove("web");
    expect(await settled(() => podman.left())).toEqual([]);
  },
);

/** Starts dnsmasq, which serves at this port when it has started. */
async function serve(machine: Machine, namespace: string | undefined, port: number, options: readonly string[]) {
  const enter = namespace === undefined ? [] : ["ip", "netns", "exec", namespace];
  const command = ["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--group=root"];
  const server = machine.start([...enter, ...command, "--bind-interfaces", "--pid-file=", ...options]);
  await untilTrue(() => machine.sh([...enter, "ss", "-Huln"].join(" ")), (bound) => bound.includes(`:${port} `));
  return ended(server);
}

function ended(process: Subprocess): AsyncDisposable {
  const end = async () => {
    process.kill();
    await process.exited;
  };
  return { [Symbol.asyncDispose]: end };
}

const LAN = `
  ip netns add lan
  ip link add lan0 type veth peer name lan1 netns lan
  ip link set lan0 up
  ip -n lan addr add 10.7.0.1/24 dev lan1
  ip -n lan link set lan1 up
  mkdir -p /run/podman`;

test.skipIf(cannotRun || lacks("macvlan links"))("a lease by DHCP, from what serves as podman's proxy", async () => {
  await using room = await openRoom(debian13);
  const podman = await openPodman(room), { machine } = room, moment = await momentAfterFirst(podman);
  await machine.sh(LAN);
  const leases = "/run/lan.leases", range = "--dhcp-range=10.7.0.50,10.7.0.50,255.255.255.0,600";
  const dhcp = ["--port=0", "--interface=lan1", "--no-ping", "--dhcp-authoritative", `--dhcp-leasefile=${leases}`];
  await using _server = await serve(machine, "lan", 67, [...dhcp, range]);
  const proxy = room.inside.start(["/opt/podman/netavark", "dhcp-proxy"]);
  await using _proxy = ended(proxy);
  await untilTrue(() => machine.run(["test", "-S", "/run/podman/nv-proxy.sock"]), ({ code }) => code === 0);
  await podman.call("network", "create", "-d", "macvlan", "-o", "parent=lan0", "--ipam-driver", "dhcp", "lan");
  await podman.call("create", "--name", "web", "--network", "lan", "--hostname", "larder", IMAGE, ...SERVER);
  const ask = () => machine.run(["ip", "netns", "exec", "lan", "busybox", "wget", "-qO-", "http://10.7.0.50/"]);
  for (const verb of [["start"], ["restart", "-t", "0"]]) {
    await podman.call(...verb, "web");
    expect(await addressOf(podman, "web", "lan")).toBe("10.7.0.50");
    expect((await untilTrue(ask, ({ code }) => code === 0)).stdout).toBe(`${PAGE}\n`);
    expect(await machine.sh(`cat ${leases}`)).toMatch(/ 10\.7\.0\.50 larder /);
  }
  await podman.remove("web");
  // The server forgets a lease that is given back.
  await untilTrue(() => machine.sh(`cat ${leases}`), (text) => !text.includes("10.7.0.50"));
  proxy.kill();
  expect(await proxy.exited).toBe(0);
  await machine.sh(`ip link del lan0; ip netns del lan; rm ${leases}`);
  expect(await settled(() => podman.left())).toEqual([]);
  expect(await leftSince(moment, machine, new RegExp(`${KEPT.source}|^[-+] file /var/lib/cni/dhcp/`))).toEqual([]);
});

test.skipIf(cannotRun).each(either)("CNI networks by the driver patchbay, which %s calls", async (_, netavark) => {
  await using room = await openRoom(debian13);
  const podman = await openWithDriver(room, netavark);
  expect(JSON.parse(await podman.call("info", "-f", "{{json .Plugins.Network}}"))).toContain("patchbay");
  const create = ["network", "create", "-d", "patchbay", "--opt"];
  expect(await room.run(["podman", ...create, "conflist=absent", "absent"])).toMatchObject({
    code: 125,
    stderr: expect.stringContaining('no net configuration with name "absent"'),
  });
  await podman.call(...create, `conflist=${NETWORK}`, "chain");
  await podman.call("network", "create", "--subnet", "10.2.0.0/24", "other");
  await momentAfterFirst(podman);
  await podman.serve("first", 8000, "chain");
  await podman.remove("first");
  const moment = await quietMoment(room.machine);
  await podman.serve("web", 8080, "chain");
  const address = await addressOf(podman, "web", "chain");
  await podman.call("network", "reload", "web");
  expect(await addressOf(podman, "web", "chain")).toBe(address);
  await podman.call("network", "connect", "other", "web");
  for (const network of ["chain", "other"]) {
    expect(await room.page(await addressOf(podman, "web", network))).toBe(PAGE);
  }
  await podman.call("restart", "-t", "0", "web");
  expect(await room.page("127.0.0.1:8080")).toBe(PAGE);
  await podman.call("network", "disconnect", "chain", "web");
  expect(await room.page(await addressOf(podman, "web", "other"))).toBe(PAGE);
  await podman.remove("web");
  await podman.call("network", "rm", "chain");
  expect(await settled(() => podman.left())).toEqual([]);
  expect(await leftSince(moment, room.machine, KEPT)).toEqual([]);
});

/** As docs/engines/podman.md sets it up, with another directory. */
async function openWithDriver(room: EngineMachine, netavark: string): Promise<Podman> {
  const podman = await openPodman(room, netavark), conf = "/etc/containers/containers.conf";
  await room.machine.sh(`
    mkdir -p /opt/netavark
    ${PROGRAM} install --podman=/opt/netavark ${PLUGINS} >/dev/null
    sed -i 's|^network_backend|netavark_plugin_dirs = ["/opt/netavark"]\\n&|' ${conf}`);
  return podman;
}
