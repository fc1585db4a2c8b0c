/** The tests of a source file. */
import { expect, test } from "bun:test";
import { testsFor } from "./tests-for.ts";

test("by imports and by the list of faults", () => {
  const ofVeth = testsFor("src/resources/link/veth.ts");
  for (const test of ["test/kernel/whose-link.test.ts", "test/kernel/ptp.test.ts"]) expect(ofVeth).toContain(test);
  expect(testsFor("src/plugins/main/tap/tap.schema.ts")).toContain("test/kernel/tap.test.ts");
  expect(testsFor("src/net/address.ts")).toContain("test/net/address.test.ts");
  expect(testsFor("src/cni/versions.ts")).toContain("test/cni/versions.test.ts");
  expect(ofVeth).toHaveLength(new Set(ofVeth).size);
});

test("by the pattern that a test reads sources by, and by the script that it runs", () => {
  expect(testsFor("src/ffi/netlink/route/address.ts")).toContain("test/ffi/netlink/socket.test.ts");
  expect(testsFor("src/ffi/netlink/uapi/if-link.ts")).toContain("test/ffi/numbers.test.ts");
});

test("by imports of imports, within a room", () => {
  expect(testsFor("src/plugins/meta/firewall/names.ts")).toContain("test/plugins/judged.test.ts");
});

test("by the folder, where a test reaches the file through others of it", () => {
  expect(testsFor("src/services/dhcp/service/family-lease.ts")).toContain(
    "test/services/dhcp/service/v6-lease.test.ts",
  );
});

test("a file without a fault of its own has those of its folder", () => {
  expect(testsFor("src/resources/netavark/static-routes.ts").length).toBeGreaterThan(0);
});

test("what a resource is made of has the tests of its theme, and of the plugins that make it", () => {
  const tests = testsFor("src/resources/packets/firewall/nftables.ts");
  for (const test of ["test/resources/packets/tables.test.ts", "test/kernel/firewall.test.ts"]) {
    expect(tests).toContain(test);
  }
  expect(testsFor("src/interop/iptables/legacy-table.ts")).toContain("test/kernel/portmap.test.ts");
  for (const test of ["test/kernel/ptp.test.ts", "test/resources/links.test.ts"]) expect(tests).not.toContain(test);
  expect(testsFor("src/resources/address/addressing/addressing.ts")[0]).toBe("test/resources/links.test.ts");
});

test("the nearest come first", () => {
  const tests = testsFor("src/ipam/allocator.ts");
  const places = ["allocator", "blocks"].map((name) => tests.indexOf(`test/ipam/${name}.test.ts`));
  expect(places[0]).toBeGreaterThanOrEqual(0);
  expect(places[1]).toBeGreaterThan(places[0]!);
});
