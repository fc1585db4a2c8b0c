/** Many calls of ovs at once, and rivals for one container, on one Open vSwitch. */
import { expect, test } from "bun:test";
import { openOvsStage } from "../support/ovs-stage.ts";
import { randomBelow } from "../support/random.ts";

/** Longer than any of the calls. */
const SPAN_MS = 150, ROUNDS = 4;

test("twenty ADDs at once, then twenty DELs, and each DEL twice", async () => {
  await using stage = await openOvsStage();
  const left = await stage.leftOf(async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => stage.attachment()));
    const results = await Promise.all(all.map(async ({ net, container }) => await net.add(container)));
    const names = results.map(({ interfaces }) => interfaces[0].name);
    expect((await stage.ovs.portsOf("ovs0")).sort()).toEqual(names.sort());
    await Promise.all(all.map(async ({ net, container }) => await net.check(container)));
    const twice = all.flatMap((one) => [one, one]);
    await Promise.all(twice.map(async ({ net, container }) => await net.del(container)));
    for (const { left, net, container, [Symbol.asyncDispose]: dispose } of all) {
      expect(await left()).toEqual([]);
      await net.del(container);
      await dispose();
    }
  });
  expect(left).toEqual([]);
});

test("ADD and DEL of one container at once, and two ADDs: a DEL afterwards leaves nothing", async () => {
  await using stage = await openOvsStage();
  const left = await stage.leftOf(async () => {
    for (let round = 0; round < ROUNDS; round++) {
      await using one = await stage.attachment();
      const others = [[], ["DEL"], ["ADD"], ["DEL", "DEL"]];
      await Promise.all(["ADD", ...others[round % others.length]!].map(async (verb) => {
        await Bun.sleep(randomBelow(SPAN_MS));
        await one.net.call(verb, one.container);
      }));
      await one.net.del(one.container);
      expect(await one.left()).toEqual([]);
    }
  });
  expect(left).toEqual([]);
});
