/** resolv.conf is read as the reference plugin reads it. */
import { expect, test } from "bun:test";
import { parseResolvConf } from "../../../src/plugins/shared/resolv-conf.ts";

test("parseResolvConf() reads what the reference plugin reads", () => {
  const text = `
; comment
# another
nameserver 10.0.0.1 ignored
nameserver
  nameserver\t10.0.0.2
domain first
domain second third
search a b
search c
options ndots:5
options timeout:1  rotate
sortlist 10.0.0.0
`;
  expect(parseResolvConf(text)).toEqual({
    nameservers: ["10.0.0.1", "10.0.0.2"],
    domain: "second",
    search: ["a", "b", "c"],
    options: ["ndots:5", "timeout:1", "rotate"],
  });
  expect(parseResolvConf("")).toEqual({});
});
