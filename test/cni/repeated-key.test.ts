/** A key that occurs twice in one object is found, whatever the spelling and the nesting. */
import { expect, test } from "bun:test";
import { repeatedKeyIn } from "../../src/cni/repeated-key.ts";

const rows: [text: string, found: string | undefined][] = [
  ['{"sysctl":{"a":"1","b":"2"}}', undefined],
  ['{"sysctl":{"a":"1","a":"2"}}', "a"],
  ['{"x":1,"SysCtl" : {\n"a" :"1",\t"b":"\\"a\\":", "\\u0061": "2"}}', "a"],
  ['{"sysctl":{"a":"a","b":"a"},"other":{"c":1,"c":2}}', undefined],
  ['{"other":{"sysctl":{"a":1,"a":2}},"sysctl":{}}', undefined],
  ['{"sysctl":{"a":{"b":1,"c":{"b":2}},"b":3}}', undefined],
  ['{"sysctl":{"a":1},"sysctl":{"a":2}}', undefined],
  ['{"list":["sysctl",{"a":1,"a":2}],"sysctl":{"{":1,"}":2,"\\\\":3,"\\\\\\"":4}}', undefined],
  ['{"sysctl":["a","a"]}', undefined],
  ['{"sysctl":{}}', undefined],
];

test.each(rows)("repeatedKeyIn(%p) is %p", (text, found) => {
  JSON.parse(text);
  expect(repeatedKeyIn("sysctl", text)).toBe(found);
});
