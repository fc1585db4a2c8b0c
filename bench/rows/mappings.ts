/**
 * Five hundred containers with two mapped ports each: the cost of ADD and DEL for the first and the last container, and
 * the time to connect to a mapped port. Ours writes nftables maps; the Go plugin uses its default backend.
 */
import type { Bench, Benchmark, Row } from "../bench.ts";
import { CNI_VERSION, pluginCall, succeed } from "../call.ts";
import { command, type Container, type Side } from "../machine.ts";
import { prepare } from "../process.ts";
import { summarise } from "../statistics.ts";
import { bind, check, lastErrno, libc } from "../../src/ffi/libc.ts";
import { parseAddress } from "../../src/net/address.ts";

const CONTAINERS = 500;
/** The number of containers at either end whose calls are measured, and of connections to each measured mapping. */
const ENDS = 10, CONNECTIONS = 200;
const FIRST_PORT = 20_000;
const GATEWAY = "10.91.0.1", NETWORK_BITS = 16;

const c = bind({
  connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
  listen: { args: ["i32", "i32"], returns: "i32" },
  accept4: { args: ["i32", "ptr", "ptr", "i32"], returns: "i32" },
});
const AF_INET = 2, SOCK_STREAM = 1, SOCK_CLOEXEC = 0o2000000;

const addressOf = (number: number) => `10.91.${1 + (number >> 7)}.${2 + (number & 127)}`;

function socketAddress(address: string, port: number): Uint8Array {
  const bytes = new Uint8Array(16);
  new DataView(bytes.buffer).setUint16(0, AF_INET, true);
  new DataView(bytes.buffer).setUint16(2, port);
  bytes.set(parseAddress(address)!, 4);
  return bytes;
}

interface Setting {
  add(number: number): number;
  del(number: number): number;
  /** The median time of connecting to the first mapping of that container from outside the host, in µs. */
  connect(number: number): number;
}

/** One namespace represents all containers: it has their addresses, and packets take the same path. */
function prepareSetting({ machine }: Bench, side: Side, containers: number): Setting {
  const inside = side.makeContainer("mapped"), outside = side.makeContainer("client");
  const ip = (...words: string[]) => command(["ip", ...words]);
  const link = (container: Container, name: string, ours: string, theirs: string) => {
    side.onHost(() => {
      ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", container.id);
      ip("address", "add", ours, "dev", name);
      ip("link", "set", name, "up");
      command(["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
    });
    side.inContainer(container, () => {
      ip("address", "add", theirs, "dev", "eth0");
      ip("link", "set", "eth0", "up");
      ip("route", "add", "default", "via", ours.split("/")[0]!);
    });
  };
  link(inside, "mapped", `${GATEWAY}/${NETWORK_BITS}`, `${addressOf(0)}/${NETWORK_BITS}`);
  link(outside, "client", "10.92.0.1/24", "10.92.0.2/24");
  const listener = side.inContainer(inside, () => {
    ip("address", "add", `${addressOf(containers - 1)}/${NETWORK_BITS}`, "dev", "eth0");
    const fd = check("socket", libc.socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    check("bind", libc.bind(fd, socketAddress("0.0.0.0", 80), 16));
    check("listen", c.listen(fd, 128));
    return fd;
  });

  const call = (verb: string, number: number) => {
    const hostPort = FIRST_PORT + 2 * number;
    const portMappings = [0, 1].map((more) => ({ hostPort: hostPort + more, containerPort: 80, protocol: "tcp" }));
    const interfaces = [{ name: "mapped" }, { name: "eth0", sandbox: inside.netnsPath }];
    const ips = [{ address: `${addressOf(number)}/${NETWORK_BITS}`, gateway: GATEWAY, interface: 1 }];
    const conf = {
      name: "mappings",
      ...side.name !== "go" && { backend: "nftables" },
      runtimeConfig: { portMappings },
      prevResult: { cniVersion: CNI_VERSION, interfaces, ips },
    };
    const container = { ...inside, id: `container-${number}` };
    return side.onHost(() => {
      machine.settle();
      return succeed(prepare(pluginCall(side, "portmap", verb, conf, container), machine.scratch)).ms;
    });
  };
  return {
    add: (number) => call("ADD", number),
    del: (number) => call("DEL", number),
    connect: (number) => connectionTime(side, outside, listener, number),
  };
}

/** The median time of connecting from `client` to the first mapping of that container, in µs. */
function connectionTime(side: Side, client: Container, listener: number, number: number): number {
  const target = socketAddress("10.92.0.1", FIRST_PORT + 2 * number);
  const samples: number[] = [];
  for (let count = 0; count < CONNECTIONS; count++) {
    const fd = side.inContainer(
      client,
      () => check("socket", libc.socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
    );
    const started = Bun.nanoseconds();
    if (c.connect(fd, target, 16) < 0) {
      throw new Error(`${side.name}: no connection to mapping ${number}: errno ${lastErrno()}`);
    }
    samples.push((Bun.nanoseconds() - started) / 1e3);
    libc.close(check("accept4", c.accept4(listener, null, null, SOCK_CLOEXEC)));
    libc.close(fd);
  }
  return summarise(samples).median;
}

interface Samples {
  first: { add: number[]; del: number[]; connect: number[] };
  last: { add: number[]; del: number[]; connect: number[] };
}

function measure(bench: Bench, side: Side): Samples {
  const containers = bench.quick ? 4 : CONTAINERS, ends = bench.quick ? 2 : ENDS;
  const setting = prepareSetting(bench, side, containers);
  const samples: Samples = { first: { add: [], del: [], connect: [] }, last: { add: [], del: [], connect: [] } };
  const endOf = (number: number) =>
    number < ends ? samples.first : number >= containers - ends ? samples.last : undefined;
  for (let number = 0; number < containers; number++) {
    const ms = setting.add(number);
    endOf(number)?.add.push(ms);
    if (number === 0) samples.first.connect.push(setting.connect(0));
  }
  samples.last.connect.push(setting.connect(containers - 1));
  for (let number = containers - 1; number >= 0; number--) {
    const ms = setting.del(number);
    endOf(number)?.del.push(ms);
  }
  const leftovers = side.onHost(() => command(["nft", "list", "ruleset"])).split("\n").filter((line) =>
    line.includes("10.91.")
  );
  if (leftovers.length > 0) throw new Error(`${side.name}: DEL leftovers ${leftovers[0]}`);
  return samples;
}

export const mappings: Benchmark = {
  name: "mappings",
  run(bench) {
    const { served, alone, go } = bench.machine;
    const [inResident, byItself, theirs] = [served, alone, go].map((side) => measure(bench, side));
    const row = (what: "add" | "del" | "connect", end: "first" | "last", ours: Samples, how: string): Row => ({
      name: what === "connect"
        ? `connection to a mapped port, ${end === "first" ? "alone" : `the last of ${CONTAINERS}`}`
        : `portmap ${what.toUpperCase()}, 2 ports, ${end} of ${CONTAINERS} containers${how}`,
      unit: what === "connect" ? "µs" : "ms",
      ours: summarise(ours[end][what]),
      against: summarise(theirs![end][what]),
    });
    return (["first", "last"] as const).flatMap((end) => [
      ...(["add", "del"] as const).flatMap((what) => [
        row(what, end, inResident!, ""),
        row(what, end, byItself!, ", alone"),
      ]),
      row("connect", end, inResident!, ""),
    ]);
  },
};
