/** What explain asks of the kernel: questions alone, few of them, and with the right status where it may not ask. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { PATCHBAY } from "../support/plugins.ts";
import { openTown, type Town } from "./town.ts";

let town: Town;
beforeAll(async () => {
  town = await openTown();
});
afterAll(() => town[Symbol.asyncDispose]());

const ASKED = ["web", "198.18.0.2", "tcp/7000"];

const NFT_GETS = [1, 4, 7, 10, 13, 16, 19];

/** Kinds of rtnetlink are four each: new, delete, get, set. */
function isQuestion(type: number): boolean {
  return type >> 8 === 0x0a ? NFT_GETS.includes(type & 0xff) : type < 0x100 && (type & 3) === 2;
}

test("it only asks, writes only its answer, and starts nothing", async () => {
  const { machine } = town;
  await machine.sh("iptables-legacy -A FORWARD -s 192.0.2.7 -j ACCEPT; nft add table inet other");
  const before = await machine.sh(
    "cat /proc/net/ip_tables_names; nft list ruleset; ip route show table all; ip rule",
  );
  const trace = ["strace", "-f", "-qq", "-s", "64", "-o", "/run/traced", "-e"];
  const calls =
    "trace=sendto,sendmsg,sendmmsg,write,pwrite64,execve,openat,setsockopt,unlink,unlinkat,mkdir,mkdirat,rename";
  const outcome = await machine.run([...trace, calls, PATCHBAY, "explain", ...ASKED], {
    env: { PATCHBAY_RESIDENT: "off" },
  });
  expect(outcome.code).toBe(0);
  const lines = (await machine.sh("cat /run/traced")).split("\n");
  const messages = lines.filter((line) => /\bsend(to|msg|mmsg)\(/.test(line));
  // Twenty or so each way, and the container's beside the host's.
  expect(messages.length).toBeGreaterThan(10);
  expect(messages.length).toBeLessThan(60);
  const others = messages.filter((line) => {
    const [, type] = /nlmsg_type=(0x[0-9a-f]+)/.exec(line) ?? [];
    return type === undefined ? !/nlmsg_type=[\w<|]*GET/.test(line) : !isQuestion(Number(type));
  });
  expect(others).toEqual([]);
  const opened = lines.filter((line) =>
    /openat\(.*O_(WRONLY|RDWR|CREAT)/.test(line) && !/\/dev\/null|\/proc\//.test(line)
  );
  expect(opened).toEqual([]);
  expect(lines.filter((line) => /execve\(/.test(line))).toHaveLength(1);
  expect(lines.filter((line) => /(unlink|unlinkat|mkdir|mkdirat|rename)\(/.test(line))).toEqual([]);
  expect(await machine.sh("cat /proc/net/ip_tables_names; nft list ruleset; ip route show table all; ip rule")).toBe(
    before,
  );
});

test("without the rights it says so, with status 3", async () => {
  const { code, stderr } = await town.machine.run([
    "setpriv",
    "--reuid=65534",
    "--clear-groups",
    PATCHBAY,
    "explain",
    ...ASKED,
  ]);
  expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringMatching(/root|capabilit/i) });
});

test("nobody of that name: status 3, and nothing on stdout", async () => {
  const { code, stdout, stderr } = await town.patchbay(["explain", "nobody", "outside"]);
  expect({ code, stdout, stderr }).toEqual({ code: 3, stdout: "", stderr: expect.stringContaining('"nobody"') });
});
