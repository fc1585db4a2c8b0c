/** The kernel's list of VLAN links. */
import { expect, test } from "bun:test";
import { vlanLinksIn } from "../../src/ffi/vlan-links.ts";

test("headings are no links, and a name may have what separates the columns", () => {
  const text = `VLAN Dev name    | VLAN ID
Name-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD
ovs0.100       | 100  | ovs0
a|1            | 4094  | b|2
`;
  expect(vlanLinksIn(text)).toEqual([
    { name: "ovs0.100", id: 100, parent: "ovs0" },
    { name: "a|1", id: 4094, parent: "b|2" },
  ]);
  expect(vlanLinksIn("")).toEqual([]);
});
