/**
 * Who reaches a mapped port, from where, and from which source address: packets between namespaces, for each backend,
 * without the firewall plugin.
 *
 * Longer than 300 lines: all of them are about one town.
 */
import { expect, test } from "bun:test";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { type Network, network } from "../support/network.ts";
import { type Place, serve } from "../support/traffic.ts";

const backends = ["nftables", "iptables"] as const;

/** The host's addresses: towards outside, and those of its bridges. */
const HOST4 = "192.0.2.1", HOST6 = "fd99::1";
const PORT = 8080;

interface Town {
  machine: Machine;
  /** Behind a link of the host, and behind another one: neighbours for whom the host forwards. */
  outside: Container;
  beyond: Container;
  /** On bridge br0; the first has the mapped ports. */
  server: Container;
  beside: Container;
  /** On bridge br1. */
  elsewhere: Container;
  results: Map<Container, unknown>;
}

async function openTown(): Promise<Town> {
  const machine = await openMachine();
  const [outside, beyond] = [await machine.container("outside"), await machine.container("beyond")];
  await machine.sh(`
    # Links have an address of version 6 at once.
    sysctl -qw net.ipv6.conf.default.accept_dad=0
    ip link add wire0 type veth peer name eth0 netns outside
    ip link add wire1 type veth peer name eth0 netns beyond
    ip address add ${HOST4}/24 dev wire0; ip address add ${HOST6}/64 dev wire0 nodad
    ip address add 198.51.100.1/24 dev wire1; ip address add fd98::1/64 dev wire1 nodad
    ip link set wire0 up; ip link set wire1 up
    for each in "outside 192.0.2 fd99" "beyond 198.51.100 fd98"; do
      set -- $each
      ip -n $1 link set lo up; ip -n $1 link set eth0 up
      ip -n $1 address add $2.2/24 dev eth0; ip -n $1 address add $3::2/64 dev eth0 nodad
      ip -n $1 route add default via $2.1; ip -n $1 -6 route add default via $3::1
    done`);
  const results = new Map<Container, unknown>();
  const attached = async (name: string, bridge: string, four: string, six: string) => {
    const container = await machine.container(name);
    const ipam = { type: "host-local", ranges: [[{ subnet: `${four}.0/24` }], [{ subnet: `${six}::/64` }]] };
    const conf = {
      type: "bridge",
      name: bridge,
      bridge,
      isDefaultGateway: true,
      ipMasq: true,
      hairpinMode: true,
      ipam,
    };
    results.set(container, await network(machine, conf).add(container));
    return container;
  };
  const server = await attached("server", "br0", "10.20.0", "fd20");
  const beside = await attached("beside", "br0", "10.20.0", "fd20");
  const elsewhere = await attached("elsewhere", "br1", "10.21.0", "fd21");
  // Until then a bridge answers nobody who asks for the way in version 6.
  await machine.sh("while ip -6 address show tentative | grep -q .; do sleep 0.05; done");
  return { machine, outside, beyond, server, beside, elsewhere, results };
}

function portmap({ machine, results }: Town, conf: Record<string, unknown>): Network {
  return network(machine, { type: "portmap", name: "br0", ...conf }, undefined, {
    own: (container) => ({ prevResult: results.get(container) }),
  });
}

/** In every protocol. */
function mappingsTo(containerPort: number, hostPort = PORT, hostIP = "") {
  return ["tcp", "udp", "sctp"].map((protocol) => ({ hostPort, containerPort, protocol, hostIP }));
}

function mapped(containerPort: number, hostPort = PORT) {
  return { conf: { runtimeConfig: { portMappings: mappingsTo(containerPort, hostPort) } } };
}

