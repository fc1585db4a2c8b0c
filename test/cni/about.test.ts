/** What a plugin prints when called without CNI_COMMAND, and its answer to VERSION. */
import { expect, test } from "bun:test";
import { aboutText, versionDocument } from "../../src/cni/about.ts";
import { KNOWN_VERSIONS, versionsSince } from "../../src/cni/versions.ts";

test("the bare run names the plugin, a semantic version no older than what nerdctl asks of firewall, and versions", () => {
  const [first, second, ...rest] = aboutText("firewall", "0.1.0", versionsSince("1.0.0")).split("\n");
  const version = /^CNI firewall plugin v(\d+)\.(\d+)\.(\d+)\+[0-9A-Za-z.-]+$/.exec(first!)!.slice(1).map(Number);
  expect(version[0]! > 1 || version[1]! > 7 || (version[1] === 7 && version[2]! >= 1)).toBe(true);
  expect(second).toBe("CNI protocol versions supported: 1.0.0, 1.1.0");
  expect(rest).toEqual([""]);
});

test("VERSION answers one line", () => {
  expect(versionDocument(KNOWN_VERSIONS)).toBe(
    '{"cniVersion":"1.1.0","supportedVersions":["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}\n',
  );
});
