/**
 * ovsdb-server and ovs-vswitchd are killed, stopped and started again before and during the calls of ovs, and the bridge is
 * deleted. A call fails with the cause and leaves nothing, or it is done; what the database could not be told is in the
 * ledger, and a DEL when the database is back leaves nothing.
 */
import { expect, test } from "bun:test";
import type { OpenVswitch } from "../support/open-vswitch.ts";
import { isExplained, openOvsStage, type OvsAttachment, type OvsStage } from "../support/ovs-stage.ts";
import type { Passing, Treatment } from "../support/ovsdb-proxy.ts";
import type { Answer } from "../support/plugins.ts";
import { randomBelow } from "../support/random.ts";

/** ADD waits for Open vSwitch as long as these say. */
const brief = { link_state_check_retries: 2, link_state_check_interval: 100 };
const long = { link_state_check_retries: 100, link_state_check_interval: 600 };

const VERBS = ["ADD", "CHECK", "DEL", "GC"] as const;
type Verb = (typeof VERBS)[number];

const call = ({ net, container }: OvsAttachment, verb: Verb): Promise<Answer> =>
  verb === "GC"
    ? net.call(verb, undefined, { conf: { "cni.dev/valid-attachments": [] } })
    : net.call(verb, container);

/** One attachment for each verb, as the verb finds it. */
async function forEachVerb(stage: OvsStage, conf = {}): Promise<[Verb, OvsAttachment][]> {
  return await Promise.all(VERBS.map(async (verb): Promise<[Verb, OvsAttachment]> => {
    const one = await stage.attachment({ socket_file: `unix:${stage.ovs.socket}`, ...conf });
    if (verb !== "ADD") await one.net.add(one.container);
    return [verb, one];
  }));
}

const expectExplained = (verb: string, answer: Answer) =>
  expect({ verb, isExplained: isExplained(answer), answer }).toMatchObject({ verb, isExplained: true });

/** ADD asks twice, watches, and makes the port by this transaction. */
const MAKING = 4;
const isMade = ({ from, message }: Passing) => from === "server" && message.id === MAKING;

test.each<[string, NodeJS.Signals]>([
  ["killed", "SIGKILL"],
  ["stopped", "SIGSTOP"],
])("the database %s before each call: an error, and in the end nothing", async (_, signal) => {
  await using stage = await openOvsStage();
  const { ovs } = stage;
  const left = await stage.leftOf(async () => {
    const all = await forEachVerb(stage, brief);
    if (signal === "SIGSTOP") ovs.signal("database", signal);
    else await ovs.stopDatabase(signal);
    const had = new Map(await Promise.all(all.map(async ([verb, one]) => [verb, await one.left()] as const)));
    await Promise.all(all.map(async ([verb, one]) => expectExplained(verb, await call(one, verb))));
    for (const [verb, one] of all) {
      const parts = await one.left();
      if (verb === "ADD") expect(parts).toEqual([]);
      else expect(parts).toContain("ledger");
      if (verb === "CHECK") expect(parts).toEqual(had.get(verb)!);
    }
    // As engines do after an ADD that failed.
    await Promise.all(all.map(async ([verb, one]) => {
      const answer = await call(one, "DEL");
      // Nothing was made, and where nobody listens nothing can be.
      if (verb === "ADD" && signal === "SIGKILL") expect(answer.code).toBe(0);
      else expectExplained("DEL", answer);
    }));
    if (signal === "SIGSTOP") ovs.signal("database", "SIGCONT");
    else await ovs.startDatabase();
    for (const [verb, one] of all) {
      const again = await call(one, verb === "GC" ? "GC" : "DEL");
      expect([verb, again.code, again.stdout, await one.left()]).toEqual([verb, 0, "", []]);
      await one[Symbol.asyncDispose]();
    }
  });
  expect(left).toEqual([]);
});

