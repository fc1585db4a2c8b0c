/** What the service says: no more than somebody can read, whoever causes it. */
import { expect, test } from "bun:test";

const program = `
  import { sayRarely } from "${import.meta.dir}/../../../src/dhcp/service/log.ts";
  for (let round = 0; round < 2; round++) {
    for (let subject = 0; subject < 3000; subject++) sayRarely("subject " + subject, "line " + subject);
  }
`;

test("subjects that others make up are not said without end, and none is said twice", () => {
  const { stderr } = Bun.spawnSync([process.execPath, "-e", program]);
  const lines = stderr.toString().trim().split("\n");
  expect(lines.length).toBe(1000);
  expect(new Set(lines).size).toBe(1000);
});
