/** Whether the host's iptables writes nftables or the older tables, by how distributions install it. */
import { afterAll, expect, test } from "bun:test";
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endCall } from "../../../src/process/calls.ts";
import { findInPath } from "../../../src/ffi/find-in-path.ts";
import { whyNoTools } from "../../../src/interop/iptables/legacy-table.ts";
import { hostIptables, isLegacyHost, tablesForm } from "../../../src/interop/iptables/which-iptables.ts";
import { chooseNatBackend } from "../../../src/resources/packets/shared/nat-backend.ts";

const root = mkdtempSync(join(tmpdir(), "patchbay-xtables-"));
afterAll(() => rmSync(root, { recursive: true }));

/** A directory as a distribution lays it out. */
function directory(name: string, programs: string[], links: Record<string, string> = {}): string {
  const path = join(root, name);
  mkdirSync(path);
  for (const program of programs) writeFileSync(join(path, program), "", { mode: 0o755 });
  for (const [link, target] of Object.entries(links)) symlinkSync(target, join(path, link));
  return path;
}

function withPath<T>(path: string | undefined, work: () => T): T {
  const before = process.env.PATH;
  if (path === undefined) delete process.env.PATH;
  else process.env.PATH = path;
  try {
    return work();
  } finally {
    process.env.PATH = before;
    endCall();
  }
}

const both = ["xtables-nft-multi", "xtables-legacy-multi"];
const layouts: Record<string, { path: string; form: "nft" | "legacy" }> = {
  "Debian, nft": {
    path: directory("debian", both, {
      "iptables": "alternatives",
      "alternatives": "iptables-nft",
      "iptables-nft": "xtables-nft-multi",
    }),
    form: "nft",
  },
  "Debian, legacy": {
    path: directory("debian-legacy", both, { "iptables": "alternatives", "alternatives": "xtables-legacy-multi" }),
    form: "legacy",
  },
  "Alpine, nft alone": {
    path: directory("alpine", ["xtables-nft-multi"], { "iptables": "xtables-nft-multi" }),
    form: "nft",
  },
  "before 1.8": { path: directory("old", ["xtables-multi"], { "iptables": "xtables-multi" }), form: "legacy" },
  // Nothing of this process's namespace says otherwise.
  "a wrapper script": { path: directory("wrapper", [...both, "iptables"]), form: "nft" },
};

for (const [name, { path, form }] of Object.entries(layouts)) {
  test(`${name}: iptables writes ${form} tables`, () => {
    expect(withPath(`${root}/nonesuch::${path}`, () => findInPath("iptables"))).toBe(`${path}/iptables`);
    expect(tablesForm(`${path}/iptables`)).toBe(form);
  });
}

test("a hard link is the program it links to", () => {
  const path = directory("hard", both);
  linkSync(join(path, "xtables-legacy-multi"), join(path, "iptables"));
  expect(tablesForm(join(path, "iptables"))).toBe("legacy");
});

test("the backend is what is configured, else iptables where there is one", () => {
  const { path } = layouts["Debian, nft"]!;
  expect(withPath(path, () => chooseNatBackend("nftables")).backend).toBe("nftables");
  expect(withPath("", () => chooseNatBackend("iptables")).backend).toBe("iptables");
  expect(withPath(path, () => chooseNatBackend(""))).toEqual({
    backend: "iptables",
    why: `found ${path}/iptables`,
  });
  expect(withPath(undefined, () => chooseNatBackend())).toEqual({
    backend: "nftables",
    why: "no iptables in PATH",
  });
});

test("what is found counts for the whole call, and for no other", () => {
  const { "Debian, nft": nft, "before 1.8": legacy } = layouts, path = `${root}/changing`;
  const asked = () => [hostIptables(), isLegacyHost()];
  symlinkSync(nft!.path, path);
  withPath(path, () => {
    expect(asked()).toEqual([`${path}/iptables`, false]);
    rmSync(path);
    symlinkSync(legacy!.path, path);
    expect(asked()).toEqual([`${path}/iptables`, false]);
    endCall();
    expect(asked()).toEqual([`${path}/iptables`, true]);
  });
  expect(withPath(legacy!.path, asked)).toEqual([`${legacy!.path}/iptables`, true]);
});

test("the older tables need iptables-save and iptables-restore, of the older form where both are there", () => {
  const half = directory("half", ["iptables-save"]), older = directory("older", ["iptables-legacy-restore"]);
  const of6 = directory("of6", ["ip6tables-save", "ip6tables-restore"]);
  const why = (path: string, family: 4 | 6) => withPath(path, () => whyNoTools(family));
  expect(why(half, 4)).toBe("iptables-restore is not in PATH, and the tables are iptables-legacy's");
  expect(why(older, 4)).toBe("iptables-save is not in PATH, and the tables are iptables-legacy's");
  expect([why(`${half}:${older}`, 4), why(of6, 6), why(of6, 4) === undefined]).toEqual([undefined, undefined, false]);
});