test.each<[string, NodeJS.Signals]>([
  ["killed", "SIGKILL"],
  ["stopped", "SIGSTOP"],
])("ovs-vswitchd %s before each call: ADD fails and takes the row back, the others are done", async (_, signal) => {
  await using stage = await openOvsStage();
  const { ovs } = stage;
  const left = await stage.leftOf(async () => {
    const all = await forEachVerb(stage, brief);
    if (signal === "SIGSTOP") ovs.signal("switch", signal);
    else await ovs.stopSwitch(signal);
    for (const [verb, one] of all) {
      const answer = await call(one, verb);
      if (verb === "ADD") {
        expect(answer.json).toMatchObject({
          code: 11,
          msg: expect.stringMatching(/^Open vSwitch has not added port veth[0-9a-f]{8} to bridge ovs0 within 1 s$/),
          details: expect.stringContaining("is ovs-vswitchd running?"),
        });
      } else expect([verb, answer.code, answer.stdout]).toEqual([verb, 0, ""]);
      if (verb !== "CHECK") expect([verb, await one.left()]).toEqual([verb, []]);
      await one.net.del(one.container);
      await one[Symbol.asyncDispose]();
    }
    if (signal === "SIGSTOP") ovs.signal("switch", "SIGCONT");
    else await ovs.startSwitch();
  });
  expect(left).toEqual([]);
});

type Change = (ovs: OpenVswitch) => Promise<void> | void;

test.each<[string, before: Change, meanwhile: Change]>([
  ["started again", (ovs) => ovs.stopSwitch("SIGKILL"), (ovs) => ovs.startSwitch()],
  ["stopped, and goes on", (ovs) => ovs.signal("switch", "SIGSTOP"), (ovs) => ovs.signal("switch", "SIGCONT")],
  ["started, killed and started again", (ovs) => ovs.stopSwitch("SIGKILL"), async (ovs) => {
    await ovs.startSwitch();
    await ovs.stopSwitch("SIGKILL");
    await ovs.startSwitch();
  }],
])("ovs-vswitchd is %s while ADD waits: it is done", async (_, before, meanwhile) => {
  await using stage = await openOvsStage();
  await before(stage.ovs);
  const { net, container, proxy, left } = await stage.attachment(long);
  const { promise: goesOn, resolve, reject } = Promise.withResolvers<void>();
  proxy.at = (passing) => {
    if (isMade(passing)) {
      proxy.at = () => "pass";
      // After the answer has passed.
      setTimeout(() => Promise.try(meanwhile, stage.ovs).then(resolve, reject));
    }
    return "pass";
  };
  await net.add(container);
  await goesOn;
  await net.check(container);
  await net.del(container);
  expect(await left()).toEqual([]);
  expect(await stage.ovs.rows()).toEqual(["ovs0", "ovs0"]);
  await proxy[Symbol.asyncDispose]();
});

test("the bridge is deleted while ADD waits: ADD says so, and leaves nothing", async () => {
  await using stage = await openOvsStage();
  const { ovs } = stage;
  ovs.signal("switch", "SIGSTOP");
  await using one = await stage.attachment(long);
  one.proxy.at = async (passing): Promise<Treatment> => {
    if (isMade(passing)) {
      await ovs.vsctl("--no-wait", "del-br", "ovs0");
      ovs.signal("switch", "SIGCONT");
    }
    return "pass";
  };
  const { json } = await call(one, "ADD");
  expect(json).toMatchObject({
    msg: "failed to find bridge ovs0",
    details: expect.stringContaining("make it: ovs-vsctl add-br ovs0;"),
  });
  expect(await one.left()).toEqual([]);
  expect(await ovs.rows()).toEqual([]);
});

test("the bridge is deleted between ADD's question and its transaction: the same", async () => {
  await using stage = await openOvsStage();
  await using one = await stage.attachment();
  one.proxy.at = async ({ from, message }): Promise<Treatment> => {
    if (from === "plugin" && message.id === MAKING) await stage.ovs.vsctl("del-br", "ovs0");
    return "pass";
  };
  expect((await call(one, "ADD")).json).toMatchObject({ msg: "failed to find bridge ovs0" });
  expect(await one.left()).toEqual([]);
});

