/** Which options each message of a client has (RFC 8415 section 18.2 and appendix B). */
import { expect, test } from "bun:test";
import {
  confirm,
  decline,
  type Exchange6,
  type Held,
  type Identity6,
  rebind,
  release,
  renew,
  request,
  solicit,
} from "../../../../src/services/dhcp/v6/lease/request.ts";
import {
  decode,
  decodeIa,
  decodeIaAddress,
  first,
  option,
} from "../../../../src/services/dhcp/v6/message/message.ts";
import { duid, iaid, ip6, server } from "../../../support/dhcp6-simulation.ts";

const who: Identity6 = { duid, iaid }, address = ip6("fd00:77::50");
const held: Held = { server, address }, exchange: Exchange6 = { xid: 0xabcdef, elapsed: 260 };

test.each<[string, Uint8Array, type: number, options: number[], hasAddress: boolean]>([
  ["SOLICIT", solicit(who, exchange), 1, [1, 3, 6, 8, 14], false],
  ["SOLICIT with a hint", solicit(who, exchange, address), 1, [1, 3, 6, 8, 14], true],
  ["REQUEST", request(who, exchange, held), 3, [1, 2, 3, 6, 8], true],
  ["CONFIRM", confirm(who, exchange, address), 4, [1, 3, 8], true],
  ["RENEW", renew(who, exchange, held), 5, [1, 2, 3, 6, 8], true],
  ["REBIND", rebind(who, exchange, address), 6, [1, 3, 6, 8], true],
  ["RELEASE", release(who, exchange, held), 8, [1, 2, 3, 8], true],
  ["DECLINE", decline(who, exchange, held), 9, [1, 2, 3, 8], true],
])("%s", (_name, bytes, type, numbers, hasAddress) => {
  const message = decode(bytes)!, { options } = message;
  expect([message.type, message.xid]).toEqual([type, 0xabcdef]);
  expect(options.map(([number]) => number).sort((one, other) => one - other)).toEqual(numbers);
  const expected: [number, Uint8Array][] = [
    [1, duid],
    [2, server],
    [6, Uint8Array.fromHex("001700180020003800520053")],
    [8, Uint8Array.of(1, 4)],
    [14, new Uint8Array()],
  ];
  for (const [number, value] of expected) {
    if (numbers.includes(number)) expect(first(options, number)).toEqual(value);
  }
  if (!numbers.includes(option.ia)) return;
  const ia = decodeIa(first(options, option.ia)!)!, inside = first(ia.options, option.iaAddress);
  expect([ia.iaid, ia.renew, ia.rebind]).toEqual([iaid, 0, 0]);
  const given = { address, preferred: 0, valid: 0, options: [] };
  expect(inside && decodeIaAddress(inside)).toEqual(hasAddress ? given : undefined);
});

test("time that does not fit stays at its largest", () => {
  const { options } = decode(solicit(who, { xid: 1, elapsed: 70_000 }))!;
  expect(first(options, option.elapsed)).toEqual(Uint8Array.of(0xff, 0xff));
});
