/**
 * Version numbers: read, compared and listed; a version that a plugin does not support is refused as the
 * specification says.
 */
import { describe, expect, test } from "bun:test";
import {
  checkVersions,
  compareVersions,
  configVersion,
  CURRENT_VERSION,
  KNOWN_VERSIONS,
  parseVersion,
  resultFamily,
  versionsSince,
} from "../../src/cni/versions.ts";
import { refusal } from "../support/outcome.ts";

describe("parseVersion()", () => {
  const good: [string, number[]][] = [
    ["", [0, 1, 0]],
    ["1", [1, 0, 0]],
    ["0.4", [0, 4, 0]],
    ["1.1.0", [1, 1, 0]],
    ["+1.-2.03", [1, -2, 3]],
  ];
  for (const [text, numbers] of good) {
    test(`reads ${JSON.stringify(text)}`, () => expect([...parseVersion(text)]).toEqual(numbers));
  }

  const bad: [string, string][] = [
    ["1.2.3.4", 'invalid version "1.2.3.4": too many parts'],
    ["v1.0.0", 'failed to convert major version part "v1": not an integer'],
    ["1..0", 'failed to convert minor version part "": not an integer'],
    ["1.0.0-rc1", 'failed to convert micro version part "0-rc1": not an integer'],
  ];
  for (const [text, message] of bad) {
    test(`refuses ${text}`, () => expect(refusal(() => parseVersion(text))).toEqual([6, message]));
  }
});

test("known versions are listed in order, and the newest is the current one", () => {
  expect([...KNOWN_VERSIONS].sort(compareVersions)).toEqual([...KNOWN_VERSIONS]);
  expect(KNOWN_VERSIONS.at(-1)).toBe(CURRENT_VERSION);
  expect(compareVersions("1.1", "1.1.0")).toBe(0);
});

test("every known version has a family of results, and no other has", () => {
  expect(KNOWN_VERSIONS.map(resultFamily)).toEqual(["0.1", "0.1", "0.3", "0.3", "0.3", "1.0", "1.0"]);
  expect(["", "1.1", "2.0.0"].map(resultFamily)).toEqual(["0.1", undefined, undefined]);
});

test("versionsSince() starts with the version named", () => {
  expect(versionsSince("0.4.0")).toEqual(["0.4.0", "1.0.0", "1.1.0"]);
});

describe("checkVersions()", () => {
  const incompatible = (version: string, supported = KNOWN_VERSIONS) => [
    1,
    "incompatible CNI versions",
    `config is "${version}", plugin supports ["${supported.join('" "')}"]`,
  ];
  const gate = (message: string) => [1, message];
  const cases: [command: string, version: string, supported: readonly string[], refused: unknown][] = [
    ["ADD", "1.1.0", KNOWN_VERSIONS, undefined],
    ["ADD", "", KNOWN_VERSIONS, undefined],
    ["ADD", "0.3.1", versionsSince("0.4.0"), incompatible("0.3.1", versionsSince("0.4.0"))],
    ["ADD", "", versionsSince("0.4.0"), incompatible("0.1.0", versionsSince("0.4.0"))],
    ["ADD", "1.1", KNOWN_VERSIONS, incompatible("1.1")],
    ["ADD", "nonsense", KNOWN_VERSIONS, incompatible("nonsense")],
    ["DEL", "1.2.0", KNOWN_VERSIONS, incompatible("1.2.0")],
    ["CHECK", "0.4.0", KNOWN_VERSIONS, undefined],
    ["CHECK", "0.3.1", KNOWN_VERSIONS, gate("config version does not allow CHECK")],
    ["CHECK", "", KNOWN_VERSIONS, gate("config version does not allow CHECK")],
    ["GC", "1.1.0", KNOWN_VERSIONS, undefined],
    ["GC", "1.0.0", KNOWN_VERSIONS, gate("config version does not allow GC")],
    ["GC", "1.1", KNOWN_VERSIONS, incompatible("1.1")],
    ["STATUS", "1.0.0", KNOWN_VERSIONS, gate("config version does not allow STATUS")],
    ["CHECK", "1.2.0", KNOWN_VERSIONS, gate("plugin version does not allow CHECK")],
    ["GC", "1.2.0", KNOWN_VERSIONS, gate("plugin version does not allow GC")],
    ["STATUS", "1.2.0", KNOWN_VERSIONS, gate("plugin version does not allow STATUS")],
    ["STATUS", "x", KNOWN_VERSIONS, [6, 'failed to convert major version part "x": not an integer']],
  ];
  for (const [command, version, supported, refused] of cases) {
    test(`${command} with a configuration of version "${version}" ${refused ? "is refused" : "passes"}`, () => {
      const work = () => checkVersions(command, version, supported);
      if (refused === undefined) expect(work).not.toThrow();
      else expect(refusal(work) as unknown).toEqual(refused);
    });
  }
});

test("configVersion() finds the version as Go does", () => {
  expect(configVersion({ CNIVersion: "1.0.0", cniVersion: null })).toBe("1.0.0");
  expect(configVersion({})).toBe("");
  expect(refusal(() => configVersion({ cniVersion: 5 })))
    .toEqual([6, 'decoding version from network config: "cniVersion" must be a string, got 5']);
});
