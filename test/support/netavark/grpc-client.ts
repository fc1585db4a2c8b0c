/**
 * A client of netavark's DHCP proxy, run inside a machine; its HTTP/2 is the runtime's, not ours. Arguments: the socket, the
 * method, and the fields of the message as JSON, by number. Prints `{ status, message, lease }`.
 */
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";

const [socket, method, text] = process.argv.slice(2) as [string, string, string];

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))];
}

function encode(fields: Record<string, string | number>): Buffer {
  const bytes = Object.entries(fields).flatMap(([number, value]) => {
    if (typeof value === "number") return [...varint(Number(number) * 8), ...varint(value)];
    const content = Buffer.from(value);
    return [...varint(Number(number) * 8 + 2), ...varint(content.length), ...content];
  });
  const message = Buffer.from(bytes), head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Fields that repeat are lists. */
function decode(message: Buffer): Record<number, (string | number)[]> {
  const fields: Record<number, (string | number)[]> = {};
  let at = 5;
  const next = () => {
    let value = 0;
    for (let factor = 1;; factor *= 128) {
      const byte = message[at++]!;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const key = next(), length = next();
    const value = key % 8 === 0 ? length : message.subarray(at, at += length).toString();
    (fields[Math.floor(key / 8)] ??= []).push(value);
  }
  return fields;
}

const session = connectHttp2("http://localhost", { createConnection: () => connect(socket) as never });
const fail = (error: Error) => {
  console.log(JSON.stringify({ status: -1, message: error.message }));
  process.exit(0);
};
session.on("error", fail);
const call = session.request({
  ":method": "POST",
  ":path": `/netavark_proxy.NetavarkProxy/${method}`,
  "content-type": "application/grpc",
  "te": "trailers",
});
const parts: Buffer[] = [];
let answer: Record<string, unknown> = {};
call.on("response", (headers) => answer = { ...answer, ...headers });
call.on("trailers", (headers) => answer = { ...answer, ...headers });
call.on("data", (chunk) => parts.push(Buffer.from(chunk)));
call.on("error", fail);
call.on("close", () => {
  const status = Number(answer["grpc-status"] ?? -1),
    message = decodeURIComponent(String(answer["grpc-message"] ?? ""));
  const body = Buffer.concat(parts);
  console.log(JSON.stringify({ status, message, lease: body.length === 0 ? undefined : decode(body) }));
  session.close();
});
call.end(encode(JSON.parse(text)));
