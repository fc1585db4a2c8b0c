/** docs/versions.md names the formats that the program writes. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { NewerRecord, readRecord } from "../../src/services/dhcp/journal/record.ts";
import { FORMAT } from "../../src/engine/ledger/record.ts";
import { emptyBlock } from "../../src/ipam/layout.ts";
import { parsePrefix } from "../../src/net/address.ts";
import { recordOf } from "../support/dhcp/lease-record.ts";
import { root } from "../support/documents.ts";

const page = readFileSync(join(root, "docs/versions.md"), "utf8");
const formatOf = (store: string) =>
  [...page.matchAll(/^\| ([^|]+?) +\| ([^|]+?) +\|/gm)].find(([, first]) => first!.startsWith(store))?.[2];

test("the ledger's", () => expect(formatOf("ledger")).toBe(`\`"patchbay":${FORMAT}\``));

test("the index's", () => {
  const { buffer } = emptyBlock(parsePrefix("10.0.0.0/24")!, new Uint8Array(16));
  expect(formatOf("index of leases")).toBe(`${new Int32Array(buffer)[1]}, in its header`);
});

test("the journal's", () => {
  const record = recordOf("c1");
  expect(formatOf("journal of DHCP")).toBe(`\`"format":${record.format}\``);
  expect(readRecord(JSON.stringify(record)).format).toBe(record.format);
  expect(() => readRecord(JSON.stringify({ ...record, format: record.format + 1 }))).toThrow(NewerRecord);
});
