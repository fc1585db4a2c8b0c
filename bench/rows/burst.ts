/** A hundred containers at once: the time until the last one is attached, and until the last one is detached. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Bench, Benchmark } from "../bench.ts";
import { passResult, pluginCall } from "../call.ts";
import type { Container, Side } from "../machine.ts";
import { cycleRows, type Samples } from "../pairs.ts";
import { prepare, type Prepared } from "../process.ts";
import { shuffled } from "../statistics.ts";
import { bridgeConf, firstAddress, requireAttached, requireDetached } from "./attach.ts";

const AT_ONCE = 100;

function measure(bench: Bench, runs: number, ipMasq: boolean): Record<Side["name"], Samples> {
  const { machine } = bench;
  const contestants = [machine.ours, machine.go].map((side) => {
    const leases = join(machine.scratch, `${side.name}-burst`);
    mkdirSync(leases, { recursive: true });
    const conf = bridgeConf(leases, ipMasq);
    const attachments = Array.from({ length: bench.quick ? 5 : AT_ONCE }, (_, index) => {
      const container = side.makeContainer(`${ipMasq ? "masq" : "burst"}-${index}`);
      const call = (verb: string) => prepare(pluginCall(side, "bridge", verb, conf, container), machine.scratch);
      return { container, conf, add: call("ADD"), del: call("DEL") };
    });
    return { side, attachments };
  });
  const samples: Record<Side["name"], Samples> = { ours: { add: [], del: [] }, go: { add: [], del: [] } };
  for (let run = 0; run < runs; run++) {
    for (const { side, attachments } of shuffled(contestants)) {
      side.onHost(() => {
        machine.settle();
        samples[side.name].add.push(allAtOnce(attachments.map(({ add }) => add)));
        requireAllAttached(side, attachments);
        for (const { conf, add, del } of attachments) passResult(add.stdout(), conf, del);
        machine.settle();
        samples[side.name].del.push(allAtOnce(attachments.map(({ del }) => del)));
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

export const burst: Benchmark = {
  name: "burst",
  run(bench) {
    return [
      ...cycleRows(`${AT_ONCE} at once, bridge,`, measure(bench, bench.runs(15), false), { add: 0.75 }),
      ...cycleRows(`${AT_ONCE} at once, bridge, ipMasq,`, measure(bench, bench.runs(5), true), { add: 0.3 }),
    ];
  },
};
