/**
 * Plugins that are shell scripts: each records its call, its stdin and its environment, and prints the answer that the
 * test prepared.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import type { Runtime } from "../../src/runtime/plugin-call.ts";
import { type Network, parseNetwork } from "../../src/runtime/conf/network.ts";

const script = `#!/bin/sh
name=\${0##*/}; state=\${0%/*}/../state
echo "$CNI_COMMAND $name" >> $state/log
cat > $state/$name.$CNI_COMMAND.stdin
env > $state/$name.$CNI_COMMAND.env
for answer in $state/$name.$CNI_COMMAND $state/$name; do
  [ -f $answer.stderr ] && cat $answer.stderr >&2
  [ -f $answer.stdout ] && cat $answer.stdout
  [ -f $answer.exit ] && exit $(cat $answer.exit)
done
exit 0
`;

interface Answer {
  stdout?: unknown;
  stderr?: string;
  exit?: number;
}

export interface ScriptPlugins extends Disposable {
  readonly directory: string;
  readonly runtime: Runtime;
  /** A plugin of that type; `answers` by command, or `any` for every command. */
  plugin(type: string, answers?: Record<string, Answer>): void;
  /** What was called so far, in order: `ADD bridge`. */
  calls(): string[];
  /** The configuration of the last such call. */
  stdin(call: string): Record<string, unknown>;
  environment(call: string): string[];
  network(plugins: (string | Record<string, unknown>)[], changes?: Record<string, unknown>): Network;
}

export function scriptPlugins(): ScriptPlugins {
  const directory = mkdtempSync(`${tmpdir()}/plugins-`);
  const bin = `${directory}/bin`, state = `${directory}/state`;
  mkdirSync(bin);
  mkdirSync(state);
  // GC and DEL look for ledgers, and the machine may have some.
  process.env.PATCHBAY_STATE_DIR = `${directory}/ledgers`;
  const file = (call: string, ending: string) => {
    const [command, type] = call.split(" ");
    return readFileSync(`${state}/${type}.${command}.${ending}`, "utf8");
  };
  return {
    directory,
    runtime: { configDirectory: `${directory}/configs`, pluginPath: bin, cacheDirectory: `${directory}/cache` },
    plugin(type, answers = {}) {
      writeFileSync(`${bin}/${type}`, script);
      chmodSync(`${bin}/${type}`, 0o755);
      for (const [command, { stdout, stderr, exit }] of Object.entries(answers)) {
        const answer = command === "any" ? `${state}/${type}` : `${state}/${type}.${command}`;
        if (stdout !== undefined) {
          writeFileSync(`${answer}.stdout`, typeof stdout === "string" ? stdout : JSON.stringify(stdout));
        }
        if (stderr !== undefined) writeFileSync(`${answer}.stderr`, stderr);
        if (exit !== undefined) writeFileSync(`${answer}.exit`, String(exit));
        else rmSync(`${answer}.exit`, { force: true });
      }
    },
    calls: () => existsSync(`${state}/log`) ? readFileSync(`${state}/log`, "utf8").trimEnd().split("\n") : [],
    stdin: (call) => JSON.parse(file(call, "stdin")),
    environment: (call) => file(call, "env").trimEnd().split("\n"),
    network: (plugins, changes) =>
      parseNetwork(
        JSON.stringify({
          cniVersion: "1.1.0",
          name: "net",
          plugins: plugins.map((plugin) => (typeof plugin === "string" ? { type: plugin } : plugin)),
          ...changes,
        }),
      ),
    [Symbol.dispose]() {
      delete process.env.PATCHBAY_STATE_DIR;
      rmSync(directory, { recursive: true });
    },
  };
}
