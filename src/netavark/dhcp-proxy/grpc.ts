/** gRPC over HTTP/2: one message each way, and a status in the trailers. Pure. */
import { utf8 } from "../../ffi/libc.ts";
import type { Field } from "./http2/hpack.ts";
import type { Response } from "./http2/connection.ts";

/** Of gRPC's status codes, those that netavark's proxy answers with. */
export const codes = { invalidArgument: 3, notFound: 5, aborted: 10, unimplemented: 12, internal: 13 } as const;

export class GrpcError extends Error {
  constructor(readonly code: typeof codes[keyof typeof codes], text: string) {
    super(text);
  }
}

const PREFIX_BYTES = 5, LONGEST_MESSAGE = 2000;
const headers: readonly Field[] = [[":status", "200"], ["content-type", "application/grpc"]];

/** The message in a request's body. Throws GrpcError. */
export function messageIn(body: Uint8Array): Uint8Array {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  if (body.length < PREFIX_BYTES || view.getUint32(1) !== body.length - PREFIX_BYTES) {
    throw new GrpcError(codes.internal, "the request is not one message");
  }
  if (body[0] !== 0) throw new GrpcError(codes.unimplemented, "the request is compressed");
  return body.subarray(PREFIX_BYTES);
}

export function answerWith(message: Uint8Array): Response {
  const body = new Uint8Array(PREFIX_BYTES + message.length);
  new DataView(body.buffer).setUint32(1, message.length);
  body.set(message, PREFIX_BYTES);
  return { headers, body, trailers: [["grpc-status", "0"]] };
}

export function refusal({ code, message }: GrpcError): Response {
  return { headers: [...headers, ["grpc-status", `${code}`], ["grpc-message", percentEncoded(message)]] };
}

function percentEncoded(text: string): string {
  const isPlain = (byte: number) => byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
  const escaped = (byte: number) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  return [...utf8(text.slice(0, LONGEST_MESSAGE))].map((byte) =>
    isPlain(byte) ? String.fromCharCode(byte) : escaped(byte)
  ).join("");
}
