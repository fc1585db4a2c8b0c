/** nftables transactions on a real kernel: all or nothing, with the kernel's reason for what it refused. */
import { expect, test } from "bun:test";
import { openMachine } from "../../../support/machine.ts";

async function session(before: string[], ...parameters: string[]) {
  await using machine = await openMachine();
  const outcome = await machine.run([...before, process.execPath, `${import.meta.dir}/session.ts`, ...parameters]);
  expect(outcome).toMatchObject({ code: 0, stderr: "" });
  return JSON.parse(outcome.stdout);
}

test("transactions take effect as a whole, say what was refused, and notice that they are too late", async () => {
  expect(await session([])).toEqual({
    absent: [null, null, null, null, null, [], [], []],
    present: {
      table: 4, // two chains, the map, the counter
      chains: [2, 2], // its rules; its rule and the jump to it
      counter: 2, // elements that refer to it
      element: "owner 2",
      elements: ["owner 1: k", "owner 2: k"],
      sets: ["m"],
      rules: ["counter", "counter,immediate"],
      wholeTable: 3,
      consecutive: true,
      byHandle: ["counter,immediate"],
    },
    refused: [
      // Which attribute is to blame is said by newer kernels for more of them.
      expect.stringMatching(/^create element ip t m \(2 of 3\): file exists( \(.*\))? \[17\]$/),
      expect.stringMatching(/^delete chain ip t d: device or resource busy( \(.*\))? \[16\]$/),
      expect.stringMatching(/^delete element ip t m \(1 of 2\): no such file or directory( \(.*\))? \[2\]$/),
      expect.stringMatching(/^create chain ip t x+: numerical result out of range( \(.*\))? \[34\]$/),
    ],
    nothingOfIt: null,
    looks: 3,
    tooLate: "nftables transaction (create element ip t m …): interrupted system call should be restarted [85]",
    notMade: null,
    rehearsed: [
      "no error",
      "add rule inet stage c (3 of 3): no such file or directory (attribute expressions.nonesuch) [2]",
      expect.stringMatching(/^add table ip t: file exists/),
    ],
    notPlayed: null,
    many: 6003,
    manyRefused: expect.stringMatching(/^create element ip t m \(1 of 6000\): file exists/),
    after: 6003,
    listed: 6003,
    left: 3, // the chain, and the rival's two
    closesSlowly: [false, true],
    closed: true,
  });
});

test("a batch that is refused as a whole ends with the kernel's reason", async () => {
  const nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"];
  expect(await session(nobody, "unprivileged")).toEqual({
    commit: "nftables transaction (add table inet t …): operation not permitted [1]",
  });
});
