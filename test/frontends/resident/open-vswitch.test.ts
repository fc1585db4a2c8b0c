/**
 * A worker waits for Open vSwitch for half a second, and leaves the call to its caller then, which takes back what the worker
 * has made, and ends as a call without a resident.
 */
import { expect, test } from "bun:test";
import { isExplained, openOvsStage, type OvsAttachment } from "../../support/ovs-stage.ts";
import type { Answer } from "../../support/plugins.ts";
import { statusOf } from "../../support/resident-status.ts";
import { openResident, untilServed } from "../../support/served.ts";
import { untilTrue } from "../../support/until-true.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

/** Four times as long as the worker waits. */
const conf = { link_state_check_retries: 2, link_state_check_interval: 1000 };

async function openServedStage() {
  const stage = await openOvsStage();
  const resident = await openResident(stage.machine, 1);
  await untilServed(stage.machine);
  return {
    ...stage,
    /** How many calls the worker has left because of Open vSwitch while this was done. */
    async leftDuring(work: () => Promise<void>): Promise<number> {
      const count = async () => (await statusOf(stage.machine)).declined["Open vSwitch"] ?? 0;
      const before = await count();
      await work();
      return await count() - before;
    },
    /** Makes the call until a worker has begun it and left it: on a busy machine none may begin it in time. */
    async untilLeft(attempt: (one: OvsAttachment) => Promise<Answer>): Promise<[OvsAttachment, Answer]> {
      return await untilTrue(async () => {
        const one = await stage.attachment(conf);
        let answer: Answer | undefined;
        const isLeft = await this.leftDuring(async () => void (answer = await attempt(one))) > 0;
        if (isLeft) return [one, answer!] as [OvsAttachment, Answer];
        await one.net.del(one.container);
        return await one[Symbol.asyncDispose]();
      }, Boolean) as [OvsAttachment, Answer];
    },
    async [Symbol.asyncDispose]() {
      await resident.kill("SIGKILL");
      await stage[Symbol.asyncDispose]();
    },
  };
}

test("ovs-vswitchd is stopped: the call is left and fails, and the next one is served when it goes on", async () => {
  await using stage = await openServedStage();
  const { ovs } = stage;
  const left = await stage.leftOf(async () => {
    ovs.signal("switch", "SIGSTOP");
    const [one, { json }] = await stage.untilLeft(({ net, container }) => net.call("ADD", container));
    expect(json).toMatchObject({
      code: 11,
      msg: expect.stringMatching(/^Open vSwitch has not added port .* within 2 s$/),
    });
    expect(await one.left()).toEqual([]);
    ovs.signal("switch", "SIGCONT");
    await ovs.untilConfigured();
    const served = async () => (await statusOf(stage.machine)).served;
    const { net, container } = one;
    await untilTrue(async () => {
      const before = await served();
      await net.add(container);
      await net.check(container);
      await net.del(container);
      await net.gc([]);
      return await served() - before;
    }, (count) => count === 4);
    expect(await one.left()).toEqual([]);
    await one[Symbol.asyncDispose]();
  });
  expect(left).toEqual([]);
});

test("ovs-vswitchd goes on while the caller waits: the call is left, and done", async () => {
  await using stage = await openServedStage();
  const { ovs } = stage;
  const left = await stage.leftOf(async () => {
    const [one, { code }] = await stage.untilLeft(({ proxy, net, container }) => {
      ovs.signal("switch", "SIGSTOP");
      let makers = 0;
      proxy.at = ({ message }) => {
        // The worker's port, which is taken back, and then the caller's.
        if (JSON.stringify(message).includes('"op":"insert"') && ++makers === 2) ovs.signal("switch", "SIGCONT");
        return "pass";
      };
      return net.call("ADD", container);
    });
    expect(code).toBe(0);
    expect((await ovs.portsOf("ovs0")).length).toBe(1);
    await one.net.check(one.container);
    await one.net.del(one.container);
    expect(await one.left()).toEqual([]);
    await one[Symbol.asyncDispose]();
  });
  expect(left).toEqual([]);
});

test("the database does not answer the worker any more: its caller takes back what it has made", async () => {
  await using stage = await openServedStage();
  const left = await stage.leftOf(async () => {
    const [one, { code }] = await stage.untilLeft(({ proxy, net, container }) => {
      // The answer to the worker's transaction, and the question by which the worker would take the port back.
      proxy.at = ({ number }) => number === 8 || number === 9 ? "stall" : "pass";
      return net.call("ADD", container);
    });
    expect(code).toBe(0);
    expect((await stage.ovs.portsOf("ovs0")).length).toBe(1);
    await one.net.check(one.container);
    await one.net.del(one.container);
    expect(await one.left()).toEqual([]);
    await one[Symbol.asyncDispose]();
  });
  expect(left).toEqual([]);
});

test("the database is stopped: every call fails with the cause, whoever runs it", async () => {
  await using stage = await openServedStage();
  const { ovs } = stage;
  const left = await stage.leftOf(async () => {
    await using one = await stage.attachment();
    await using other = await stage.attachment();
    await other.net.add(other.container);
    ovs.signal("database", "SIGSTOP");
    const calls = [one.net.call("ADD", one.container), other.net.call("DEL", other.container)];
    for (const answer of await Promise.all(calls)) {
      expect({ isExplained: isExplained(answer), answer }).toMatchObject({ isExplained: true });
    }
    expect([await one.left(), await other.left()]).toEqual([[], ["ledger"]]);
    ovs.signal("database", "SIGCONT");
    for (const { net, container } of [one, other]) await net.del(container);
    expect([await one.left(), await other.left()]).toEqual([[], []]);
  });
  expect(left).toEqual([]);
});
