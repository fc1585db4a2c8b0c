/** Which links of the host are whose, by their alias and their name. */
import { expect, test } from "bun:test";
import type { Link } from "../../../../src/ffi/netlink/route/link.ts";
import { aliasFor, isVlanGateway, whyOthers } from "../../../../src/resources/link/shared/host-link.ts";

const link = (change: Partial<Link>) => change as Link;

test("the alias says for which network a link was made", () => {
  expect(aliasFor("net")).toBe("made by Patchbay for network net");
  const why = (alias: string | undefined) => whyOthers(link({ alias }), "net");
  expect(why("made by Patchbay for network net")).toBeUndefined();
  expect(why("made by Patchbay for network net2")).toBe("Patchbay made it for network net2");
  for (const alias of [undefined, "", "mine", "made by Patchbay", "not made by Patchbay for network net"]) {
    expect(why(alias)).toBe("it was there before, or another program made it");
  }
});

test("a VLAN's gateway is an end of a pair on the host, of the network, with the number of a VLAN", () => {
  const gateway = { kind: "veth", alias: aliasFor("net"), name: "br0.100" };
  const is = (change: Partial<Link>, bridge?: string) =>
    isVlanGateway(link({ ...gateway, ...change }), bridge, "net");
  expect([is({}), is({}, "br0"), is({ name: "br0.1.4094" }, "br0.1"), is({ name: "br0.1" })]).toEqual([
    true,
    true,
    true,
    true,
  ]);
  expect([is({}, "br1"), is({}, "br")]).toEqual([false, false]);
  for (const name of ["br0", ".100", "br0.0100", "br0.4095", "br0.0", "br0.12345", "br0.x"]) {
    expect([name, is({ name })]).toEqual([name, false]);
  }
  expect([is({ kind: "vlan" }), is({ linkNetnsId: 0 }), is({ alias: aliasFor("other") })]).toEqual([
    false,
    false,
    false,
  ]);
});
