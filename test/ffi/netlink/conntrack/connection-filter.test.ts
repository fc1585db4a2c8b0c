/** Which connections are deleted: as the kernel is asked, and as they are compared where it cannot be asked. */
import { describe, expect, test } from "bun:test";
import { EINVAL, ENOENT, EPERM } from "../../../../src/ffi/errno.ts";
import {
  type ConnectionFilter,
  deleteConnections,
  deleteOneByOne,
  fits,
} from "../../../../src/ffi/netlink/conntrack/connection.ts";
import { parseAddress } from "../../../../src/net/address.ts";
import { answering, answeringEach, bodyOf, refusing, sentAs, socketTo } from "../fake-kernel.ts";

const HEADER = 4; // struct nfgenmsg
const UDP = 17;
const filter: ConnectionFilter = { family: 4, protocol: UDP, destinationPort: 53 };

function asked(more: Partial<ConnectionFilter>): string[] {
  const kernel = answering(0);
  deleteConnections(socketTo(kernel), { ...filter, ...more });
  return sentAs(kernel, HEADER);
}

describe("the kernel is asked", () => {
  test("for a protocol's port", () => {
    expect(asked({})).toEqual([
      "type 258, flags 0x5", // IPCTNL_MSG_CT_DELETE of NFNL_SUBSYS_CTNETLINK
      "02010000", // AF_INET, which counts from version 1 on
      "1.2.1: 11",
      "1.2.3: 0035",
      "25.1: 28000000", // the number of the protocol and the port
    ]);
  });

  test("for a destination, for who answers, for what is not established", () => {
    const destination = parseAddress("10.1.0.2")!, answeredBy = parseAddress("10.1.0.3")!;
    expect(asked({ destination, answeredBy, isUnassured: true }).slice(2)).toEqual([
      "1.1.2: 0a010002",
      "1.2.1: 11",
      "1.2.3: 0035",
      "2.1.1: 0a010003",
      "3: 00000000", // IPS_ASSURED is not set
      "25.1: 2a000000", // the destination's address, too
      "25.2: 01000000", // the source's
      "26: 00000004",
    ]);
  });

  test("not for addresses of IPv6, which it compares the wrong way round: all of the family are listed", () => {
    const six = parseAddress("fd00::2")!;
    for (const address of [{ destination: six }, { answeredBy: six }]) {
      expect(asked({ family: 6, ...address })).toEqual([
        "type 257, flags 0x301", // IPCTNL_MSG_CT_GET, a dump
        "0a010000",
      ]);
    }
    expect(asked({ family: 6 }).slice(0, 2)).toEqual(["type 258, flags 0x5", "0a010000"]);
  });

  test("that there are none is no failure; a refusal is one", () => {
    deleteConnections(socketTo(refusing(ENOENT)), filter);
    expect(() => deleteConnections(socketTo(refusing(EPERM)), filter)).toThrow(
      "delete connections to port 53: operation not permitted",
    );
  });
});

const PORT_53 = "0035", PORT_54 = "0036", ASSURED = "0000000e";

/** CTA_IP and CTA_PROTO of one direction of a flow of UDP. */
const tuple = (from: string, to: string, ports: string) =>
  `1400018008000100${from}08000200${to}` + `1c0002800500010011000000${ports}`;
const from = (port: string) => `06000200${port}0000`, to = (port: string) => `06000300${port}0000`;
const client = "0a010009", server = "0a010002", other = "0a010003";

/** CTA_TUPLE_ORIG and CTA_TUPLE_REPLY of a flow to 10.1.0.2, which 10.1.0.3 answers; CTA_STATUS, CTA_ID, CTA_ZONE. */
const flow = (port: string, status = ASSURED) =>
  bodyOf("02000000", {
    1: tuple(client, server, from("9999") + to(port)),
    2: tuple(other, client, from(port) + to("9999")),
    3: status,
    12: "00000007",
    18: "0001",
  });

describe("where the kernel cannot be asked", () => {
  test("all are listed, and those that match are deleted by what names them", () => {
    let refusals = 0;
    const kernel = answeringEach(256, ({ type }) => {
      if (type === 257) return [flow(PORT_53), flow(PORT_54), bodyOf("02000000")];
      return refusals++ === 0 ? EINVAL : [];
    });
    deleteConnections(socketTo(kernel), filter);
    expect(kernel.sent.map(([{ type }]) => type)).toEqual([258, 257, 257, 258]);
    expect(sentAs(kernel, HEADER)).toEqual([
      "type 258, flags 0x5",
      "02010000",
      "1.1.1: 0a010009",
      "1.1.2: 0a010002",
      "1.2.1: 11",
      "1.2.2: 9999",
      "1.2.3: 0035",
      "18: 0001",
      "12: 00000007",
    ]);
    const [{ payload }] = kernel.sent[1]!;
    expect(payload.toHex()).toBe("02010000");
  });

  test("one that ended meanwhile is no failure; a refusal is one", () => {
    const refused = (errno: number) =>
      socketTo(answeringEach(256, ({ type }) => type === 257 ? [flow(PORT_53)] : errno));
    deleteOneByOne(refused(ENOENT), 4, () => true);
    expect(() => deleteOneByOne(refused(EPERM), 4, () => true)).toThrow("delete connection: operation not permitted");
    const kernel = answering(256, flow(PORT_53));
    deleteOneByOne(socketTo(kernel), 6, () => false);
    expect(sentAs(kernel, HEADER)).toEqual(["type 257, flags 0x301", "0a010000"]);
  });

  test("a connection matches by protocol, port, destination, who answers and its state", () => {
    const matches = (more: Partial<ConnectionFilter>, status = ASSURED) => {
      let found: boolean | undefined;
      deleteOneByOne(socketTo(answering(256, flow(PORT_53, status))), 4, (connection) => {
        found = fits(connection, { ...filter, ...more });
        return false;
      });
      return found;
    };
    const destination = parseAddress("10.1.0.2")!, answeredBy = parseAddress("10.1.0.3")!;
    expect(matches({ destination, answeredBy })).toBe(true);
    expect(matches({ protocol: 6 })).toBe(false);
    expect(matches({ destinationPort: 54 })).toBe(false);
    expect(matches({ destination: answeredBy })).toBe(false);
    expect(matches({ answeredBy: destination })).toBe(false);
    expect(matches({ family: 6, destination })).toBe(false);
    expect(matches({ isUnassured: true })).toBe(false);
    expect(matches({ isUnassured: true }, "0000000a")).toBe(true);
    expect(matches({ isUnassured: false })).toBe(true);
  });
});
