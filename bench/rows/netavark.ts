/**
 * A container in a bridge network with published ports, set up and torn down as podman asks netavark for it: one port,
 * 32 ports, and beside other containers with as many.
 */
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { Bench, Benchmark, Row } from "../bench.ts";
import { PATH, succeed } from "../call.ts";
import { command, type Container, hasAddress, type Host, linkNames, openHost, type Side } from "../machine.ts";
import { type Cycle, noSamples, runCycle, type Samples, WARM_UP_RUNS } from "../pairs.ts";
import { prepare, readAgain } from "../process.ts";
import { shuffled, summarise } from "../statistics.ts";

const DEBIANS = "/usr/lib/podman/netavark";
const BRIDGE = "podman1", FIRST_PORT = 20_000;

interface Case {
  ports: number;
  /** Containers that are there already, each with as many ports. */
  neighbours: number;
  runs: number;
  /** Theirs, where a call of Debian's netavark takes minutes. */
  theirRuns?: number;
}

const cases: Case[] = [
  { ports: 1, neighbours: 0, runs: 50 },
  // The bridge is there already.
  { ports: 1, neighbours: 1, runs: 50 },
  { ports: 32, neighbours: 0, runs: 20 },
  { ports: 32, neighbours: 10, runs: 10 },
  { ports: 32, neighbours: 470, runs: 20, theirRuns: 1 },
];

/** So that Debian's netavark does not take minutes for each neighbour, it makes these, and the others are copies. */
const MADE_NEIGHBOURS = 10;

interface Contestant {
  host: Host;
  program: string;
  /** Where podman lets netavark keep its files. */
  config: string;
  environment: Record<string, string>;
  runsOf(each: Case): number;
}

const addressOf = (number: number) => `10.89.${1 + (number >> 7)}.${2 + (number & 127)}`;
const portOf = (number: number, ports: number) => FIRST_PORT + number * ports;

/** What podman tells on stdin: the container of that number in the network. */
function documentOf(number: number, ports: number): string {
  const network = {
    name: "bench",
    id: "be".repeat(32),
    driver: "bridge",
    network_interface: BRIDGE,
    subnets: [{ subnet: "10.89.0.0/16", gateway: "10.89.0.1" }],
    ipv6_enabled: false,
    internal: false,
    dns_enabled: false,
    ipam_options: { driver: "host-local" },
  };
  return JSON.stringify({
    container_id: number.toString(16).padStart(64, "0"),
    container_name: `container-${number}`,
    port_mappings: Array.from({ length: ports }, (_, index) => ({
      host_ip: "",
      host_port: portOf(number, ports) + index,
      container_port: 80,
      protocol: "tcp",
      range: 1,
    })),
    networks: { bench: { interface_name: "eth0", static_ips: [addressOf(number)] } },
    network_info: { bench: network },
  });
}

function call(
  { machine }: Bench,
  { program, config, environment }: Contestant,
  verb: string,
  netns: string,
  stdin: string,
) {
  const args = [
    "--config",
    config,
    "--rootless=false",
    "--aardvark-binary=/usr/lib/podman/aardvark-dns",
    verb,
    netns,
  ];
  return prepare({ path: program, args, env: { PATH, ...environment }, stdin }, machine.scratch);
}

/** Whether the rules of the thread's namespace have the address as a whole word, and the port. */
function publishes(address: string, port: number): boolean {
  const rules = command(["nft", "list", "ruleset"]), word = `${address.replaceAll(".", "\\.")}(?![\\d.])`;
  return new RegExp(word).test(rules) && new RegExp(`\\b${port}\\b`).test(rules);
}

