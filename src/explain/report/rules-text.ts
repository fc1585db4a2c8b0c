/** The rules of a namespace and its sets, in the words of nft(8), as a file of a report. */
import { NETLINK_NETFILTER, withNetlink } from "../../ffi/netlink/socket.ts";
import { listAllSets, type ListedSet, listSomeElements } from "../../ffi/netlink/nftables/whole-sets.ts";
import { foreignName } from "../../net/netfilter/foreign-name.ts";
import { elementLines } from "../../net/netfilter/set-text.ts";
import { chainText, ruleLine } from "../../net/netfilter/text.ts";
import type { Reading } from "../reading.ts";
import { boundedLines } from "./bounded-lines.ts";
import { redactedText } from "./redaction.ts";

const UNREAD = "the rules could not be read, or never stood still meanwhile\n";

/** A comment may be cut with its line, so what is secret in it goes before. `known`: as for `redactedText`. */
export function rulesText(facts: Reading, known: readonly string[]): string {
  const chains = facts.rules()?.chains.map((chain) => {
    const { hook, priority, policy, type, devices = [] } = chain.base ?? {};
    const at = hook && ` type ${type} hook ${hook} priority ${priority} policy ${policy} ${devices.join(" ")}`;
    const listed = boundedLines(chain.rules, ({ handle, operations, comment }) => {
      const rule = { handle, operations, comment: comment && redactedText(comment, known) };
      return `  ${handle}: ${ruleLine(rule, chain.family, 400)}`;
    });
    return `chain ${chainText(chain)}${at ?? ""}\n${listed}`;
  });
  return (chains?.join("") ?? UNREAD) + setsText(facts, known);
}

const MOST_SETS = 1000, MOST_OF_A_SET = 500, MOST_ELEMENTS = 5000;

function setsText(facts: Reading, known: readonly string[]): string {
  let room = MOST_ELEMENTS;
  const sets = facts.ask(NETLINK_NETFILTER, listAllSets), more = sets.length - MOST_SETS;
  const texts = sets.slice(0, MOST_SETS).map((set) => {
    const { elements, isCut } = elementsOf(facts, set, Math.min(MOST_OF_A_SET, room));
    room -= elements.length;
    const shown = elements.map((element) => {
      const { key, keyEnd, isEnd, isTimed, data, verdict, comment } = element;
      return { key, keyEnd, isEnd, isTimed, data, verdict, comment: comment && redactedText(comment, known) };
    });
    const name = [set.family, set.table, set.name].map(foreignName).join(" ");
    const lines = elementLines(set, shown, isCut).map((line) => `  ${line}\n`).join("");
    return `${set.isMap ? "map" : "set"} ${name}\n${lines}${isCut ? "  (cut: more elements)\n" : ""}`;
  });
  return texts.join("") + (more > 0 ? `(cut: ${more} sets more)\n` : "");
}

/** With a socket of its own, which is closed in the midst of a long answer. */
function elementsOf(facts: Reading, set: ListedSet, most: number) {
  return facts.inside(() => withNetlink(NETLINK_NETFILTER, (socket) => listSomeElements(socket, set, most)));
}
