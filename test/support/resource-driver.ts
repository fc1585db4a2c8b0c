/**
 * The program behind resources.ts, run inside a machine: calls the verbs of resources as the engine does.
 */
import { openHost } from "../../src/engine/open-host.ts";
import { openSession } from "../../src/engine/run.ts";
import { idleBecauseOfRivals } from "../../src/resources/host-ports/rivals.ts";
import { loadKind } from "../../src/resources/table.ts";
import type { Step } from "./resources.ts";

const steps: Step[] = await Bun.stdin.json();
const opened = openHost(process.env.CNI_NETNS ?? "");
const invocation = { command: "ADD", containerId: "", netnsPath: "", ifName: "", cniArgs: "", path: "", stdin: "{}" };
const host = openSession().hostOf(opened, { ...invocation, command: "ADD" });
const made = new Map<string, unknown>();
const outcomes = steps.map(({ verb, kind, spec, isRestated, network, valid }): unknown => {
  if (verb === "sh") {
    const { exitCode, stdout, stderr } = Bun.spawnSync(["sh", "-ec", kind]);
    if (exitCode !== 0) throw new Error(`${kind}: ${stderr}`);
    return stdout.toString();
  }
  const each = loadKind(kind)!;
  try {
    switch (verb) {
      case "judge":
        each.judge?.(spec, host);
        return "judged";
      case "apply":
        made.set(JSON.stringify(spec), each.apply(spec, host));
        return made.get(JSON.stringify(spec)) ?? "applied";
      case "undo":
        each.undo!(spec, made.get(JSON.stringify(spec)), host);
        return "undone";
      case "verify":
        return each.verify(spec, host, isRestated);
      case "repair":
        each.repair!(spec, host);
        return "repaired";
      case "remove":
        each.remove(spec, host, isRestated);
        return "removed";
      case "rivals":
        return idleBecauseOfRivals(each.claimedPorts!(spec), host);
      case "sweep":
        each.sweep!(network!, ({ containerId }) => valid!.includes(containerId), host);
        return "swept";
    }
  } catch (error) {
    return (error as Error).message;
  }
});
opened.close();
console.log(JSON.stringify(outcomes));
