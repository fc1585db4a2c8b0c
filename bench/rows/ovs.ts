/** ovs beside our own bridge: what Open vSwitch's database and ovs-vswitchd add, with few ports and with a thousand. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "../../src/contract/host.ts";
import { bootId } from "../../src/ffi/boot.ts";
import { NETLINK_ROUTE, openNetlink } from "../../src/ffi/netlink/socket.ts";
import { ovsPortKind } from "../../src/resources/link/ovs-port/ovs-port.ts";
import type { OvsPortSpec } from "../../src/resources/link/ovs-port/spec.ts";
import type { Bench, Benchmark, Row } from "../bench.ts";
import { command, type Side } from "../machine.ts";
import { runCycle, type Samples, WARM_UP_RUNS } from "../pairs.ts";
import { shuffled, summarise } from "../statistics.ts";
import { interfaceCycle } from "./interfaces.ts";

const SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema", STARTING_MS = 10_000, MANY = 1000;
/** Before each call: ovs-vswitchd still takes a port away when DEL has answered, for a tenth of a second among a thousand. */
const REST_MS = 300;

interface Switch {
  side: Side;
  socket: string;
  end(): void;
}

/** With a bridge `ovs0` on the userspace datapath, which every kernel has. */
function startSwitch({ machine }: Bench, side: Side): Switch {
  const folder = join(machine.scratch, `${side.name}-ovs`), socket = `${folder}/db.sock`;
  mkdirSync(folder);
  return side.onHost(() => {
    command(["ovsdb-tool", "create", `${folder}/conf.db`, SCHEMA]);
    const env = { ...process.env, OVS_RUNDIR: folder, OVS_LOGDIR: folder, OVS_DBDIR: folder };
    const quiet = { stdin: "ignore", stdout: "ignore", stderr: "ignore", env } as const;
    const start = (words: string[], ready: string) => {
      const started = Bun.spawn(words, quiet);
      machine.services.add(started.pid);
      for (const deadline = Date.now() + STARTING_MS; !existsSync(ready); Bun.sleepSync(5)) {
        if (Date.now() > deadline) throw new Error(`${words[0]} does not start`);
      }
      return started;
    };
    const control = (name: string) => `${folder}/${name}.ctl`;
    const database = ["ovsdb-server", `${folder}/conf.db`, `--remote=punix:${socket}`];
    const both = [start([...database, `--unixctl=${control("db")}`], control("db"))];
    vsctl(socket, "--no-wait", "init");
    both.push(start(["ovs-vswitchd", `unix:${socket}`, `--unixctl=${control("switch")}`], control("switch")));
    vsctl(socket, "add-br", "ovs0", "--", "set", "bridge", "ovs0", "datapath_type=netdev");
    return { side, socket, end: () => both.forEach((one) => one.kill("SIGKILL")) };
  });
}

function vsctl(socket: string, ...words: string[]): void {
  command(["ovs-vsctl", "--timeout=300", `--db=unix:${socket}`, ...words]);
}

/** Adds ports that carry nothing. */
function addPorts({ machine }: Bench, { side, socket }: Switch, count: number): void {
  const names = Array.from({ length: count }, (_, index) => `idle${index}`), batch = join(machine.scratch, "links");
  writeFileSync(batch, names.map((name) => `link add ${name} type veth peer name far-${name}\n`).join(""));
  side.onHost(() => {
    command(["ip", "-batch", batch]);
    vsctl(socket, ...names.flatMap((name) => ["--", "add-port", "ovs0", name]));
  });
}

interface Pair {
  ovs: Samples;
  bridge: Samples;
}

function measureBeside(bench: Bench, { side, socket }: Switch, runs: number): Pair {
  const cases = {
    ovs: { plugin: "ovs", conf: { bridge: "ovs0", socket_file: `unix:${socket}` }, before: "true" },
    bridge: { plugin: "bridge", conf: { bridge: "bench9" }, before: "true" },
  };
  const container = side.makeContainer(`ovs-${runs}-${Bun.nanoseconds()}`);
  const cycles = Object.entries(cases).map(([name, one]) => ({
    name: name as keyof Pair,
    cycle: interfaceCycle(bench, side, one, container),
  }));
  const samples: Pair = { ovs: { add: [], del: [] }, bridge: { add: [], del: [] } };
  const warmUpRuns = side === bench.machine.served ? bench.runs(WARM_UP_RUNS) : 1;
  for (let run = -warmUpRuns; run < runs; run++) {
    for (const { name, cycle } of shuffled(cycles)) {
      const { add, del } = runCycle(bench, side, cycle, run < 0 || bench.quick ? 0 : REST_MS);
      if (run < 0) continue;
      samples[name].add.push(add);
      samples[name].del.push(del);
    }
  }
  return samples;
}

/** The port alone, in this process: what the database and ovs-vswitchd take, and nothing else of an ADD. */
function measurePort({ side, socket }: Switch, runs: number): number[] {
  bootId();
  return side.onHost(() => {
    command(["ip", "link", "add", "port0", "type", "veth", "peer", "name", "port1"]);
    const spec: OvsPortSpec = {
      network: "bench",
      containerId: "port",
      ifName: "eth0",
      server: `unix:${socket}`,
      bridge: "ovs0",
      hostName: "port0",
      netnsPath: "",
      vlans: { mode: "trunk" },
      patienceMs: STARTING_MS,
    };
    const route = openNetlink(NETLINK_ROUTE), host = { route } as Host, all: number[] = [];
    for (let run = 0; run < runs; run++) {
      const started = Bun.nanoseconds();
      ovsPortKind.apply(spec, host);
      all.push((Bun.nanoseconds() - started) / 1e6);
      ovsPortKind.remove(spec, host);
      Bun.sleepSync(REST_MS);
    }
    route.close();
    command(["ip", "link", "del", "port0"]);
    return all;
  });
}

function rowsOf(how: string, { ovs, bridge }: Pair, note?: string): Row[] {
  return (["add", "del"] as const).map((verb) => ({
    name: `ovs + host-local ${verb.toUpperCase()}${how}, after ${REST_MS} ms`,
    unit: "ms",
    ours: summarise(ovs[verb]),
    against: summarise(bridge[verb]),
    againstWhat: "bridge",
    note,
  }));
}

export const ovs: Benchmark = {
  name: "ovs",
  run(bench) {
    const { served, alone } = bench.machine, switches = [served, alone].map((side) => startSwitch(bench, side));
    const [ofServed, ofAlone] = switches as [Switch, Switch];
    try {
      const runs = bench.runs(30);
      const few = bench.machine.servedAtLeast(4 * runs, () => measureBeside(bench, ofServed, runs));
      const fewAlone = measureBeside(bench, ofAlone, runs), port = measurePort(ofAlone, runs);
      const many = bench.quick ? 10 : MANY;
      addPorts(bench, ofServed, many);
      addPorts(bench, ofAlone, many);
      return [
        ...rowsOf("", few),
        ...rowsOf(", alone", fewAlone),
        { name: "ovs: the port by itself", unit: "ms", ours: summarise(port) },
        ...rowsOf(`, beside ${many} ports`, measureBeside(bench, ofServed, runs)),
        {
          name: `ovs: the port by itself, beside ${many} ports`,
          unit: "ms",
          ours: summarise(measurePort(ofAlone, runs)),
        },
      ];
    } finally {
      for (const { end } of switches) end();
    }
  },
};