function cycleOf(bench: Bench, contestant: Contestant, container: Container, { ports, neighbours }: Case): Cycle {
  const { host } = contestant, document = documentOf(neighbours, ports), address = addressOf(neighbours);
  const lastPort = portOf(neighbours, ports) + ports - 1, links = host.onHost(linkNames);
  const inside = () => host.inContainer(container, () => linkNames().includes("eth0") && hasAddress(address));
  return {
    add: call(bench, contestant, "setup", container.netnsPath, document),
    del: call(bench, contestant, "teardown", container.netnsPath, document),
    made() {
      if (!inside()) throw new Error(`${host.name}: setup answered, but there is no eth0 with ${address}`);
      if (linkNames().length <= links.length) throw new Error(`${host.name}: no link on the host`);
      if (!publishes(address, lastPort)) throw new Error(`${host.name}: port ${lastPort} is not published`);
    },
    gone() {
      const left = [
        ...host.inContainer(container, linkNames),
        ...linkNames().filter((name) => !links.includes(name)),
      ];
      if (left.length > 0) throw new Error(`${host.name}: teardown left ${left.join(", ")}`);
      if (publishes(address, lastPort)) throw new Error(`${host.name}: teardown left the rules of port ${lastPort}`);
    },
  };
}

/** Sets the neighbours up. Returns a function that removes them and their rules. */
function fill(bench: Bench, contestant: Contestant, { ports, neighbours }: Case): () => void {
  const { host } = contestant, made: string[] = [];
  host.onHost(() => {
    for (let number = 0; number < neighbours; number++) {
      if (number === madeAtMost(bench) && copyRules(number, neighbours, ports)) break;
      const name = `${host.name}-beside-${number}`;
      command(["ip", "netns", "add", name]);
      made.push(name);
      succeed(call(bench, contestant, "setup", `/run/netns/${name}`, documentOf(number, ports)));
    }
  });
  return () => {
    for (const name of made) command(["ip", "netns", "del", name]);
    host.onHost(() => {
      for (const name of linkNames()) if (name === BRIDGE || name.startsWith("copy")) remove(name);
      command(["nft", "flush", "ruleset"]);
    });
  };
}

const madeAtMost = ({ quick }: Bench) => quick ? 1 : MADE_NEIGHBOURS;

/** The other end of a pair goes with the first. */
function remove(link: string): void {
  if (linkNames().includes(link)) command(["ip", "link", "del", link]);
}

/**
 * Neighbours from `first` on as rules like those of number 0, and links to the bridge. Returns false where number 0 has
 * no rules for its ports, but elements of maps: then it takes no minutes to make them.
 */
function copyRules(first: number, end: number, ports: number): boolean {
  const { rules, write, enclose } = rulesByPort();
  const ofFirst = rules.filter((rule) => isBetween(FIRST_PORT, portIn(rule), portOf(1, ports)));
  if (ofFirst.length === 0) return false;
  const copies: string[] = [], links: string[] = [];
  for (let number = first; number < end; number++) {
    links.push(`link add copy${number} master ${BRIDGE} type veth peer name copy${number}-in`);
    for (const rule of ofFirst) {
      const port = portIn(rule) + portOf(number, ports) - FIRST_PORT;
      copies.push(rule.replace(PORT, `dport ${port}`).replace(`${addressOf(0)}:`, `${addressOf(number)}:`));
    }
  }
  give(write, enclose(copies.join("\n")));
  give(["ip", "-batch", "-"], `${links.join("\n")}\n`);
  return true;
}

const PORT = /\bdport (\d+)/;
const portIn = (rule: string) => Number(PORT.exec(rule)?.[1]);
const isBetween = (from: number, value: number, to: number) => from <= value && value < to;

interface RulesByPort {
  rules: string[];
  /** The command that adds rules from stdin. */
  write: string[];
  enclose(rules: string): string;
}

/** As iptables has them, which an older netavark calls, or as nft(8) has them. */
function rulesByPort(): RulesByPort {
  const ruleset = command(["nft", "list", "ruleset"]).split("\n");
  if (ruleset.includes("table ip nat {")) {
    const rules = command(["iptables-save", "-t", "nat"]).split("\n");
    return { rules, write: ["iptables-restore", "--noflush"], enclose: (rules) => `*nat\n${rules}\nCOMMIT\n` };
  }
  const rules: string[] = [];
  let table = "", chain = "";
  for (const line of ruleset) {
    table = /^table (\S+ \S+)/.exec(line)?.[1] ?? table;
    chain = /^\tchain (\S+)/.exec(line)?.[1] ?? chain;
    rules.push(`add rule ${table} ${chain} ${line.trim()}`);
  }
  return { rules, write: ["nft", "-f", "-"], enclose: (rules) => `${rules}\n` };
}

