/** dhcp: an attachment with a lease, and what a thousand leases cost the process that holds them. */
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench, Benchmark, Row } from "../bench.ts";
import { passResult, pluginCall } from "../call.ts";
import { command, linkNames, type Side } from "../machine.ts";
import { type Cycle, cycleRows, measureCycles } from "../pairs.ts";
import { prepare } from "../process.ts";
import { summarise } from "../statistics.ts";
import { firstAddress, requireAttached } from "./attach.ts";

const STARTING_MS = 10_000;

/** A side's service, and a server behind the bridge `bench3`. */
interface Holding {
  side: Side;
  socket: string;
  dataDir: string;
  /** The service's process. */
  pid: number;
  end(): void;
}

function hold({ machine }: Bench, side: Side, leaseSeconds: number): Holding {
  const folder = join(machine.scratch, `${side.name}-dhcp-${leaseSeconds}`), socket = `${folder}/sock`;
  mkdirSync(folder);
  const server = side.makeContainer(`server-${leaseSeconds}`), link = `s${leaseSeconds}`.slice(0, 8);
  return side.onHost(() => {
    const ip = (words: string) => command(["ip", ...words.split(" ")]);
    if (!linkNames().includes("bench3")) ip("link add bench3 type bridge");
    ip("link set bench3 up");
    ip(`link add ${link} type veth peer name s0 netns ${server.id}`);
    ip(`link set ${link} master bench3 up`);
    ip(`-n ${server.id} address add 10.90.0.1/16 dev s0`);
    ip(`-n ${server.id} link set s0 up`);
    const range = `--dhcp-range=10.90.1.0,10.90.250.0,255.255.0.0,${leaseSeconds}`;
    const files = [`--dhcp-leasefile=${folder}/leases`, `--pid-file=${folder}/pid`, "--dhcp-lease-max=5000"];
    const serving = [
      "dnsmasq",
      "-k",
      "-C",
      "/dev/null",
      "-p0",
      "-i",
      "s0",
      "--bind-interfaces",
      "--no-ping",
      "--user=root",
    ];
    const quiet = { stdin: "ignore", stdout: "ignore", stderr: "ignore" } as const;
    const start = (words: string[]) => Bun.spawn(words, quiet);
    const both = [
      start(["ip", "netns", "exec", server.id, ...serving, range, ...files]),
      start([
        `${side.bin}/dhcp`,
        "daemon",
        "-socketpath",
        socket,
        ...side.name === "go" ? [] : ["-datadir", `${folder}/d`],
      ]),
    ];
    for (const { pid } of both) machine.services.add(pid);
    for (const deadline = Date.now() + STARTING_MS; !existsSync(socket) || !existsSync(`${folder}/pid`);) {
      if (Date.now() > deadline) throw new Error(`${side.name}: the DHCP service or its server does not start`);
      Bun.sleepSync(5);
    }
    const end = () => {
      for (const one of both) one.kill();
      side.onHost(() => ip(`link del ${link}`));
    };
    return { side, socket, dataDir: `${folder}/d`, pid: both[1]!.pid, end };
  });
}

function ipamOf({ socket, dataDir, side }: Holding): Record<string, unknown> {
  return { type: "dhcp", daemonSocketPath: socket, ...side.name === "go" ? {} : { dataDir } };
}

function cycle({ machine }: Bench, holding: Holding): Cycle {
  const { side } = holding, container = side.makeContainer("dhcp");
  const conf = { name: "bench-dhcp", type: "bridge", bridge: "bench3", ipam: ipamOf(holding) };
  const call = (verb: string) => prepare(pluginCall(side, "bridge", verb, conf, container), machine.scratch);
  const del = call("DEL");
  return {
    add: call("ADD"),
    del,
    made(result) {
      passResult(result, conf, del);
      requireAttached(side, container, firstAddress(result));
    },
    gone() {
      const left = side.inContainer(container, () => readFileSync("/proc/thread-self/net/dev", "utf8"));
      if (left.includes("eth0")) throw new Error(`${side.name}: DEL left eth0`);
    },
  };
}

export const dhcp: Benchmark = {
  name: "dhcp",
  run(bench) {
    const { alone, go } = bench.machine, holdings = [alone, go].map((side) => hold(bench, side, 3600));
    try {
      const samples = measureCycles(
        bench,
        bench.runs(60),
        (side) => cycle(bench, holdings.find((one) => one.side === side)!),
        { sides: [alone, go] },
      );
      return cycleRows("bridge + dhcp", samples);
    } finally {
      for (const { end } of holdings) end();
    }
  },
};

const LEASES = 1000, A_NAMESPACE = 20;

interface Cost {
  memoryMib: number;
  threads: number;
  descriptors: number;
}

/** The IPAM plugin alone, called for twenty links at a time; the links stay without the addresses. */
function takeLeases(bench: Bench, side: Side, leases: number): { before: Cost; after: Cost } {
  const holding = hold(bench, side, 3601);
  try {
    const before = costOf(holding.pid);
    for (let index = 0; index < leases; index += A_NAMESPACE) {
      const container = side.makeContainer(`lease-${index}`);
      side.onHost(() => {
        const calls = Array.from({ length: Math.min(A_NAMESPACE, leases - index) }, (_, link) => {
          const host = `l${index + link}`, conf = { name: "bench-dhcp", type: "bridge", ipam: ipamOf(holding) };
          command(["ip", "link", "add", host, "type", "veth", "peer", "name", `eth${link}`, "netns", container.id]);
          command(["ip", "link", "set", host, "master", "bench3", "up"]);
          const program = pluginCall(side, "dhcp", "ADD", conf, container);
          return prepare({ ...program, env: { ...program.env, CNI_IFNAME: `eth${link}` } }, bench.machine.scratch);
        });
        for (const call of calls.map((call) => ({ call, end: call.start() }))) {
          if (call.end() !== 0) throw new Error(`${side.name}: ${call.call.stdout()}`);
        }
      });
    }
    return { before, after: costOf(holding.pid) };
  } finally {
    holding.end();
  }
}

function costOf(pid: number): Cost {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return {
    memoryMib: Number(/^Rss: +(\d+) kB/m.exec(rollup)?.[1]) / 1024,
    threads: readdirSync(`/proc/${pid}/task`).length,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
  };
}

export const dhcpLeases: Benchmark = {
  name: "dhcp-leases",
  run(bench) {
    const leases = bench.quick ? 20 : LEASES, { alone, go } = bench.machine;
    const ours = takeLeases(bench, alone, leases), theirs = takeLeases(bench, go, leases);
    const row = (what: string, which: "before" | "after", note: string): Row => ({
      name: `dhcp service, ${what}: resident`,
      unit: "MiB",
      ours: summarise([ours[which].memoryMib]),
      against: summarise([theirs[which].memoryMib]),
      note,
    });
    const counts = ({ threads, descriptors }: Cost) => `${threads} threads, ${descriptors} descriptors`;
    return [
      row("no lease", "before", ""),
      row(`${leases} leases`, "after", `${counts(ours.after)}; Go: ${counts(theirs.after)}`),
    ];
  },
};
