/** The result cache has libcni's files, and a broken one never makes DEL fail. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import {
  type CacheRecord,
  listCache,
  readCache,
  recordFile,
  removeCache,
  writeCache,
} from "../../src/runtime/cache.ts";

let directory: string;
beforeEach(() => (directory = mkdtempSync(`${tmpdir()}/cache-`)));
afterEach(() => rmSync(directory, { recursive: true }));

const record = (changes: Partial<CacheRecord> = {}): CacheRecord => ({
  network: "net",
  containerId: "ctr",
  ifName: "eth0",
  netnsPath: "/run/netns/x",
  cniArgs: [["K", "V"], ["IgnoreUnknown", "1"]],
  capabilityArgs: { portMappings: [{ hostPort: 1 }] },
  config: '{"name":"net","note":"é"}',
  result: { cniVersion: "1.1.0" },
  ...changes,
});

const put = (name: string, text: string) => {
  mkdirSync(`${directory}/results`, { recursive: true });
  writeFileSync(`${directory}/results/${name}`, text);
};

test("the record is libcni's, byte for byte", () => {
  writeCache(directory, record());
  expect(readFileSync(`${directory}/results/net-ctr-eth0`, "utf8")).toBe(
    '{"kind":"cniCacheV1","containerId":"ctr","config":"eyJuYW1lIjoibmV0Iiwibm90ZSI6IsOpIn0=","ifName":"eth0",' +
      '"networkName":"net","netns":"/run/netns/x","cniArgs":[["K","V"],["IgnoreUnknown","1"]],' +
      '"capabilityArgs":{"portMappings":[{"hostPort":1}]},"result":{"cniVersion":"1.1.0"}}',
  );
});

test("empty members are left out", () => {
  writeCache(directory, record({ netnsPath: "", cniArgs: [], capabilityArgs: {}, result: undefined }));
  expect(Object.keys(JSON.parse(readFileSync(`${directory}/results/net-ctr-eth0`, "utf8"))))
    .toEqual(["kind", "containerId", "config", "ifName", "networkName"]);
});

test("only the owner can read it, and no other file is left", () => {
  writeCache(directory, record());
  writeCache(directory, record({ config: "{}" }));
  expect(statSync(`${directory}/results`).mode & 0o777).toBe(0o700);
  expect(statSync(`${directory}/results/net-ctr-eth0`).mode & 0o777).toBe(0o600);
  expect(readdirSync(directory)).toEqual(["results"]);
  expect(readdirSync(`${directory}/results`)).toEqual(["net-ctr-eth0"]);
});

test("what was written is read again", () => {
  writeCache(directory, record());
  expect(readCache(directory, record())).toEqual({ state: "present", record: record() });
  expect(listCache(directory)).toEqual([record()]);
});

test("a record without the optional members is read, as older libraries write it", () => {
  put(
    "net-ctr-eth0",
    '{"kind":"cniCacheV1","containerId":"ctr","config":"e30=","ifName":"eth0","networkName":"net"}',
  );
  const bare = { netnsPath: "", cniArgs: undefined, capabilityArgs: undefined, result: undefined, config: "{}" };
  expect(readCache(directory, record())).toEqual({ state: "present", record: record(bare) });
});

/** As cnitool of these versions wrote them, with plugins of 1.1.1; those between them write the same. */
const conf = (version: string, name: string) =>
  Buffer.from(`{"cniVersion":"${version}","name":"${name}","plugins":[{"type":"ptp"}]}`).toString("base64");
const head = (version: string, name: string, id: string) =>
  `{"kind":"cniCacheV1","containerId":"cnitool-${id}","config":"${
    conf(version, name)
  }","ifName":"eth0","networkName":"${name}",`;
