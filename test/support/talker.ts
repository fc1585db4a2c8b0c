/**
 * The program behind traffic.ts, run inside a namespace. `serve PROTOCOLS PORT` prints its port, for 0 the kernel's choice
 * (which SCTP alone does not have), and serves until its stdin ends. `ask QUESTIONS` asks all at once, and prints the
 * answers, with null for what has none after a while; both are JSON.
 */
import { patienceMs } from "./patience.ts";
import { ask, loadSctp, serveAll } from "./three-protocols.ts";
import type { Protocol, Question } from "./traffic.ts";

const [mode, what, wantedPort] = process.argv.slice(2) as [string, string, string];
if (what.includes("sctp")) await loadSctp();

if (mode === "serve") {
  console.log(await serveAll(what.split(",") as Protocol[], Number(wantedPort)));
  for await (const _ of Bun.stdin.stream()) { /* until it ends */ }
  process.exit(0);
} else {
  const questions = JSON.parse(what) as Question[];
  const answers: (string | null)[] = questions.map(() => null);
  const open = new Set(questions.keys());
  const finish = () => {
    process.stdout.write(JSON.stringify(answers));
    process.exit(0);
  };
  setTimeout(finish, patienceMs());
  questions.forEach((question, index) =>
    ask(question, (answer) => {
      if (!open.delete(index)) return;
      answers[index] = answer ?? null;
      if (open.size === 0) finish();
    })
  );
}
