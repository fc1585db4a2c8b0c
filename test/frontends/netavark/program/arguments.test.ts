/** netavark's argument grammar, and the help texts that follow from its rules. */
import { expect, test } from "bun:test";
import {
  type OptionRule,
  parseOptions,
  RefusedArguments,
} from "../../../../src/frontends/netavark/program/arguments.ts";
import { globalOptionsOf, requireConfig } from "../../../../src/frontends/netavark/program/call.ts";
import { commands } from "../../../../src/frontends/netavark/program/commands.ts";
import { commandHelp, programHelp, usage } from "../../../../src/frontends/netavark/program/help.ts";

const rules: readonly OptionRule[] = [
  { long: "config", short: "c", value: "CONFIG", what: "Where state is" },
  { long: "config-more", value: "MORE", what: "Begins like the other" },
  { long: "rootless", short: "r", value: "ROOTLESS", choices: ["true", "false"], what: "Whether it is rootless" },
  { long: "server", short: "s", value: "SERVER", repeats: true, what: "May be given again" },
  { long: "port", short: "p", value: "PORT", most: 7, what: "A number" },
];
const parse = (line: string, how?: Parameters<typeof parseOptions>[2]) => {
  const { values, rest, wantsHelp, wantsVersion } = parseOptions(line === "" ? [] : line.split(" "), rules, how);
  return {
    values: Object.fromEntries(values),
    rest,
    ...wantsHelp && { wantsHelp },
    ...wantsVersion && { wantsVersion },
  };
};

test("options before the first word that is none", () => {
  expect(parse("")).toEqual({ values: {}, rest: [] });
  const all = { config: ["/x"], rootless: ["true"] };
  for (
    const line of [
      "--config /x --rootless true",
      "--config=/x --rootless=true",
      "-c /x -r true",
      "-c/x -rtrue",
      "-c=/x -r=true",
    ]
  ) {
    expect(parse(`${line} setup -x more`)).toEqual({ values: all, rest: ["setup", "-x", "more"] });
    expect(parse(line)).toEqual({ values: all, rest: [] });
  }
  expect(parse("--config-more=1 --config=2 go")).toEqual({
    values: { "config-more": ["1"], config: ["2"] },
    rest: ["go"],
  });
  expect(parse("--config= go")).toEqual({ values: { config: [""] }, rest: ["go"] });
  expect(parse("-c - go")).toEqual({ values: { config: ["-"] }, rest: ["go"] });
  expect(parse("- go")).toEqual({ values: {}, rest: ["-", "go"] });
  expect(parse("-s 1 --server=2 -s3 -p 7")).toEqual({ values: { server: ["1", "2", "3"], port: ["7"] }, rest: [] });
});

test("options among words", () => {
  const among = { amongWords: true };
  expect(parse("one -c /x two - three", among)).toEqual({
    values: { config: ["/x"] },
    rest: ["one", "two", "-", "three"],
  });
  expect(parse("one -- -c /x", among)).toEqual({ values: {}, rest: ["one", "-c", "/x"] });
});

test("help and version end the reading", () => {
  const version = { knowsVersion: true };
  for (const word of ["-h", "--help", "-hx"]) {
    expect(parse(`-c /x ${word} --nonsense`)).toMatchObject({ wantsHelp: true, values: { config: ["/x"] } });
  }
  for (const word of ["-V", "--version"]) {
    const { wantsHelp, wantsVersion } = parseOptions([word, "--help"], rules, version);
    expect([wantsHelp, wantsVersion]).toEqual([false, true]);
    expect(() => parse(word)).toThrow(`unexpected argument '${word}' found`);
  }
});

const refused: [line: string, message: string][] = [
  ["-x", "unexpected argument '-x' found"],
  ["--", "unexpected argument '--' found"],
  ["--conf /x", "unexpected argument '--conf' found"],
  ["--config", "a value is required for '--config <CONFIG>' but none was supplied"],
  ["-c --rootless", "a value is required for '--config <CONFIG>' but none was supplied"],
  ["-c 1 --config=2", "the argument '--config <CONFIG>' cannot be used multiple times"],
  ["-r yes", "invalid value 'yes' for '--rootless <ROOTLESS>'\n  [possible values: true, false]"],
  ["-p 8", "invalid value '8' for '--port <PORT>': number too large to fit in target type"],
  ["-p=-1", "invalid value '-1' for '--port <PORT>': invalid digit found in string"],
];
test.each(refused)("%s is refused: %s", (line, message) => {
  expect(() => parse(line)).toThrow(new RefusedArguments(message));
});

