/**
 * What answers each question of ovs, and takes its time for each: a verb waits for all of them together as long as for one. It
 * fails with the cause, and the next call does what is to do.
 */
import { expect, test } from "bun:test";
import { openOvsStage, type OvsAttachment } from "../support/ovs-stage.ts";
import type { Treatment } from "../support/ovsdb-proxy.ts";

/** Below the limit for one question, and above it for two. */
const DELAY_MS = 6000;

/** Each answer comes late from now on. Returns how many questions there were. */
function slow({ proxy }: OvsAttachment): () => number {
  const first = proxy.heard.length;
  proxy.at = async ({ from }): Promise<Treatment> => {
    if (from === "server") await Bun.sleep(DELAY_MS);
    return "pass";
  };
  return () => proxy.heard.slice(first).filter(({ from }) => from === "plugin").length;
}

/** An ADD that fails may have something to take back, and waits anew for that. */
const verbs = ["ADD", "CHECK", "DEL", "GC"] as const;

test.concurrent.each(verbs)("%s ends while each answer comes just in time", async (verb) => {
  await using stage = await openOvsStage();
  await using attachment = await stage.attachment();
  const { container, net, proxy } = attachment;
  if (verb !== "ADD") await net.add(container);
  const questions = slow(attachment);
  const isGc = verb === "GC", change = isGc ? { conf: { "cni.dev/valid-attachments": [] } } : {};
  const { code, json } = await net.call(verb, isGc ? undefined : container, change);
  expect({ code, text: `${json?.msg}` }).toMatchObject({
    code: 1,
    text: expect.stringContaining("the database of Open vSwitch at"),
  });
  expect(json.msg).toContain("does not answer within 10 s");
  expect(questions()).toBeLessThanOrEqual(2);
  proxy.at = () => "pass";
  if (verb === "ADD") await net.add(container);
  if (verb !== "DEL" && verb !== "GC") await net.check(container);
  await net.del(container);
  expect(await attachment.left()).toEqual([]);
}, 300_000);