for (const backend of backends) {
  test(`${backend}: from everywhere, in both families and all protocols, and not where the host forwards nothing`, async () => {
    const town = await openTown();
    await using machine = town.machine;
    const { outside, server, beside, elsewhere } = town;
    await using inside = await serve(machine, server, "all");
    await portmap(town, { backend }).add(server, mapped(inside.port));
    const from = { outside, host: undefined, localhost: undefined, beside, elsewhere, itself: server };
    const reached = {
      outside: ["192.0.2.2", "fd99::2"],
      host: ["192.0.2.1", "fd99::1"],
      localhost: ["10.20.0.1", undefined], // docs/quirks/portmap.md, "no-mapped-ports-on-the-ipv6-loopback"
      beside: ["10.20.0.1", "fd20::1"],
      elsewhere: ["10.20.0.1", "fd20::1"],
      itself: ["10.20.0.1", "fd20::1"],
    };
    const all = async () =>
      Object.fromEntries(
        await Promise.all(
          Object.entries(from).map(async ([name, container]) => {
            const to = name === "localhost" ? ["127.0.0.1", "::1"] : [HOST4, HOST6];
            return [name, await inside.askAll(container, to.map((address) => [address, PORT]))];
          }),
        ),
      );
    expect(await all()).toEqual(reached);
    await machine.sh("iptables -P FORWARD DROP; ip6tables -P FORWARD DROP");
    const nobody = [undefined, undefined];
    const dropped = { ...reached, outside: nobody, beside: nobody, elsewhere: nobody, itself: nobody };
    expect(await all()).toEqual(dropped);
    // The same where the host's rules are not asked about what stays on a bridge.
    await machine.sh(
      "for each in /proc/sys/net/bridge/bridge-nf-call-ip*; do [ ! -e $each ] || echo 0 > $each; done",
    );
    expect(await all()).toEqual(dropped);
    await machine.sh("iptables -P FORWARD ACCEPT; ip6tables -P FORWARD ACCEPT");
    expect(await all()).toEqual(reached);
  });

  test(`${backend}: what is for others, or for the loopback of the host, is not touched`, async () => {
    const town = await openTown();
    await using machine = town.machine;
    const { outside, beyond, server, beside, elsewhere } = town;
    await using theirs = await serve(machine, beyond, "all");
    await using own = await serve(machine, undefined, "tcp");
    // Led astray, it would end at a port where nobody listens.
    await portmap(town, { backend }).add(server, mapped(1, theirs.port));
    const [fromOutside, fromElsewhere] = await Promise.all([
      theirs.askAll(outside, [["198.51.100.2"], ["fd98::2"], [HOST4]]),
      theirs.askAll(elsewhere, [["198.51.100.2"], ["fd98::2"]]),
    ]);
    expect(fromOutside).toEqual(["192.0.2.2", "fd99::2", undefined]);
    expect(fromElsewhere).toEqual(["198.51.100.1", "fd98::1"]);
    // A container that sends to 127.0.0.1 over the bridge.
    await machine.sh(`
      ip netns exec beside sysctl -qw net.ipv4.conf.eth0.route_localnet=1
      ip -n beside route add 127.0.0.1 via 10.20.0.1`);
    expect(await machine.sh("cat /proc/sys/net/ipv4/conf/br0/route_localnet")).toBe("1\n");
    expect(await own.ask(beside, "127.0.0.1")).toBe(undefined);
    await machine.sh("nft flush chain ip patchbay_localhost prerouting");
    expect(await own.ask(beside, "127.0.0.1")).toBe("10.20.0.3");
  });

  test(`${backend}: the rules of services, which are there first, come first (CVE-2019-9946)`, async () => {
    const town = await openTown();
    await using machine = town.machine;
    const { outside, server, elsewhere } = town;
    await using service = await serve(machine, elsewhere, "tcp");
    await machine.sh(`
      iptables -t nat -N KUBE-SERVICES
      iptables -t nat -A PREROUTING -j KUBE-SERVICES
      iptables -t nat -A KUBE-SERVICES -p tcp -d ${HOST4} --dport ${PORT} -j DNAT --to 10.21.0.2:${service.port}`);
    expect(await service.ask(outside, HOST4, PORT)).toBe("192.0.2.2");
    // Nobody listens at the container's port.
    await portmap(town, { backend }).add(server, mapped(1));
    expect(await service.ask(outside, HOST4, PORT)).toBe("192.0.2.2");
    await machine.sh("iptables -t nat -F KUBE-SERVICES");
    expect(await service.ask(outside, HOST4, PORT)).toBe(undefined);
  });

  for (const hostIP of ["", "0.0.0.0"]) {
    test(`${backend}: of 127.0.0.0/8, a port of all addresses ("${hostIP}") takes 127.0.0.1, and the host's resolver has the rest`, async () => {
      const town = await openTown();
      await using machine = town.machine;
      const { server } = town;
      const mapping = (containerPort: number, at: string) =>
        ["udp", "tcp"].map((protocol) => ({ hostPort: 53, containerPort, protocol, hostIP: at }));
      const net = portmap(town, { backend });
      // As systemd-resolved does, it listens at its own address alone.
      const program = `
        for (const hostname of ["127.0.0.53", "127.255.0.1"]) {
          Bun.listen({ hostname, port: 53, socket: { data() {}, open: (one) => void one.end("the host") } });
          const answer = (one, _bytes, port, address) => void one.send("the host", port, address);
          await Bun.udpSocket({ hostname, port: 53, socket: { data: answer } });
        }
        console.log("listens")`;
      const resolver = machine.start([process.execPath, "-e", program]);
      expect(new TextDecoder().decode((await resolver.stdout.getReader().read()).value)).toBe("listens\n");
      for (const protocol of ["udp", "tcp"] as const) {
        await using inside = await serve(machine, server, protocol);
        // With a port of one address besides, wherever it stands in the list.
        const mappings = [...mapping(inside.port, hostIP), ...mapping(inside.port, "127.0.0.54")];
        await net.add(server, { conf: { runtimeConfig: { portMappings: mappings } } });
        await net.check(server, { conf: { runtimeConfig: { portMappings: mappings } } });
        const places = ["127.0.0.1", "127.0.0.53", "127.0.0.54", "127.255.0.1", HOST4].map((at) => [at, 53] as const);
        const mapped = "10.20.0.1", own = "the host";
        expect(await inside.askAll(undefined, places)).toEqual([mapped, own, mapped, own, HOST4]);
        expect(await inside.ask(town.outside, HOST4, 53)).toBe("192.0.2.2");
        await net.del(server);
        expect(await inside.askAll(undefined, [["127.0.0.53", 53]])).toEqual([own]);
      }
      resolver.kill();
    });
  }

  test(`${backend}: ::1 stays the host's, whatever address a port is asked for at`, async () => {
    const town = await openTown();
    await using machine = town.machine;
    const { server, beside } = town, net = portmap(town, { backend });
    await using own = await serve(machine, undefined, "all");
    await using inside = await serve(machine, server, "all");
    expect(await own.ask(undefined, "::1")).toBe("::1");
    // The host sees a neighbour's address, the container that of the host.
    for (const [hostIP, seen] of [["", "fd20::1"], ["::", "fd20::1"], ["::1", "fd20::3"]] as const) {
      const conf = { runtimeConfig: { portMappings: mappingsTo(inside.port, own.port, hostIP) } };
      await net.add(server, { conf });
      await net.check(server, { conf });
      expect([hostIP, await own.ask(undefined, "::1")]).toEqual([hostIP, "::1"]);
      expect([hostIP, await own.ask(beside, "fd20::1")]).toEqual([hostIP, seen]);
      await net.del(server, { conf });
      expect([hostIP, await own.ask(undefined, "::1")]).toEqual([hostIP, "::1"]);
    }
  });

  test(`${backend}: whose connections get the host's address`, async () => {
    const town = await openTown();
    await using machine = town.machine;
    const { outside, server } = town;
    await using inside = await serve(machine, server, "all");
    const reached = async () =>
      await Promise.all([
        inside.askAll(outside, [[HOST4, PORT], [HOST6, PORT], ["10.20.0.2"]]),
        inside.askAll(server, [[HOST4, PORT], [HOST6, PORT]]),
        inside.askAll(undefined, [["127.0.0.1", PORT]]),
      ]);
    const nobody = portmap(town, { backend, snat: false });
    await nobody.add(server, mapped(inside.port));
    expect(await reached()).toEqual([["192.0.2.2", "fd99::2", "192.0.2.2"], [undefined, undefined], [undefined]]);
    await nobody.del(server);
    await portmap(town, { backend, masqAll: true }).add(server, mapped(inside.port));
    expect(await reached()).toEqual([
      ["10.20.0.1", "fd20::1", "192.0.2.2"],
      ["10.20.0.1", "fd20::1"],
      ["10.20.0.1"],
    ]);
  });

  test(`${backend}: ports of one address of the host, and a run of ports`, async () => {
    const town = await openTown();
    await using machine = town.machine;
    const { outside, server } = town;
    await using first = await serve(machine, server, "all", 9000);
    await using last = await serve(machine, server, "all", 9031);
    const portMappings = [HOST4, HOST6].flatMap((hostIP) => mappingsTo(first.port, PORT, hostIP));
    for (let port = first.port; port <= last.port; port++) portMappings.push(...mappingsTo(port, port));
    await portmap(town, { backend }).add(server, { conf: { runtimeConfig: { portMappings } } });
    const places: Place[] = [
      [HOST4, PORT],
      [HOST6, PORT],
      ["198.51.100.1", first.port],
      ["fd98::1", last.port],
      ["198.51.100.1", PORT],
      ["fd98::1", PORT],
      [HOST4, first.port - 1],
      [HOST6, last.port + 1],
    ];
    expect(await first.askAll(outside, places)).toEqual([
      ...["192.0.2.2", "fd99::2", "192.0.2.2", "fd99::2"],
      ...[undefined, undefined, undefined, undefined],
    ]);
  });

  test(`${backend}: mappings with conditions beside one without`, async () => {
    const town = await openTown();
    await using machine = town.machine;
    const { outside, beyond, server, beside, elsewhere } = town;
    await using first = await serve(machine, server, "tcp");
    const words = backend === "nftables"
      ? { conditionsV4: ["ip", "saddr", "192.0.2.0/24"], conditionsV6: ["ip6 saddr != fd99::/64"] }
      : { conditionsV4: ["-s", "192.0.2.0/24"], conditionsV6: ["!", "-s", "fd99::/64"] };
    const picky = portmap(town, { backend, ...words, name: "picky" }),
      plain = portmap(town, { backend, name: "plain" });
    await picky.add(server, mapped(first.port));
    const reaches = async () =>
      await Promise.all([outside, beyond].map((from) => first.askAll(from, [[HOST4, PORT], [HOST6, PORT]])));
    expect(await reaches()).toEqual([["192.0.2.2", undefined], [undefined, "fd98::2"]]);
    await plain.add(elsewhere, mapped(1));
    await portmap(town, { backend, name: "third", conditionsV4: words.conditionsV4 }).add(beside, mapped(1, 1));
    expect(await reaches()).toEqual([["192.0.2.2", undefined], [undefined, "fd98::2"]]);
    await picky.check(server, mapped(first.port));
    await picky.del(server, mapped(first.port));
    expect(await first.ask(outside, HOST4, PORT)).toBe(undefined);
    await plain.check(elsewhere, mapped(1));
  });

  test(`${backend}: a flow that goes on finds whoever is there now`, async () => {
    const town = await openTown();
    await using machine = town.machine;
    const { outside, server, beside } = town;
    /** Nobody else is there to answer. */
    const answerOf = async (on: Container | undefined) => {
      await using only = await serve(machine, on, "all", PORT);
      return await only.ask(outside, HOST4, PORT, 5000);
    };
    // The host itself has the port, until it is mapped, and again when it is not any more.
    expect(await answerOf(undefined)).toBe("192.0.2.2");
    const net = portmap(town, { backend });
    for (const container of [server, beside]) {
      await net.add(container, mapped(PORT));
      expect(await answerOf(container)).toBe("192.0.2.2");
      await net.del(container, mapped(PORT));
    }
    expect(await answerOf(undefined)).toBe("192.0.2.2");
  });
}
