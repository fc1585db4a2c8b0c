/**
 * Each message between ovs and Open vSwitch's database is where the connection ends, or nothing comes any more, or the server
 * says something else: once, and for good. Then the call fails with the cause and the next step, or it is done. What an ADD
 * made is gone, or DEL removes it when the database is back. A call that fails keeps the ledger for the next one.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { isExplained, openOvsStage, type OvsStage, STAYS } from "../support/ovs-stage.ts";
import type { OvsdbProxy, Passing, Treatment } from "../support/ovsdb-proxy.ts";
import type { Answer } from "../support/plugins.ts";
import { ownShare } from "../support/share.ts";

let stage: OvsStage;
beforeAll(async () => void (stage = await openOvsStage()));
afterAll(async () => await stage[Symbol.asyncDispose]());

type Fault = "cut" | "stall" | "garbage";
const FAULTS: Fault[] = ["cut", "stall", "garbage"];

/** In turn: no JSON, rows that are none, a transaction without its answers, and an error that is too deep to be shown. */
function garbageFor(number: number, { message: { id } }: Passing): string {
  const answer = (rest: object) => JSON.stringify({ id, error: null, result: null, ...rest });
  const rows = Array.from({ length: 10 }, () => ({ rows: [null] }));
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  const all = ["HTTP/1.1 400 Bad Request\r\n", answer({ result: rows }), answer({ result: [] })];
  return [...all, `{"id":${id},"error":${deep},"result":null}`][number % 4]!;
}

interface Trouble {
  number: number;
  fault: Fault;
  lasts: boolean;
}

const told = ({ number, fault, lasts }: Trouble) => `message ${number}: ${fault}${lasts ? " for good" : ""}`;

/** From now on. Returns a function that tells whether it has happened. */
function makeTrouble(proxy: OvsdbProxy, { number, fault, lasts }: Trouble): () => boolean {
  const first = proxy.heard.length + number;
  let hasHappened = false;
  proxy.at = (passing): Treatment => {
    if (passing.number < first || (passing.number > first && !lasts)) return "pass";
    hasHappened = true;
    return fault === "garbage" ? { says: garbageFor(number, passing) } : fault;
  };
  return () => hasHappened;
}

const heal = (proxy: OvsdbProxy) => void (proxy.at = () => "pass");

/** Everything at every message, and one message more: the number of updates differs. */
function troubles(messages: number, lastings: readonly boolean[]): Trouble[] {
  const numbers = Array.from({ length: messages + 1 }, (_, index) => index + 1);
  return ownShare(
    numbers.flatMap((number) => FAULTS.flatMap((fault) => lastings.map((lasts) => ({ number, fault, lasts })))),
  );
}

/** Most of the time they wait for what has stalled. */
const AT_ONCE = 24;

/** Returns what was wrong. */
async function inTurns(all: readonly Trouble[], one: (trouble: Trouble) => Promise<string[]>): Promise<string[]> {
  // What stalls takes longest.
  const queue = all.toSorted((a, b) => Number(b.fault === "stall") - Number(a.fault === "stall")),
    wrong: string[] = [];
  const lane = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const trouble = next;
      wrong.push(...(await one(trouble)).map((line) => `${told(trouble)}: ${line}`));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return wrong;
}

const wrongWith = (answer: Answer) => isExplained(answer) ? [] : [`${answer.code}: ${answer.stdout}`];

async function messagesOf(proxy: OvsdbProxy, work: () => Promise<unknown>): Promise<number> {
  const before = proxy.heard.length;
  await work();
  return proxy.heard.length - before;
}

/** How many messages each verb has. */
async function messages(): Promise<Record<"ADD" | "CHECK" | "DEL" | "GC", number>> {
  await using one = await stage.attachment();
  const { net, proxy, container } = one;
  const counts = {
    ADD: await messagesOf(proxy, () => net.add(container)),
    CHECK: await messagesOf(proxy, () => net.check(container)),
    DEL: await messagesOf(proxy, () => net.del(container)),
    GC: 0,
  };
  await net.add(container);
  counts.GC = await messagesOf(proxy, () => net.gc([]));
  expect(await one.left()).toEqual([]);
  return counts;
}

/** The question for updates, whose answer is not looked at; the next one makes the port. */
const TRANSACTION = 5;

test("every message of ADD", async () => {
  const counts = await messages(), moment = await quietMoment(stage.machine);
  const wrong = await inTurns(troubles(counts.ADD, [false, true]), async (trouble) => {
    // Ten seconds, since some of them wait for a port in vain.
    await using one = await stage.attachment({ link_state_check_interval: 100 });
    const { net, proxy, container, left } = one, hasHappened = makeTrouble(proxy, trouble);
    const found: string[] = [],
      look = async (when: string, allowed?: RegExp) => {
        for (const line of await left()) if (!allowed?.test(line)) found.push(`${when}: ${line}`);
      };
    const added = await net.call("ADD", container);
    if (added.code !== 0) {
      found.push(...wrongWith(added));
      if (!hasHappened()) found.push("failed without a cause");
      await look("after ADD", trouble.lasts && trouble.number >= TRANSACTION ? /^(ledger|row)/ : undefined);
      if (trouble.lasts) {
        const had = await left();
        found.push(...wrongWith(await net.call("DEL", container)));
        if (String(await left()) !== String(had)) found.push(`DEL left ${await left()} of ${had}`);
      }
    } else {
      heal(proxy);
      await net.check(container);
    }
    heal(proxy);
    await net.del(container);
    await look("after DEL");
    return found;
  });
  expect(wrong).toEqual([]);
  expect(await leftSince(moment, stage.machine, STAYS)).toEqual([]);
});

test.each(["CHECK", "DEL", "GC"] as const)("every message of %s", async (verb) => {
  const counts = await messages(), moment = await quietMoment(stage.machine);
  const wrong = await inTurns(troubles(counts[verb], [false]), async (trouble) => {
    await using one = await stage.attachment();
    const { net, proxy, container, left } = one, found: string[] = [];
    await net.add(container);
    const before = await left(), hasHappened = makeTrouble(proxy, trouble);
    const conf = verb === "GC" ? { "cni.dev/valid-attachments": [] } : {};
    const answer = await net.call(verb, verb === "GC" ? undefined : container, { conf });
    if (hasHappened()) found.push(...wrongWith(answer));
    else if (answer.code !== 0) found.push(`failed without a cause: ${answer.stdout}`);
    heal(proxy);
    if (verb === "CHECK") {
      if (String(await left()) !== String(before)) found.push(`CHECK changed ${before} to ${await left()}`);
      await net.check(container);
    } else {
      // GC asks for ports twice: of the attachment, and of the network.
      if (verb === "DEL" && answer.code !== 0 && !(await left()).includes("ledger")) found.push("the ledger is gone");
      if (answer.code === 0) found.push(...(await left()).map((line) => `after ${verb}: ${line}`));
    }
    if (verb === "GC") await net.gc([]);
    else await net.del(container);
    return [...found, ...(await left()).map((line) => `in the end: ${line}`)];
  });
  expect(wrong).toEqual([]);
  expect(await leftSince(moment, stage.machine, STAYS)).toEqual([]);
});