test("the database is killed between ADD's first question and its transaction: nothing is left to DEL", async () => {
  await using stage = await openOvsStage();
  const { ovs } = stage;
  const left = await stage.leftOf(async () => {
    await using one = await stage.attachment();
    one.proxy.at = async ({ from, message }): Promise<Treatment> => {
      if (from === "server" || message.id !== 2) return "pass";
      await ovs.stopDatabase("SIGKILL");
      return "cut";
    };
    expectExplained("ADD", await call(one, "ADD"));
    expect(await one.left()).toEqual([]);
    await ovs.startDatabase();
  });
  expect(left).toEqual([]);
});

test("the database is killed between ADD's transaction and its answer", async () => {
  await using stage = await openOvsStage();
  const { ovs } = stage;
  const left = await stage.leftOf(async () => {
    await using one = await stage.attachment();
    one.proxy.at = async (passing): Promise<Treatment> => {
      if (!isMade(passing)) return "pass";
      await ovs.stopDatabase("SIGKILL");
      return "cut";
    };
    expectExplained("ADD", await call(one, "ADD"));
    one.proxy.at = () => "pass";
    expect(await one.left()).toEqual(["ledger"]);
    expectExplained("DEL", await call(one, "DEL"));
    expect(await one.left()).toEqual(["ledger"]);
    await ovs.startDatabase();
    expect(await one.left()).toEqual(["row", "ledger"]);
    await one.net.del(one.container);
    expect(await one.left()).toEqual([]);
  });
  expect(left).toEqual([]);
});

test("the database is started again while ADD waits: ADD fails, and takes the row back itself", async () => {
  await using stage = await openOvsStage();
  const { ovs } = stage;
  ovs.signal("switch", "SIGSTOP");
  await using one = await stage.attachment(long);
  let isRestarted = false;
  one.proxy.at = async (passing): Promise<Treatment> => {
    if (!isMade(passing)) return "pass";
    await ovs.stopDatabase("SIGKILL");
    await ovs.startDatabase();
    isRestarted = true;
    return "cut";
  };
  expectExplained("ADD", await call(one, "ADD"));
  expect(isRestarted).toBe(true);
  expect(await one.left()).toEqual([]);
  ovs.signal("switch", "SIGCONT");
});

test("the database is killed between DEL's transaction and its answer: the next DEL is done", async () => {
  await using stage = await openOvsStage();
  const { ovs } = stage;
  const left = await stage.leftOf(async () => {
    await using one = await stage.attachment();
    await one.net.add(one.container);
    one.proxy.at = async ({ from, message }): Promise<Treatment> => {
      if (from === "plugin" || message.id !== 2) return "pass";
      await ovs.stopDatabase("SIGKILL");
      return "cut";
    };
    expectExplained("DEL", await call(one, "DEL"));
    await ovs.startDatabase();
    expect(await one.left()).toEqual(["ledger"]);
    await one.net.del(one.container);
    expect(await one.left()).toEqual([]);
  });
  expect(left).toEqual([]);
});

/** Longer than any of the calls. */
const SPAN_MS = 150, ROUNDS = 4;

test.each(["database", "switch"] as const)("the %s is killed and started again at random moments", async (which) => {
  await using stage = await openOvsStage();
  const { ovs } = stage;
  const [kill, start] = which === "database"
    ? [() => ovs.stopDatabase("SIGKILL"), () => ovs.startDatabase()]
    : [() => ovs.stopSwitch("SIGKILL"), () => ovs.startSwitch()];
  const left = await stage.leftOf(async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const all = await forEachVerb(stage, { ...brief, link_state_check_interval: 1000 });
      const killed = Bun.sleep(randomBelow(SPAN_MS)).then(kill);
      const calls = all.map(async ([verb, one]) => [verb, await call(one, verb)] as const);
      await killed;
      const answers = await Promise.all(calls);
      await start();
      await ovs.untilConfigured();
      for (const [verb, answer] of answers) if (answer.code !== 0) expectExplained(verb, answer);
      for (const [verb, one] of all) {
        await call(one, verb === "GC" ? "GC" : "DEL").then(({ code, stdout }) =>
          expect([code, stdout]).toEqual([0, ""])
        );
        expect(await one.left()).toEqual([]);
        await one[Symbol.asyncDispose]();
      }
    }
  });
  expect(left).toEqual([]);
});
