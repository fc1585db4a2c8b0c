/** Arguments are accepted in every usual form, and unknown ones are refused by name. */
import { expect, test } from "bun:test";
import { describeOptions, parseArguments } from "../../../src/frontends/cli/command.ts";
import { runtimeOf, runtimeOptions } from "../../../src/frontends/cli/network-arguments.ts";

const options = {
  ifname: { short: "i", value: "NAME", help: "its name" },
  dir: { value: "DIR", help: "where" },
  force: { short: "f", help: "anyway" },
};

const forms: [args: string[], operands: string[], ifname?: string][] = [
  [["a", "b"], ["a", "b"], undefined],
  [["a", "-i", "x", "b"], ["a", "b"], "x"],
  [["-ix", "a"], ["a"], "x"],
  [["-i=x", "a"], ["a"], "x"],
  [["--ifname", "x", "a"], ["a"], "x"],
  [["--ifname=x", "a"], ["a"], "x"],
  [["--ifname=", "a"], ["a"], ""],
  [["--ifname=a=b"], [], "a=b"],
  [["--ifname", "--dir"], [], "--dir"],
  [["-i", "x", "-i", "y"], [], "y"],
  [["a", "--", "-i", "--"], ["a", "-i", "--"], undefined],
  [["-"], ["-"], undefined],
  [["--ifname=x\ny"], [], "x\ny"],
];

for (const [args, operands, ifname] of forms) {
  test(JSON.stringify(args), () => {
    const given = parseArguments(args, options);
    expect(given.operands).toEqual(operands);
    expect(given.value("ifname")).toBe(ifname);
    expect(given.has("ifname")).toBe(ifname !== undefined);
  });
}

test("an option whose value need not be given takes only an attached one", () => {
  const maybe = { podman: { value: "DIR", otherwise: "/usual", help: "where" } };
  for (const [arg, value] of [["--podman", "/usual"], ["--podman=/other", "/other"], ["--podman=", ""]] as const) {
    const given = parseArguments([arg, "a"], maybe);
    expect({ operands: given.operands, value: given.value("podman") }).toEqual({ operands: ["a"], value });
  }
  expect(parseArguments(["a"], maybe).has("podman")).toBe(false);
  expect(describeOptions(maybe)).toContain("--podman[=DIR]");
});

test("an option given several times has all its values", () => {
  expect(parseArguments(["--dir", "a", "--dir=b"], options).values("dir")).toEqual(["a", "b"]);
  expect(parseArguments([], options).values("dir")).toEqual([]);
});

test("an option without a value is there or not", () => {
  expect(parseArguments(["-f", "x"], options)).toMatchObject({ operands: ["x"] });
  expect(parseArguments(["-f"], options).has("force")).toBe(true);
  expect(parseArguments([], options).has("force")).toBe(false);
});

const refused: [args: string[], message: string][] = [
  [["--nope"], "unknown option --nope"],
  [["--nope=x"], "unknown option --nope=x"],
  [["-x"], "unknown option -x"],
  [["--constructor"], "unknown option --constructor"],
  [["--i"], "unknown option --i"],
  [["--=x"], "unknown option --=x"],
  [["-i"], "option --ifname needs a value: NAME"],
  [["--dir"], "option --dir needs a value: DIR"],
  [["--force=yes"], "option --force takes no value"],
  [["-fi"], "option --force takes no value"],
];

for (const [args, message] of refused) {
  test(`${JSON.stringify(args)}: ${message}`, () => expect(() => parseArguments(args, options)).toThrow(message));
}

test("options are described in two columns", () => {
  expect(describeOptions(options)).toBe(
    "  -i, --ifname NAME  its name\n" +
      "      --dir DIR      where\n" +
      "  -f, --force        anyway\n",
  );
});

test("a relative directory of cached results is one of the working directory", () => {
  const cacheOf = (...args: string[]) => runtimeOf(parseArguments(args, runtimeOptions)).cacheDirectory;
  expect(["cache", "./cache", "none/../cache"].map((path) => cacheOf("--cache-dir", path)))
    .toEqual(Array(3).fill(`${process.cwd()}/cache`));
  expect([cacheOf("--cache-dir=/cache"), cacheOf()]).toEqual(["/cache", "/var/lib/cni"]);
});
