/** The tests of a source file. */
import { expect, test } from "bun:test";
import { testsFor } from "./tests-for.ts";

test("by imports and by the list of faults", () => {
  const ofVeth = testsFor("src/resources/link/veth.ts");
  for (const test of ["test/kernel/whose-link.test.ts", "test/kernel/ptp.test.ts"]) expect(ofVeth).toContain(test);
  expect(testsFor("src/plugins/main/tap/tap.schema.ts")).toContain("test/kernel/tap.test.ts");
  expect(testsFor("src/net/address.ts")).toContain("test/net/address.test.ts");
  expect(testsFor("src/cni/versions.ts")).toContain("test/cni/versions.test.ts");
  for (const file of ["src/resources/link/veth.ts", "src/net/address.ts"]) {
    const tests = testsFor(file);
    expect(tests).toEqual([...new Set(tests)].sort());
  }
});

test("a file without a fault of its own has those of its folder", () => {
  expect(testsFor("src/netavark/drivers/default-parent.ts").length).toBeGreaterThan(0);
});