function give(words: string[], text: string): void {
  const { exitCode, stderr } = Bun.spawnSync(words, { stdin: Buffer.from(text), stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`${words.join(" ")}: ${stderr}`);
}

type Contestants = Record<Side["name"], Contestant>;

function measure(bench: Bench, contestants: Contestants, each: Case): Record<Side["name"], Samples> {
  const all = noSamples();
  const ready = Object.entries(contestants).map(([name, contestant]) => {
    const empty = fill(bench, contestant, each), runs = bench.runs(contestant.runsOf(each));
    const container = contestant.host.makeContainer(`${each.ports}-${each.neighbours}`);
    const samples = all[name as Side["name"]];
    return { host: contestant.host, empty, runs, samples, cycle: cycleOf(bench, contestant, container, each) };
  });
  // The first does not count, unless there is no other.
  for (const { host, runs, cycle } of ready) {
    const warmUpRuns = host === bench.machine.served ? bench.runs(WARM_UP_RUNS) : Number(runs > 1);
    for (let run = 0; run < warmUpRuns; run++) runCycle(bench, host, cycle);
  }
  bench.machine.servedAtLeast(2 * bench.runs(each.runs), () => {
    for (let run = 0; run < bench.runs(each.runs); run++) {
      for (const { host, cycle, samples } of shuffled(ready.filter(({ runs }) => run < runs))) {
        const { add, del } = runCycle(bench, host, cycle);
        samples.add.push(add);
        samples.del.push(del);
      }
    }
  });
  for (const { empty } of ready) empty();
  return all;
}

function contestant(
  host: Host,
  program: string,
  environment: Contestant["environment"],
  runsOf: Contestant["runsOf"] = ({ runs }) => runs,
): Contestant {
  const config = `/run/netavark-${host.name}`;
  mkdirSync(config);
  return { host, program, config, environment, runsOf };
}

export const netavark: Benchmark = {
  name: "netavark",
  run(bench) {
    const theirs = bench.netavark ?? DEBIANS, ours = join(bench.machine.scratch, "netavark");
    if (!existsSync(theirs)) throw new Error(`${theirs} is missing`);
    symlinkSync(bench.machine.patchbay, ours);
    readAgain(theirs);
    const version = command([theirs, "--version"]).trim(), { served, alone } = bench.machine;
    const contestants: Contestants = {
      served: contestant(served, ours, served.environment),
      alone: contestant(openHost("netavark-alone"), ours, alone.environment),
      go: contestant(openHost("netavark-theirs"), theirs, {}, ({ runs, theirRuns }) => theirRuns ?? runs),
    };
    return cases.flatMap((each): Row[] => {
      const small = bench.quick
        ? { ...each, ports: Math.min(each.ports, 2), neighbours: few(each.neighbours) }
        : each;
      const samples = measure(bench, contestants, small);
      const row = (verb: "add" | "del", how: "served" | "alone"): Row => ({
        name: `netavark ${verb === "add" ? "setup" : "teardown"}, ${textOf(each)}${how === "alone" ? ", alone" : ""}`,
        unit: "ms",
        ours: summarise(samples[how][verb]),
        against: summarise(samples.go[verb]),
        againstWhat: version,
      });
      return (["add", "del"] as const).flatMap((verb) => [row(verb, "served"), row(verb, "alone")]);
    });
  },
};

/** In smoke mode: none, those that are made, and one that is a copy as well. */
const few = (neighbours: number) => neighbours === 0 ? 0 : neighbours > MADE_NEIGHBOURS ? 2 : 1;

function textOf({ ports, neighbours }: Case): string {
  return `${ports} port${ports === 1 ? "" : "s"}${
    neighbours === 0 ? "" : `, beside ${neighbours} container${neighbours === 1 ? "" : "s"}`
  }`;
}
