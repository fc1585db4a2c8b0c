/** What looks secret is not in a report, wherever it stands, and what explains a host is. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { redactedFile, redactedText, redactedValue, REMOVED } from "../../src/explain/report/redaction.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");
const KEYS = [
  "password",
  "dbPasswd",
  "DB_PASS",
  "creds",
  "PASSPHRASE",
  "clientSecret",
  "AUTH_TOKEN",
  "apiKey",
  "wpa-psk",
  "credentials",
  "Authorization",
  "privateValue",
  "session_cookie",
  "bearer",
  "pass_word",
  "to\u212aen",
];

test.each(KEYS)("a value under %s is removed at any depth, whatever it is", (key) => {
  for (const value of ["hunter2", 4711, { deep: "hunter2" }, ["hunter2", 4711], '{"x":"hunter2"}']) {
    const inner = { runtimeConfig: { list: [{ [key]: value, mtu: 1500 }] } };
    const json = JSON.stringify(inner);
    for (
      const document of [inner, { stdin: json }, { a: JSON.stringify({ stdin: json }) }, { config: base64(json) }]
    ) {
      const text = redactedFile("x.json", JSON.stringify(document));
      expect(text).not.toMatch(/hunter2|4711/);
      expect(text).toContain(REMOVED);
      expect(text).toContain("1500");
    }
  }
});

const PEM = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQ\nabc\n-----END EC PRIVATE KEY-----";
test.each<[string, unknown]>([
  ["CNI_ARGS", "IgnoreUnknown=1;TOKEN=hunter2, and more;K8S_POD_NAME=web"],
  ["CNI_ARGS with a value that begins with a semicolon", "TOKEN=;hunter2"],
  ["pairs", [["IgnoreUnknown", "1"], ["DB_PASSWORD", "hunter2"]]],
  ["arguments", ["--verbose", "--auth-token", "hunter2"]],
  ["arguments in a text", "run --auth-token hunter2 --verbose"],
  ["names and values", { env: [{ name: "DB_PASSWORD", value: "hunter2" }] }],
  ["an environment", ["PATH=/bin", "SECRET=hunter2"]],
  ["a URL", "postgres://admin:hunter2@db.example/x"],
  ["a URL with signs in its password", "http://admin:a/b?hunter2@proxy:3128/"],
  ["a header", "Authorization: Bearer hunter2"],
  ["a header's value alone", "Bearer hunter2"],
  ["prose", 'the password is "hunter2"'.replaceAll('"', "")],
  ["PEM", PEM.replaceAll("abc", "hunter2")],
  ["PEM that is cut", PEM.replaceAll("abc", "hunter2").slice(0, 45)],
  ["JSON in a text", `stdin was ${JSON.stringify(JSON.stringify({ password: "hunter2" }))}`],
  ["a torn document", '{"plugins":[{"auth":{\n"x":\n"hunter2"}'],
  ["a pair in a torn document", '{"cniArgs":[["DB_PASSWORD","hunter2"'],
  ["a name and a value in a torn document", '{"env":[{"name":"DB_PASSWORD","value":"hunter2"'],
  ["XML", "<password>hunter2</password>"],
  ["single quotes", "password = 'hunter2 hunter2'"],
  ["a key that says it", { "token=hunter2": 1 }],
])("%s", (_, value) => {
  expect(JSON.stringify(redactedValue(value))).not.toContain("hunter2");
  if (typeof value === "string") expect(redactedText(value)).not.toContain("hunter2");
});

test.each([
  ["hexadecimal digits", "9f86d081884c7d659a2feaa0c55ad015"],
  ["base64", "kX9vQ2+/zL4mN8pRt7wYb1cD3eF5gH6j=="],
  ["base64 that begins with a slash", "/X9vQ2+/zL4mN8pRt7wYb1cD3eF5gH6j"],
  ["base64 for URLs", "kX9vQ2-_zL4mN8pRt7wYb1cD3eF5gH6j"],
  ["a web token", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"],
])("%s under a key that says nothing", (_, secret) => {
  for (const [shown] of [[redactedText(`alias ${secret}, x`)], [JSON.stringify(redactedValue({ note: secret }))]]) {
    for (const part of secret.split(".")) expect(shown).not.toContain(part);
  }
});

const ID = "0123456789ab".padEnd(64, "c");
test("what explains a host stays", () => {
  const plain = {
    cniVersion: "1.1.0",
    name: "shop-network-of-the-second-floor-42",
    type: "bridge",
    isGateway: true,
    hasToken: false,
    passthru: "no",
    ipam: { ranges: [[{ subnet: "10.40.0.0/24" }, { subnet: "fd40:1234:5678:9abc:def0:1234:5678:9abc/128" }]] },
    mac: "06:ad:0a:14:c2:d1",
    containerId: ID,
    sandbox: "/var/run/netns/cni-2f3a8c1d-1b2c-4d5e-8f90-123456789abc",
    file: `shop-${ID}-eth0`,
    chain: "CNI-DN-6aeaa786fea478d0c35de",
    when: "2026-11-29T19:54:02.838Z",
    rule: 'ip saddr 10.40.0.2 jump CNI-6aeaa786fea478d0c35dee38 comment "name: shop"',
    cniArgs: "IgnoreUnknown=1;K8S_POD_NAME=web-7d9c8b6f5-abcde",
  };
  expect(redactedValue(plain, [ID])).toEqual(plain);
  expect(redactedText(`  ${plain.rule}\n${plain.sandbox}`)).toBe(`  ${plain.rule}\n${plain.sandbox}`);
});

test("documents in texts and in base64 are shown as documents", () => {
  const document = { name: "shop", plugins: [{ type: "bridge", password: "hunter2" }] };
  const expected = { name: "shop", plugins: [{ type: "bridge", password: REMOVED }] };
  expect(redactedValue({ stdin: JSON.stringify(document), config: base64(JSON.stringify(document)) }))
    .toEqual({ stdin: expected, config: expected });
});

describe("any document", () => {
  const secret = fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: 8, maxLength: 40 }).map((
    text,
  ) => `s3cr3t${text}`);
  const place = fc.constantFrom<((secret: string) => unknown)[]>(
    (one) => ({ password: one }),
    (one) => ({ apiKey: [one] }),
    (one) => `A=1;TOKEN=${one};B=2`,
    (one) => ["PSK", one],
    (one) => `https://user:${one}@host/`,
  );
  const wrap = fc.constantFrom<((value: unknown) => unknown)[]>(
    (value) => [value, 1],
    (value) => ({ args: value, mtu: 1500 }),
    (value) => ({ stdin: JSON.stringify({ value }) }),
    (value) => ({ config: base64(JSON.stringify([value])) }),
    (value) => JSON.stringify({ value }),
  );
  test("has none of its secrets afterwards, also decoded, and stays as it is the second time", () => {
    fc.assert(fc.property(secret, place, fc.array(wrap, { maxLength: 8 }), (one, at, wraps) => {
      const document = wraps.reduce<unknown>((value, wrap) => wrap(value), at(one));
      const once = redactedValue(document), text = JSON.stringify(once);
      expect(text).not.toContain("s3cr3t");
      const words = text.match(/[A-Za-z0-9+/=]{8,}/g) ?? [];
      for (const word of words) expect(Buffer.from(word, "base64").toString()).not.toContain("s3cr3t");
      expect(redactedValue(once)).toEqual(once);
    }));
  });

  test("stays a document, and nothing throws", () => {
    fc.assert(fc.property(fc.jsonValue({ maxDepth: 6 }), fc.string(), (value, text) => {
      JSON.parse(redactedFile("x.json", JSON.stringify(value)));
      redactedText(text);
      redactedFile("x.jsonl", `${JSON.stringify(value)}\n${text}`);
    }));
  });
});

test("what is long, deep or never closed takes no time", () => {
  const long = 300_000;
  for (const text of ["a", "token", "://", '"password":"', "-----BEGIN ", "--key ", "/", "a1B", "=", "password \\"]) {
    redactedText(text.repeat(long / text.length));
  }
  const nested = "[".repeat(5000) + "]".repeat(5000);
  expect(redactedFile("x.json", nested)).toContain("[");
  let stdin = '{"password":"hunter2"}';
  for (let at = 0; at < 12; at++) stdin = JSON.stringify({ stdin });
  expect(redactedFile("x.json", stdin)).not.toContain("hunter2");
});

test("a terminal obeys nothing", () => {
  for (const name of ["x.json", "x.jsonl", "x.txt"]) {
    expect(redactedFile(name, 'x\u001b[2J\u009b31m"\r')).toMatch(/^[ -~\n]*$/);
    expect(redactedFile(name, JSON.stringify({ alias: "x\u001b[2J\u009b31m" }))).toMatch(/^[ -~\n]*$/);
  }
});
