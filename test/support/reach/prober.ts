/**
 * One program in many network namespaces (town.ts). `serve PORT NAMESPACES` answers in each of them, and prints the place
 * and the text of every datagram that arrives there. `ask`, with an Errand on stdin, sends what each place says, and prints
 * the answers, with null for what has none after a while.
 */
import { inNetns, openNetns, openOwnNetns } from "../../../src/ffi/netns.ts";
import { sendFrames } from "../packet-socket.ts";
import { patienceMs } from "../patience.ts";
import { ask, loadSctp, serveSctp, serveTcp, serveUdp } from "../three-protocols.ts";
import type { Question } from "../traffic.ts";

/** Paths of namespaces by the names of places. */
export type Namespaces = Record<string, string>;

export interface Errand {
  namespaces: Namespaces;
  questions: ({ from: string } & Question)[];
  /** In hex, by the index of a link of the place. */
  frames: { from: string; linkIndex: number; frames: string[] }[];
}

if (import.meta.main) await main();

async function main() {
  const [mode, port, namespaces] = process.argv.slice(2) as [string, string, string];
  await loadSctp();
  if (mode === "serve") await serve(Number(port), JSON.parse(namespaces) as Namespaces);
  else send(await Bun.stdin.json() as Errand);
}

function enterer(namespaces: Namespaces) {
  const home = openOwnNetns();
  const open = new Map(Object.entries(namespaces).map(([place, path]) => [place, openNetns(path)]));
  return <T>(place: string, work: () => T) => inNetns(open.get(place)!, home, work);
}

async function serve(port: number, namespaces: Namespaces) {
  const at = enterer(namespaces);
  await Promise.all(
    Object.keys(namespaces).map((place) =>
      at(place, () => {
        serveTcp(port);
        serveSctp(port);
        return serveUdp(port, (message) => process.stdout.write(`${place} ${message}\n`));
      })
    ),
  );
  process.stdout.write("ready\n");
  for await (const _ of Bun.stdin.stream()) { /* until it ends */ }
  process.exit(0);
}

function send({ namespaces, questions, frames }: Errand) {
  const at = enterer(namespaces), answers: (string | null)[] = questions.map(() => null);
  for (const { from, linkIndex, frames: own } of frames) at(from, () => sendFrames(linkIndex, own));
  questions.forEach(({ from, ...question }, index) =>
    at(from, () => ask(question, (answer) => void (answers[index] = answer ?? null)))
  );
  // To the end, whatever is answered: frames may take longer.
  setTimeout(() => {
    process.stdout.write(JSON.stringify(answers));
    process.exit(0);
  }, patienceMs());
}
