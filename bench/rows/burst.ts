/** A hundred containers at once: the time until the last one is attached, and until the last one is detached. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Bench, Benchmark } from "../bench.ts";
import { passResult, pluginCall } from "../call.ts";
import { command, type Container, type Side } from "../machine.ts";
import { cycleRows, noSamples, type Samples } from "../pairs.ts";
import { prepare, type Prepared } from "../process.ts";
import { shuffled } from "../statistics.ts";
import { confOf, pluginsOf } from "./chain.ts";
import { bridgeConf, firstAddress, requireAttached, requireDetached } from "./attach.ts";

const AT_ONCE = 100;

interface Kind {
  /** Its containers are called so. */
  name: string;
  ipMasq?: boolean;
  /** The first call of each burst starts the resident. */
  isFirst?: boolean;
}

function measure(bench: Bench, runs: number, { name, ipMasq = false, isFirst }: Kind): Record<Side["name"], Samples> {
  const { machine } = bench;
  const settle = (side: Side) => {
    // The workers of the burst before rehearse meanwhile.
    if (isFirst) machine.end();
    if (isFirst && side === machine.served) machine.listenForFirstCall();
    machine.settle();
  };
  const requireServed = (side: Side) => {
    if (!isFirst || side !== machine.served || bench.quick) return;
    const count = machine.servedCalls();
    if (count < AT_ONCE / 2) throw new Error(`the resident served ${count} calls of ${AT_ONCE}`);
  };
  const contestants = machine.sides.map((side) => {
    const leases = join(machine.scratch, `${side.name}-burst`);
    mkdirSync(leases, { recursive: true });
    const conf = bridgeConf(leases, ipMasq);
    const attachments = Array.from({ length: bench.quick ? 5 : AT_ONCE }, (_, index) => {
      const container = side.makeContainer(`${name}-${index}`);
      const call = (verb: string) => prepare(pluginCall(side, "bridge", verb, conf, container), machine.scratch);
      return { container, conf, add: call("ADD"), del: call("DEL") };
    });
    return { side, attachments };
  });
  const samples = noSamples();
  for (let run = 0; run < runs; run++) {
    for (const { side, attachments } of shuffled(contestants)) {
      side.onHost(() => {
        settle(side);
        samples[side.name].add.push(allAtOnce(attachments.map(({ add }) => add)));
        requireServed(side);
        requireAllAttached(side, attachments);
        for (const { conf, add, del } of attachments) passResult(add.stdout(), conf, del);
        settle(side);
        samples[side.name].del.push(allAtOnce(attachments.map(({ del }) => del)));
        requireServed(side);
        for (const { container } of attachments) requireDetached(side, container);
      });
    }
  }
  return samples;
}

function allAtOnce(calls: Prepared[]): number {
  const started = Bun.nanoseconds();
  const ends = calls.map((call) => call.start());
  const codes = ends.map((end) => end());
  const ms = (Bun.nanoseconds() - started) / 1e6;
  const failed = codes.findIndex((code) => code !== 0);
  if (failed >= 0) throw new Error(`${calls[failed]!.stdout()}${calls[failed]!.stderr()}`);
  return ms;
}

function requireAllAttached(side: Side, attachments: { container: Container; add: Prepared }[]): void {
  const addresses = attachments.map(({ add }) => firstAddress(add.stdout()));
  if (new Set(addresses).size < addresses.length) throw new Error(`${side.name}: gave an address twice`);
  attachments.forEach(({ container }, index) => requireAttached(side, container, addresses[index]!));
}

/** Each plugin of the chain for all containers at once, then the next: only the plugins' own time counts. */
function measureChain(bench: Bench, runs: number): Record<Side["name"], Samples> {
  const { machine } = bench;
  const contestants = machine.sides.map((side) => {
    const leases = join(machine.scratch, `${side.name}-burst-chain`);
    mkdirSync(leases, { recursive: true });
    const plugins = pluginsOf(leases);
    const containers = Array.from(
      { length: bench.quick ? 3 : AT_ONCE },
      (_, index) => side.makeContainer(`chain-${index}`),
    );
    const results = containers.map((): unknown => undefined);
    const step = (verb: string, plugin: Record<string, unknown>) => {
      const calls = containers.map((container, index) => {
        const mapping = [{ hostPort: 20_000 + index, containerPort: 80, protocol: "tcp" }];
        const prevResult = verb === "ADD" && plugin === plugins[0] ? undefined : results[index];
        const conf = confOf(plugin, mapping, prevResult);
        return prepare(pluginCall(side, String(plugin.type), verb, conf, container), machine.scratch);
      });
      const ms = allAtOnce(calls);
      if (verb === "ADD") calls.forEach((call, index) => results[index] = JSON.parse(call.stdout()));
      return ms;
    };
    const sum = (verb: string, order: Record<string, unknown>[]) =>
      order.reduce((ms, plugin) => ms + step(verb, plugin), 0);
    return {
      side,
      containers,
      add: () => sum("ADD", plugins),
      del: () => sum("DEL", plugins.toReversed()),
      addresses: () => results.map((result) => firstAddress(JSON.stringify(result))),
    };
  });
  const samples = noSamples();
  for (let run = 0; run < runs; run++) {
    for (const { side, containers, add, del, addresses } of shuffled(contestants)) {
      side.onHost(() => {
        machine.settle();
        samples[side.name].add.push(add());
        const given = addresses();
        containers.forEach((container, index) => requireAttached(side, container, given[index]!));
        const rules = command(["iptables-save"]);
        const without = given.filter((address) => !rules.includes(`--to-destination ${address}:80`));
        if (without.length > 0) throw new Error(`${side.name}: no port leads to ${without[0]}`);
        machine.settle();
        samples[side.name].del.push(del());
        for (const container of containers) requireDetached(side, container);
        const left = command(["iptables-save"]);
        if (given.some((address) => left.includes(`${address}/32`))) throw new Error(`${side.name}: rules are left`);
      });
    }
  }
  return samples;
}

/** A burst may be longer than the launchers' patience, so that some calls run alone: not more than a tenth. */
function served<T>(bench: Bench, fullRuns: number, work: (runs: number) => T): T {
  const runs = bench.runs(fullRuns);
  return bench.machine.servedAtLeast(bench.quick ? 0 : 2 * runs * AT_ONCE * 0.9, () => work(runs));
}

export const burst: Benchmark = {
  name: "burst",
  run(bench) {
    return [
      ...cycleRows(
        `${AT_ONCE} at once, bridge,`,
        served(bench, 15, (runs) => measure(bench, runs, { name: "burst" })),
        {
          add: 0.28,
          del: 0.25,
        },
      ),
      ...cycleRows(
        `${AT_ONCE} at once, bridge, ipMasq,`,
        served(bench, 5, (runs) => measure(bench, runs, { name: "masq", ipMasq: true })),
        {
          add: 0.18,
          del: 0.12,
        },
      ),
      ...cycleRows(`${AT_ONCE} at once, chain,`, served(bench, 3, (runs) => measureChain(bench, runs)), {
        add: 0.12,
        del: 0.1,
      }),
    ];
  },
};

export const firstBurst: Benchmark = {
  name: "first-burst",
  run(bench) {
    const samples = measure(bench, bench.runs(10), { name: "first", isFirst: true });
    bench.machine.startAgain();
    return cycleRows(`first ${AT_ONCE} at once, bridge,`, samples, { add: 0.42, del: 0.36 });
  },
};
