/** HTTP/2, gRPC and protocol buffers as the proxy speaks them: byte by byte, with the RFCs' examples, and against hostile input. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { answerWith, codes, GrpcError, messageIn, refusal } from "../../../src/netavark/dhcp-proxy/grpc.ts";
import { Http2Connection, type Request } from "../../../src/netavark/dhcp-proxy/http2/connection.ts";
import { encodeFields, HeaderDecoder } from "../../../src/netavark/dhcp-proxy/http2/hpack.ts";
import { ProtocolError } from "../../../src/netavark/dhcp-proxy/http2/protocol-error.ts";
import { readConfig, writeLease } from "../../../src/netavark/dhcp-proxy/messages.ts";
import { noLease } from "../../../src/netavark/dhcp-proxy/requests.ts";

const bytes = (hex: string) => Uint8Array.fromHex(hex.replaceAll(" ", ""));
const text = (value: string) => new TextEncoder().encode(value);

test("header fields: the examples of RFC 7541, C.3 and C.4, which build on one another", () => {
  const request = [[":method", "GET"], [":scheme", "http"], [":path", "/"], [":authority", "www.example.com"]];
  const cached = [...request, ["cache-control", "no-cache"]];
  const custom = [
    [":method", "GET"],
    [":scheme", "https"],
    [":path", "/index.html"],
    [":authority", "www.example.com"],
    ["custom-key", "custom-value"],
  ];
  const plain = new HeaderDecoder(), packed = new HeaderDecoder();
  expect(plain.decode(bytes("828684410f7777772e6578616d706c652e636f6d"))).toEqual(request as never);
  expect(plain.decode(bytes("828684be58086e6f2d6361636865"))).toEqual(cached as never);
  expect(plain.decode(bytes("828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565"))).toEqual(custom as never);
  expect(packed.decode(bytes("828684418cf1e3c2e5f23a6ba0ab90f4ff"))).toEqual(request as never);
  expect(packed.decode(bytes("828684be5886a8eb10649cbf"))).toEqual(cached as never);
  expect(packed.decode(bytes("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf"))).toEqual(custom as never);
});

test("header fields: what is written can be read, however long", () => {
  const fields = [["grpc-status", "0"], ["grpc-message", "x".repeat(5000)], ["empty", ""]] as const;
  expect(new HeaderDecoder().decode(encodeFields(fields))).toEqual(fields.map((each) => [...each]) as never);
});

test("header fields: the table forgets the oldest, and what is malformed is refused", () => {
  const decoder = new HeaderDecoder(), long = "v".repeat(2000);
  for (const name of ["a", "b", "c"]) {
    const length = [0x7f, ...[long.length - 127].flatMap((left) => [(left & 127) | 128, left >> 7])];
    decoder.decode(new Uint8Array([0x40, 1, ...text(name), ...length, ...text(long)]));
  }
  expect(decoder.decode(bytes("be bf"))).toEqual([["c", long], ["b", long]]);
  expect(() => decoder.decode(bytes("c0"))).toThrow(ProtocolError);
  for (
    const hex of ["80", "ff ff ff ff ff ff", "40 85 ff ff ff ff ff", "00 05 61", "3f ff ff 03", "41 81 00", "7f"]
  ) {
    expect(() => new HeaderDecoder().decode(bytes(hex))).toThrow(ProtocolError);
  }
  expect(() => new HeaderDecoder().decode(new Uint8Array(200).fill(0x82))).toThrow("more than 128");
});

const PREFACE = text("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, GOAWAY = 7, WINDOW_UPDATE = 8, CONTINUATION = 9;

function frame(type: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array(0)): Uint8Array {
  const head = [payload.length >> 16, payload.length >> 8, payload.length, type, flags, 0, 0, 0, stream];
  return new Uint8Array([...head, ...payload]);
}

function joined(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(parts.flatMap((part) => [...part]));
}

interface Sent {
  type: number;
  flags: number;
  stream: number;
  payload: Uint8Array;
}

function open() {
  const sent: Sent[] = [], requests: Request[] = [], gone: number[] = [];
  const connection = new Http2Connection(
    (one) => sent.push({ type: one[3]!, flags: one[4]!, stream: one[8]!, payload: one.subarray(9) }),
    (request) => requests.push(request),
    (stream) => gone.push(stream),
  );
  return { connection, sent, requests, gone };
}

const path = encodeFields([[":path", "/a/B"]]);

test("a request in one piece, in single bytes, with padding and continuations", () => {
  const padded = new Uint8Array([2, ...text("ab"), 0, 0]);
  const whole = joined(
    PREFACE,
    frame(SETTINGS, 0, 0, bytes("000300000064")),
    frame(HEADERS, 0, 1, path.subarray(0, 3)),
    frame(CONTINUATION, 4, 1, path.subarray(3)),
    frame(DATA, 8, 1, padded),
    frame(DATA, 1, 1, text("c")),
  );
  for (const size of [whole.length, 1, 7]) {
    const { connection, requests, sent } = open();
    for (let at = 0; at < whole.length; at += size) connection.receive(whole.subarray(at, at + size));
    expect(requests).toEqual([{ stream: 1, path: "/a/B", body: text("abc") }]);
    expect(sent.map(({ type, flags }) => [type, flags])).toEqual([
      [SETTINGS, 0],
      [SETTINGS, 1],
      [WINDOW_UPDATE, 0],
      [WINDOW_UPDATE, 0],
      [WINDOW_UPDATE, 0],
    ]);
    connection.answer(1, answerWith(text("xyz")));
    expect(sent.slice(-3).map(({ type, flags, stream }) => [type, flags, stream]))
      .toEqual([[HEADERS, 4, 1], [DATA, 0, 1], [HEADERS, 5, 1]]);
    expect(sent.at(-2)!.payload).toEqual(joined(bytes("0000000003"), text("xyz")));
    expect(connection.isIdle).toBe(true);
  }
});

test("pings are answered; who resets a stream or ends the connection is gone", () => {
  const { connection, sent, gone } = open();
  connection.receive(joined(PREFACE, frame(PING, 0, 0, bytes("0102030405060708"))));
  expect(sent.at(-1)).toEqual({ type: PING, flags: 1, stream: 0, payload: bytes("0102030405060708") });
  for (const stream of [1, 3, 5]) connection.receive(frame(HEADERS, 5, stream, path));
  connection.receive(frame(RST_STREAM, 0, 3, bytes("00000008")));
  expect(gone).toEqual([3]);
  const before = sent.length;
  connection.answer(3, answerWith(text("late")));
  expect(sent.length).toBe(before);
  connection.end();
  expect(gone).toEqual([3, 1, 5]);
});

test("what breaks the rules ends the connection, and says so", () => {
  const start = (...parts: Uint8Array[]) => joined(PREFACE, ...parts);
  const cases: Record<string, Uint8Array> = {
    "another protocol": text("GET / HTTP/1.1\r\n"),
    "a large frame": start(bytes("ffffff 00 00 00000001")),
    "settings torn": start(frame(SETTINGS, 0, 0, bytes("0001"))),
    "a ping torn": start(frame(PING, 0, 0, bytes("01"))),
    "an even stream": start(frame(HEADERS, 5, 2, path)),
    "a stream again": start(frame(HEADERS, 5, 3, path), frame(HEADERS, 5, 1, path)),
    "fields interrupted": start(frame(HEADERS, 0, 1, path), frame(PING, 0, 0, bytes("0102030405060708"))),
    "fields without a beginning": start(frame(CONTINUATION, 4, 1, path)),
    "data of no stream": start(frame(DATA, 0, 9, text("x"))),
    "too much padding": start(frame(HEADERS, 12, 1, bytes("09 82"))),
    "endless fields": start(frame(HEADERS, 0, 1), ...Array.from({ length: 20 }, () => frame(CONTINUATION, 0, 1))),
    "a large request": start(
      frame(HEADERS, 4, 1, path),
      ...Array.from({ length: 5 }, () => frame(DATA, 0, 1, new Uint8Array(16_384))),
    ),
  };
  for (const [name, input] of Object.entries(cases)) {
    const { connection, sent, requests } = open();
    expect([name, throwsOf(() => connection.receive(input))]).toEqual([name, "ProtocolError"]);
    expect([name, sent.at(-1)!.type]).toEqual([name, GOAWAY]);
    if (name !== "a stream again") expect([name, requests]).toEqual([name, []]);
  }
});

function throwsOf(work: () => void): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return error instanceof ProtocolError ? "ProtocolError" : String(error);
  }
}

test("a stream too many is refused, and the others go on", () => {
  const { connection, sent } = open();
  connection.receive(PREFACE);
  for (let stream = 1; stream < 255; stream += 2) connection.receive(frame(HEADERS, 5, stream, path));
  expect(sent.some(({ type }) => type === RST_STREAM)).toBe(false);
  connection.receive(joined(frame(HEADERS, 5, 255, path)));
  // One below the limit of 128 was left.
  connection.receive(new Uint8Array([...frame(HEADERS, 5, 0, path).subarray(0, 7), 1, 1, ...path]));
  expect(sent.at(-1)!.type).toBe(RST_STREAM);
});

test("whatever comes, nothing else is thrown, and it ends", () => {
  const frames = fc.array(
    fc.tuple(fc.integer({ min: 0, max: 11 }), fc.nat(255), fc.nat(7), fc.uint8Array({ maxLength: 40 })),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(frames, fc.uint8Array({ maxLength: 60 }), (all, tail) => {
      const { connection, requests } = open();
      const input = joined(
        PREFACE,
        ...all.map(([type, flags, stream, payload]) => frame(type, flags, stream, payload)),
        tail,
      );
      const thrown = throwsOf(() => connection.receive(input));
      if (thrown !== undefined) expect(thrown).toBe("ProtocolError");
      for (const { body } of requests) {
        try {
          readConfig(messageIn(body));
        } catch (error) {
          expect(error).toBeInstanceOf(GrpcError);
        }
      }
    }),
    { numRuns: 3000 },
  );
});

test("messages: netavark's fields, unknown ones passed over, torn ones refused", () => {
  const config = joined(
    bytes("0a03"),
    text("br0"),
    bytes("1204"),
    text("eth0"),
    bytes("3001"),
    bytes("4203"),
    text("c-1"),
  );
  const unknown = joined(
    bytes("78 05"),
    bytes("81 01 0102030405060708"),
    bytes("8d 01 01020304"),
    bytes("9a01 01 ff"),
  );
  expect(readConfig(joined(unknown, config))).toEqual({
    hostIface: "br0",
    containerIface: "eth0",
    containerMac: "",
    domainName: "",
    hostName: "",
    version: 1,
    netnsPath: "",
    containerId: "c-1",
  });
  for (const hex of ["0a", "0a05 61", "09 01", "0b", "ff", "0aff ffff ffff ffff ffff ff01"]) {
    expect(() => readConfig(bytes(hex))).toThrow(GrpcError);
  }
  expect(writeLease(noLease)).toEqual(new Uint8Array(0));
  const lease = { ...noLease, t1: 300, lease_time: 0xffff_ffff, mac_address: "02", dns_servers: ["a", "b"] };
  expect(writeLease(lease).toHex()).toBe("08ac02" + "18ffffffff0f" + "32023032" + "9a010161" + "9a010162");
});

test("gRPC: one whole message that is not compressed; a refusal is text in percent encoding", () => {
  expect(messageIn(bytes("00 00000002 6869"))).toEqual(text("hi"));
  for (const hex of ["", "00", "00 00000003 6869", "00 00000001 6869"]) {
    expect(() => messageIn(bytes(hex))).toThrow("the request is not one message");
  }
  expect(() => messageIn(bytes("01 00000000"))).toThrow("the request is compressed");
  expect(refusal(new GrpcError(codes.aborted, "100 % ä\n")).headers.slice(-2))
    .toEqual([["grpc-status", "10"], ["grpc-message", "100 %25 %C3%A4%0A"]]);
});
