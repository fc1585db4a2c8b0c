/** The identity of a DHCP client, and what of it the configuration decides. */
import { expect, test } from "bun:test";
import {
  clientIdOf,
  type Provided,
  providedOptions,
  wantedOptions,
} from "../../../../src/services/dhcp/v4/lease/identity.ts";

const text = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes);

test("the client id is the reference plugin's, cut to what an option holds", () => {
  expect(text(clientIdOf("c1", "net", "eth0"))).toBe("\0c1/net/eth0");
  expect(clientIdOf("c".repeat(300), "net", "eth0").length).toBe(255);
});

test("what is asked for: the configured ones first, each once, and the usual ones unless they are skipped", () => {
  expect(wantedOptions([]).slice(0, 4)).toEqual([1, 121, 3, 33]);
  expect(wantedOptions([{ option: "42" }, { option: "routers" }]).slice(0, 4)).toEqual([42, 3, 1, 121]);
  expect(wantedOptions([{ option: "42", skipDefault: true }, { option: "" }])).toEqual([42]);
  expect(wantedOptions([{ skipDefault: true }])).toEqual(wantedOptions([]));
});

test("what is provided: values, arguments that win over them, and nothing for empty ones", () => {
  const provided = providedOptions([
    { option: "host-name", value: "one" },
    { option: "12", value: "two" },
    { option: "user-class", value: "plain", fromArg: "CLASS" },
    { option: "vendor-class-identifier", value: "kept", fromArg: "ABSENT" },
    { option: "224", fromArg: "ABSENT" },
  ], { CLASS: "argument" });
  expect([...provided].map(([number, value]) => [number, text(value)])).toEqual([
    [12, "two"],
    [77, "argument"],
    [60, "kept"],
  ]);
});

test.each<[Provided, string]>([
  [{ option: "hostname", value: "a" }, 'Can not parse option "hostname"'],
  [{ option: "256", value: "a" }, 'Can not parse option "256"'],
  [{ option: "-1", value: "a" }, 'Can not parse option "-1"'],
  [{ value: "a" }, 'Can not parse option ""'],
  [{ option: "53", value: "a" }, 'option "53" cannot be provided'],
  [{ option: "82", value: "a" }, 'option "82" cannot be provided'],
  [{ option: "12", value: "a".repeat(256) }, 'value too long for option "12"'],
  [{ option: "12", fromArg: "LONG" }, 'value too long for option "12" from CNI_ARGS "LONG"'],
])("provide %j is refused", (one, problem) => {
  expect(() => providedOptions([one], { LONG: "a".repeat(256) })).toThrow(`ipam.provide: ${problem}`);
  if (one.option === "hostname") expect(() => wantedOptions([one])).toThrow("ipam.request: Can not parse");
});

test("the last number, the shortest value and the longest one are accepted", () => {
  expect(wantedOptions([{ option: "255", skipDefault: true }, { option: "0" }])).toEqual([255, 0]);
  const [shortest, longest] = ["a", "a".repeat(255)];
  const provided = providedOptions([{ option: "12", value: shortest }, { option: "77", value: longest }], {});
  expect([...provided.values()].map(text)).toEqual([shortest, longest]);
  expect([...providedOptions([{ option: "43", hex: "0a" }, { option: "60", hex: "" }], {})]).toEqual([
    [43, Uint8Array.of(10)],
  ]);
  expect(() => providedOptions([{ option: "43", hex: "0" }], {})).toThrow('ipam.provide: "0" is not valid');
});
