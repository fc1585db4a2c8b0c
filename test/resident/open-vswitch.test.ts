/**
 * A worker waits for Open vSwitch for half a second, and leaves the call to its caller then, which takes back what the worker
 * has made, and ends as a call without a resident.
 */
import { expect, test } from "bun:test";
import { isExplained, openOvsStage } from "../support/ovs-stage.ts";
import { statusOf } from "../support/resident-status.ts";
import { openResident, untilServed } from "../support/served.ts";

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
    await using one = await stage.attachment(conf);
    const { net, container } = one;
    ovs.signal("switch", "SIGSTOP");
    const declined = await stage.leftDuring(async () => {
      const { json } = await net.call("ADD", container);
      expect(json).toMatchObject({
        code: 11,
        msg: expect.stringMatching(/^Open vSwitch has not added port .* within 2 s$/),
      });
    });
    expect(declined).toBe(1);
    expect(await one.left()).toEqual([]);
    ovs.signal("switch", "SIGCONT");
    await ovs.untilConfigured();
    const served = (await statusOf(stage.machine)).served;
    const none = await stage.leftDuring(async () => {
      await net.add(container);
      await net.check(container);
      await net.del(container);
      await net.gc([]);
    });
    expect(none).toBe(0);
    expect((await statusOf(stage.machine)).served - served).toBe(4);
    expect(await one.left()).toEqual([]);
  });
  expect(left).toEqual([]);
});

test("ovs-vswitchd goes on while the caller waits: the call is left, and done", async () => {
  await using stage = await openServedStage();
  const { ovs } = stage;
  const left = await stage.leftOf(async () => {
    await using one = await stage.attachment({ ...conf, link_state_check_retries: 60 });
    ovs.signal("switch", "SIGSTOP");
    let makers = 0;
    one.proxy.at = ({ message }) => {
      // The worker's port, which the caller takes back, and then the caller's.
      if (JSON.stringify(message).includes('"op":"insert"') && ++makers === 2) ovs.signal("switch", "SIGCONT");
      return "pass";
    };
    expect(await stage.leftDuring(async () => void await one.net.add(one.container))).toBe(1);
    expect(makers).toBe(2);
    expect((await ovs.portsOf("ovs0")).length).toBe(1);
    await one.net.check(one.container);
    await one.net.del(one.container);
    expect(await one.left()).toEqual([]);
  });
  expect(left).toEqual([]);
});

test("the database does not answer the worker any more: its caller takes back what it has made", async () => {
  await using stage = await openServedStage();
  const left = await stage.leftOf(async () => {
    await using one = await stage.attachment(conf);
    // The answer to the worker's transaction, and the question by which the worker would take the port back.
    one.proxy.at = ({ number }) => number === 6 || number === 7 ? "stall" : "pass";
    expect(await stage.leftDuring(async () => void await one.net.add(one.container))).toBe(1);
    expect((await stage.ovs.portsOf("ovs0")).length).toBe(1);
    await one.net.check(one.container);
    await one.net.del(one.container);
    expect(await one.left()).toEqual([]);
  });
  expect(left).toEqual([]);
});

test("the database is stopped: every call is left, and fails with the cause", async () => {
  await using stage = await openServedStage();
  const { ovs } = stage;
  const left = await stage.leftOf(async () => {
    await using one = await stage.attachment();
    await using other = await stage.attachment();
    await other.net.add(other.container);
    ovs.signal("database", "SIGSTOP");
    const declined = await stage.leftDuring(async () => {
      const calls = [one.net.call("ADD", one.container), other.net.call("DEL", other.container)];
      for (const answer of await Promise.all(calls)) {
        expect({ isExplained: isExplained(answer), answer }).toMatchObject({ isExplained: true });
      }
    });
    // The other one may have found the only worker busy.
    expect(declined).toBeGreaterThanOrEqual(1);
    expect([await one.left(), await other.left()]).toEqual([[], ["ledger"]]);
    ovs.signal("database", "SIGCONT");
    for (const { net, container } of [one, other]) await net.del(container);
    expect([await one.left(), await other.left()]).toEqual([[], []]);
  });
  expect(left).toEqual([]);
});