test("the seconds of dhcp-proxy fit in 32 bits", () => {
  const { options } = commands["dhcp-proxy"]!, most = 4294967295;
  for (const name of ["timeout", "activity-timeout"]) {
    for (const value of [0, most]) {
      expect(parseOptions([`--${name}=${value}`], options!).values.get(name)).toEqual([`${value}`]);
    }
    expect(() => parseOptions([`--${name}=${most + 1}`], options!)).toThrow("number too large");
  }
});

test("what is not said", () => {
  const { pluginDirectories, ...options } = globalOptionsOf(parseOptions([], rules));
  expect(options).toMatchObject({
    configDirectory: "/run/containers/networks",
    isRootless: false,
    aardvarkBinary: "/usr/libexec/podman/aardvark-dns",
  });
  expect(pluginDirectories).toContain("/usr/libexec/netavark");
  const rootless = (value: string) => globalOptionsOf(parseOptions(["-r", value], rules)).isRootless;
  expect([rootless("true"), rootless("false")]).toEqual([true, false]);
  expect(() => requireConfig(parseOptions([], rules), "setup")).toThrow(
    "--config not specified but required for netavark setup",
  );
  requireConfig(parseOptions(["-c", ""], rules), "setup");
});

test("what the environment says counts where no option does", () => {
  const before = { ...process.env };
  const of = (env: Record<string, string>, args: string[] = []) => {
    Object.assign(process.env, env);
    return globalOptionsOf(parseOptions(args, [{ long: "firewall-driver", value: "DRIVER", what: "" }]));
  };
  try {
    delete process.env["NETAVARK_DNS_PORT"];
    expect(of({}).dnsPort).toBe(53);
    for (const port of [0, 1553, 65535]) expect(of({ NETAVARK_DNS_PORT: `${port}` }).dnsPort).toBe(port);
    expect(() => of({ NETAVARK_DNS_PORT: "65536" }).dnsPort).toThrow(
      "Invalid NETAVARK_DNS_PORT 65536: number too large",
    );
    expect(of({ NETAVARK_FW: "none" }).firewallDriver).toBe("none");
    expect(of({ NETAVARK_FW: "none" }, ["--firewall-driver", "nftables"]).firewallDriver).toBe("nftables");
    expect(of({ NETAVARK_FW: "" }).firewallDriver).toBeUndefined();
  } finally {
    for (const name of ["NETAVARK_DNS_PORT", "NETAVARK_FW"]) delete process.env[name];
    Object.assign(process.env, before);
  }
});

test("which subcommands need --config, and what they take", () => {
  const named = Object.entries(commands);
  expect(named.filter(([, { needsConfig }]) => needsConfig).map(([name]) => name)).toEqual([
    "setup",
    "teardown",
    "update",
  ]);
  expect(commands["update"]!.options![0]!.repeats).toBe(true);
  expect(named.map(([name, command]) => usage(name, command))).toEqual([
    "Usage: netavark create",
    "Usage: netavark dhcp-proxy",
    "Usage: netavark firewall-reload",
    "Usage: netavark firewalld-reload",
    "Usage: netavark setup <NETWORK_NAMESPACE_PATH>",
    "Usage: netavark teardown <NETWORK_NAMESPACE_PATH>",
    "Usage: netavark update --network-dns-servers <NETWORK_DNS_SERVERS> <NETWORK_NAME>",
    "Usage: netavark version",
  ]);
});

test("help is in columns", () => {
  expect(programHelp(rules.slice(0, 2)).split("\n")).toEqual([
    "Usage: netavark [OPTIONS] <COMMAND>",
    "",
    "Commands:",
    ...Object.entries(commands).map(([name, { what }]) => `  ${name.padEnd(16)}  ${what}`),
    "  help              Prints this, or the help of a command",
    "",
    "Options:",
    "  -c, --config <CONFIG>     Where state is",
    "      --config-more <MORE>  Begins like the other",
    "  -h, --help                Prints help",
    "  -V, --version             Prints the version",
    "",
  ]);
  expect(
    commandHelp("brew", {
      what: "Makes tea",
      operand: "POT",
      options: [{ ...rules[3]!, isRequired: true }, ...rules.slice(4)],
      run: () => 0,
    }),
  ).toBe(`Makes tea

Usage: netavark brew --server <SERVER> <POT>

Options:
  -s, --server <SERVER>  May be given again
  -p, --port <PORT>      A number
  -h, --help             Prints help
`);
  expect(commandHelp("rest", { what: "Does nothing", run: () => 0 })).toBe(`Does nothing

Usage: netavark rest

Options:
  -h, --help  Prints help
`);
});
