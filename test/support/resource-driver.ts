/**
 * The program behind resources.ts, run inside a machine: calls the verbs of resources as the engine does.
 */
import { openHost } from "../../src/engine/open-host.ts";
import { openSession } from "../../src/engine/run.ts";
import { loadKind } from "../../src/resources/table.ts";
import type { Step } from "./resources.ts";

const steps: Step[] = await Bun.stdin.json();
const opened = openHost("");
const invocation = { command: "ADD", containerId: "", netnsPath: "", ifName: "", cniArgs: "", path: "", stdin: "{}" };
const host = openSession().hostOf(opened, { ...invocation, command: "ADD" });
const outcomes = steps.map(({ verb, kind, spec, isRestated, network, valid }): unknown => {
  if (verb === "sh") return Bun.spawnSync(["sh", "-ec", kind]).stdout.toString();
  const each = loadKind(kind)!;
  try {
    switch (verb) {
      case "apply":
        return each.apply(spec, host) ?? "applied";
      case "verify":
        return each.verify(spec, host, isRestated);
      case "repair":
        each.repair!(spec, host);
        return "repaired";
      case "remove":
        each.remove(spec, host, isRestated);
        return "removed";
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
