/** What is loaded of a packet of which not everything is known. */
import { expect, test } from "bun:test";
import { unknown } from "../../../src/net/netfilter/known-bytes.ts";
import { metaOf } from "../../../src/net/netfilter/loads.ts";
import { firstPacket } from "../../../src/net/netfilter/packet.ts";

const ends = { source: unknown(4), destination: unknown(4) };
const packet = firstPacket({ family: 4, protocol: 6, ...ends }, () => undefined);

test.each([["sdif", 4], ["sdifname", 16]])(
  "meta %s is empty where no VRF is on the way, and unknown elsewhere",
  (key, length) => {
    expect(metaOf({ ...packet, isOutsideVrfs: true }, key)?.value).toEqual(new Uint8Array(length));
    expect(metaOf(packet, key)).toBeUndefined();
  },
);