const ofLinks =
  '"result":{"cniVersion":"0.4.0","dns":{},"interfaces":[{"mac":"32:78:81:d4:d5:94","name":"veth38da1c3e"},' +
  '{"mac":"06:09:19:82:6f:25","name":"eth0","sandbox":"/var/run/netns/c1"}],' +
  '"ips":[{"address":"10.1.0.2/24","gateway":"10.1.0.1","interface":1,"version":"4"}]}}';
const ofAddresses = '"result":{"cniVersion":"0.2.0","dns":{},"ip4":{"gateway":"10.2.0.1","ip":"10.2.0.2/24"}}}';
test.each([
  [
    "libcni 0.8.1 has it in the result",
    `${head("0.4.0", "net", "357cc6fe9c6932998a39")}${ofLinks}`,
    "/var/run/netns/c1",
  ],
  [
    "libcni 0.8.1 has none where the result names no links",
    `${head("0.2.0", "old", "68494c1f459c6475e488")}${ofAddresses}`,
    "",
  ],
  [
    "libcni 1.3.0 has it beside the result",
    `${head("0.2.0", "old", "68494c1f459c6475e488")}"netns":"/var/run/netns/c2",${ofAddresses}`,
    "/var/run/netns/c2",
  ],
])("the namespace's path: %s", (_, text, netnsPath) => {
  const { networkName, containerId } = JSON.parse(text);
  put(`${networkName}-${containerId}-eth0`, text);
  expect(listCache(directory)).toMatchObject([{ network: networkName, containerId, netnsPath }]);
});

test("the record of another attachment with the same file name is ignored, and not removed", () => {
  const one = record({ network: "a", containerId: "b-c" }), other = record({ network: "a-b", containerId: "c" });
  expect(recordFile(directory, one).path).toBe(recordFile(directory, other).path);
  writeCache(directory, one);
  expect(readCache(directory, other)).toEqual({ state: "foreign" });
  removeCache(directory, other);
  expect(readCache(directory, one).state).toBe("present");
  removeCache(directory, one);
  expect(readCache(directory, one)).toEqual({ state: "absent" });
});

test("torn files, empty files and bare results are returned as text, and can be removed", () => {
  for (const text of ["", '{"kind":"cniCacheV1","cont', '{"cniVersion":"0.4.0"}', "null", "[]"]) {
    put("net-ctr-eth0", text);
    expect(readCache(directory, record())).toEqual({ state: "legacy", text });
    expect(listCache(directory)).toEqual([]);
  }
  removeCache(directory, record());
  expect(readdirSync(`${directory}/results`)).toEqual([]);
});

test("what cannot be read is absent", () => {
  expect(readCache(directory, record())).toEqual({ state: "absent" });
  mkdirSync(`${directory}/results/net-ctr-eth0`, { recursive: true });
  expect(readCache(directory, record())).toEqual({ state: "absent" });
  removeCache(directory, record());
  expect(readCache(directory, record({ containerId: "x".repeat(300) }))).toEqual({ state: "absent" });
  expect(readCache(directory, record({ containerId: "" }))).toEqual({ state: "absent" });
});

test("a record needs all three parts of its name", () => {
  expect(() => writeCache(directory, record({ ifName: "" }))).toThrow(
    'cache file path requires network name ("net"), container ID ("ctr"), and interface name ("")',
  );
});

test("the list skips files that are not records, and is empty without a directory", () => {
  expect(listCache(directory)).toEqual([]);
  writeCache(directory, record({ containerId: "two" }));
  writeCache(directory, record({ containerId: "one" }));
  put("other", "x");
  put("kind", '{"kind":"cniCacheV2","containerId":"ctr","ifName":"eth0","networkName":"net"}');
  put("nameless", '{"kind":"cniCacheV1","containerId":"ctr","config":"","ifName":"","networkName":"net"}');
  expect(listCache(directory).map(({ containerId }) => containerId)).toEqual(["one", "two"]);
});

test("a list that cannot be read is an error", () => {
  writeFileSync(`${directory}/results`, "");
  expect(() => listCache(directory)).toThrow("cannot list cached attachments: open");
});
