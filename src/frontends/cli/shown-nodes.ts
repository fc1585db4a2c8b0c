/** Nodes of a cluster, as `patchbay node list` and `node check` print them. */
import { short } from "../../cluster/host-findings.ts";
import { counted } from "../../contract/counted.ts";
import type { NodeCheck } from "../../services/node/operator/check.ts";
import type { NodeList, NodeSummary } from "../../services/node/operator/nodes.ts";
import { areWrong, asCell, asLine, findingsText, ownBlocksText } from "./shown-pools.ts";
import { textTable } from "./text-table.ts";

export function nodesText({ store, isWritable, alarm, nodes, problems }: NodeList): string {
  const below = problems.map((problem) => asLine(`${problem}; nothing of it counts`)).join("");
  const above = alarm === undefined ? "" : alarmText(alarm);
  const step = isWritable ? "'patchbay node' makes a host one" : "write nodes.d/NODE.json, the same on every host";
  if (nodes.length === 0) return above + asLine(`no node in ${store}; ${step}`) + below;
  const rows = nodes.map((node) => [
    asCell(node.node),
    node.state ?? "no record",
    String(node.generation ?? "-"),
    node.machine ? short(node.machine) : "-",
    node.boot ? short(node.boot) : "-",
    Object.entries(node.blocks).map(([pool, count]) => `${pool} ${count}`).join(", ") || "-",
    remarksOn(node).join("; "),
  ]);
  return above + textTable([["node", "state", "generation", "machine", "boot", "blocks", ""], ...rows]) + below;
}

function alarmText({ by, saw, openBecause }: NonNullable<NodeList["alarm"]>): string {
  const step = openBecause.length === 0
    ? "'patchbay node check --over' takes the alarm away: everybody has looked, and nobody disagrees"
    : "nobody claims or ripens a block before it is over; 'patchbay node check' says what is open";
  return asLine(`ALARM: ${by} has seen: ${saw}`) + asLine(`  ${step}`);
}

function remarksOn(node: NodeSummary): string[] {
  return [
    ...node.isThisHost ? ["this host"] : [],
    ...node.state === "draining" && Object.keys(node.blocks).length === 0 ? ["it has given all back"] : [],
    ...node.isContested ? [`contested: 'patchbay node check ${node.node}'`] : [],
    ...node.conflicts.length === 0 ? [] : [`${counted(node.conflicts.length, "block")} in conflict`],
    ...node.hasLooked === undefined
      ? []
      : [node.hasLooked ? "has looked since the alarm" : "has not looked since the alarm"],
    ...node.dead === 0 ? [] : [`${counted(node.dead, "dead block")}: 'patchbay ipam check'`],
    ...node.sameMachine.length === 0 ? [] : [`the same machine as ${node.sameMachine.slice(0, 4).join(", ")}`],
  ];
}

export function nodeCheckText({ store, node, alarm, record, host, findings }: NodeCheck): string {
  const lines = [`node ${node}, ${store}`];
  if (alarm !== undefined) {
    lines.push(`ALARM: ${alarm.by} has seen: ${alarm.saw}`);
    lines.push(`  have looked since: ${alarm.looked.join(", ") || "nobody"}`);
    lines.push(
      `  the store knows: ${alarm.known.join(", ") || "nobody"}; start the agent of a node that is missing here`,
    );
    lines.push(...alarm.openBecause.map((why) => `  open: ${why}`));
  }
  if (record !== undefined) {
    const { state, generation, machine, boot } = record;
    const ids = machine ? `, machine ${short(machine)}, boot ${short(boot ?? "")}` : "";
    lines.push(`in the store: ${state}, generation ${generation}${ids}`);
    const blocks = Object.entries(record.blocks).map(([pool, count]) => `${count} of pool ${pool}`);
    lines.push(`blocks: ${blocks.join(", ") || "none"}`);
  }
  if (host !== undefined) lines.push(host.isAgentRunning ? "its agent runs" : "its agent does not run");
  const own = host === undefined ? "" : ownBlocksText(host.pools);
  const end = areWrong(findings) ? "" : "nothing is wrong\n";
  return lines.map(asLine).join("") + own + findingsText(findings) + end;
}
