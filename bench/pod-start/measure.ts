/** Containers with every kind of network in random order, one after another, each looked at from inside and outside. */
import { PATH } from "../call.ts";
import { command } from "../machine.ts";
import { shuffled } from "../statistics.ts";
import type { Engine, Ready, Theirs } from "./engines.ts";
import { type Kind, KINDS, type Place } from "./place.ts";
import { type EngineRows, rowsOf, type Samples } from "./report.ts";

/** Says its address, and that it runs; then lives until its stdin ends. */
const PROGRAM = ["/bin/busybox", "sh", "-c", "/bin/busybox ip -o -4 addr; echo runs; read x; exit 0"];
const RUNS = "runs\n";

export async function measureEngine(
  place: Place,
  engine: Engine,
  theirs: Theirs | undefined,
  count: number,
): Promise<EngineRows> {
  const ready = await engine.open(place, theirs), kinds = theirs === undefined ? KINDS.slice(0, 2) : KINDS;
  const samples = Object.fromEntries(kinds.map((kind): [Kind, Samples] => [kind, { start: [], end: [], left: 0 }]));
  const before = place.served?.() ?? 0;
  // The first of each kind makes the bridge and the base chains, and does not count.
  for (let run = 0; run <= count; run++) {
    for (const kind of shuffled(kinds)) {
      const { start, end, left } = await once(place, ready, kind, `box-${kind}-${run}`);
      if (run === 0) continue;
      samples[kind]!.start.push(start);
      samples[kind]!.end.push(end);
      if (left) samples[kind]!.left++;
    }
  }
  const byResident = place.served !== undefined;
  if (byResident && place.served!() - before < 2 * count) throw new Error("the resident did not serve the calls");
  return { engine: engine.name, version: ready.version, byResident, theirs: theirs?.path, rows: rowsOf(samples) };
}

interface Lived {
  start: number;
  end: number;
  /** Whether links or rules of it stayed. */
  left: boolean;
}

async function once(place: Place, ready: Ready, kind: Kind, name: string): Promise<Lived> {
  const { words, env } = ready.call(kind, name, PROGRAM);
  const began = Bun.nanoseconds();
  const child = Bun.spawn([...place.on(kind), ...words], {
    env: { PATH, HOME: "/root", ...env },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  const said = await untilItRuns(child.stdout), running = Bun.nanoseconds();
  child.stdin.write("\n");
  await child.stdin.end();
  const code = await child.exited, ended = Bun.nanoseconds();
  if (!said.endsWith(RUNS) || code !== 0) {
    throw new Error(`exit ${code} with the network ${kind}: ${said}${await child.stderr.text()}\n${words.join(" ")}`);
  }
  const address = /eth0\s+inet ([\d.]+)\//.exec(said)?.[1];
  if ((address === undefined) !== (kind === "none")) throw new Error(`the network ${kind} gave ${address}:\n${said}`);
  const left = address === undefined ? [] : await leftOf(place, kind, address);
  // What theirs leaves is theirs, and is counted.
  if (kind === "ours" && left.length > 0) throw new Error(`a container that ended left ${left.join("; ")}`);
  return { start: (running - began) / 1e6, end: (ended - running) / 1e6, left: left.length > 0 };
}

async function untilItRuns(stdout: ReadableStream<Uint8Array>): Promise<string> {
  let said = "";
  for await (const piece of stdout) {
    said += new TextDecoder().decode(piece);
    if (said.endsWith(RUNS)) break;
  }
  return said;
}

/** How long the rest of a removal is waited for, which a process of podman's may do when podman has ended. */
const PATIENCE_MS = { none: 0, ours: 10_000, theirs: 1_000 };

/** Links and rules of a container that has ended. */
async function leftOf(place: Place, kind: Kind, address: string): Promise<string[]> {
  const word = new RegExp(`\\b${address.replaceAll(".", "\\.")}(?![\\d.])`);
  const lines = (words: string[]) => command([...place.on(kind), ...words]).split("\n").map((line) => line.trim());
  for (const deadline = Date.now() + PATIENCE_MS[kind];; await Bun.sleep(5)) {
    const left = [
      ...lines(["ip", "-o", "link"]).filter((line) => line.includes("@")),
      ...lines(["nft", "list", "ruleset"]).filter((line) => word.test(line)),
    ];
    if (left.length === 0 || Date.now() > deadline) return left;
  }
}
