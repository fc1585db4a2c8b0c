/**
 * Run in a network namespace of its own: transactions that work, that the kernel refuses, that are too late and too
 * large, and prints what came of them as one JSON document.
 */
import { NETLINK_NETFILTER, NetlinkError, openNetlink } from "../../../../src/ffi/netlink/socket.ts";
import { commit, commitUnchanged, rehearse } from "../../../../src/ffi/netlink/nftables/batch.ts";
import {
  addBaseChain,
  addTable,
  chainUse,
  counterUse,
  createChain,
  createCounter,
  delChain,
  delCounter,
  delTable,
  tableUse,
} from "../../../../src/ffi/netlink/nftables/table.ts";
import { accept, counter, jump } from "../../../../src/ffi/netlink/nftables/action.ts";
import type { Expression } from "../../../../src/ffi/netlink/nftables/expression.ts";
import {
  addRule,
  delRule,
  flushChain,
  getRule,
  insertRule,
  listRules,
} from "../../../../src/ffi/netlink/nftables/rule.ts";
import {
  createCounterMap,
  createElement,
  delElement,
  delSet,
  getElement,
  ipv4Key,
  listElements,
  listSets,
} from "../../../../src/ffi/netlink/nftables/set.ts";

const socket = openNetlink(NETLINK_NETFILTER);
const report: Record<string, unknown> = {};
const told = (work: () => void) => {
  try {
    work();
    return "no error";
  } catch (error) {
    return error instanceof NetlinkError ? `${error.message} [${error.errno}]` : String(error);
  }
};

if (process.argv[2] === "unprivileged") {
  // The kernel answers for the whole batch, and nothing else.
  report.commit = told(() =>
    commit(socket, [addTable({ family: 1, name: "t" }), addTable({ family: 1, name: "u" })])
  );
  console.log(JSON.stringify(report));
  process.exit(0);
}

const table = { family: 2, name: "t" }, chain = { table, name: "c" }, other = { table, name: "d" };
const map = { table, name: "m" };
const key = (last: number) => new Uint8Array([10, 0, last >> 8, last & 0xff]);
const element = (last: number) => ({ key: key(last), comment: `owner ${last}`, counter: "k" });

report.absent = [
  tableUse(socket, table) ?? null,
  chainUse(socket, chain) ?? null,
  counterUse(socket, table, "k") ?? null,
  getElement(socket, map, key(1)) ?? null,
  getRule(socket, chain, 1n) ?? null,
  listRules(socket, chain),
  listElements(socket, map),
  listSets(socket, table),
];

commit(socket, [
  addTable(table, "a comment"),
  addBaseChain(chain, { type: "nat", hook: 4, priority: 100 }),
  createChain(other),
  addRule(other, [counter, accept]),
  addRule(chain, [counter, jump("d")]),
  insertRule(chain, [counter]),
  createCounter(table, "k"),
  createCounterMap(map, ipv4Key),
  createElement(map, element(1)),
  createElement(map, element(2)),
]);
const names = (rules: ReturnType<typeof listRules>) =>
  rules.map(({ expressions }) => expressions.map((e) => e.name).join());
const [first, second] = listRules(socket, chain);
report.present = {
  table: tableUse(socket, table),
  chains: [chainUse(socket, chain), chainUse(socket, other)],
  counter: counterUse(socket, table, "k"),
  element: getElement(socket, map, key(2))?.comment,
  elements: listElements(socket, map).map(({ comment, counter }) => `${comment}: ${counter}`).sort(),
  sets: listSets(socket, table),
  rules: names([first!, second!]),
  wholeTable: listRules(socket, { table, name: "" }).length,
  consecutive: second!.handle - listRules(socket, other)[0]!.handle === 1n,
  byHandle: names([getRule(socket, chain, second!.handle)!]),
};

report.refused = [
  told(() => commit(socket, [createElement(map, element(3)), createElement(map, element(2)), addTable(table)])),
  told(() => commit(socket, [delChain(other)])),
  told(() => commit(socket, [delElement(map, key(9)), delRule(chain, 999n)])),
  told(() => commit(socket, [createChain({ table, name: "x".repeat(300) })])),
];
report.nothingOfIt = getElement(socket, map, key(3)) ?? null;

// Somebody else changes the rule set between our look and our change: twice, then no more.
let looks = 0;
const rival = openNetlink(NETLINK_NETFILTER);
commitUnchanged(socket, () => {
  looks++;
  if (looks < 3) commit(rival, [createChain({ table, name: `rival${looks}` })]);
  return [createElement(map, element(4))];
});
report.looks = looks;
report.tooLate = told(() => commit(socket, [createElement(map, element(5))], 1));
report.notMade = getElement(socket, map, key(5)) ?? null;

const stage = { table: { family: 1, name: "stage" }, name: "c" };
const play = (last: Expression) => [
  addTable(stage.table),
  addBaseChain(stage, { type: "nat", hook: 4, priority: 100 }),
  addRule(stage, [counter, counter, last]),
];
report.rehearsed = [
  told(() => rehearse(socket, play(accept))),
  told(() => rehearse(socket, play({ ...accept, name: "nonesuch" }))),
  told(() => rehearse(socket, [addTable(table)])),
];
report.notPlayed = tableUse(socket, stage.table) ?? null;

// More than a socket takes by default (208 KiB), and more refusals than it keeps.
const many = Array.from({ length: 6000 }, (_, index) => createElement(map, element(100 + index)));
commit(socket, many);
report.many = counterUse(socket, table, "k");
report.manyRefused = told(() => commit(socket, many));
report.after = counterUse(socket, table, "k");
report.listed = listElements(socket, map).length;

commit(socket, [delRule(chain, second!.handle), flushChain(other), delChain(other)]);
commit(socket, [
  ...listElements(socket, map).map(({ key }) => delElement(map, key)),
  delSet(map),
  delCounter(table, "k"),
]);
report.left = tableUse(socket, table);
commit(socket, [delTable(table)]);
report.closesSlowly = [rival.closesSlowly, socket.closesSlowly];
const { fd } = socket;
socket.close();
report.closed = told(() => void (require("node:fs") as typeof import("node:fs")).fstatSync(fd)).includes("EBADF");

console.log(JSON.stringify(report));
