/** The flags of `dhcp daemon`: the reference plugin's names, in Go's syntax. */
import { expect, test } from "bun:test";
import { parseFlags, pausesOf, WrongFlags } from "../../../../src/services/dhcp/service/flags.ts";

test("no flags: the reference plugin's paths, and our own pace", () => {
  expect(parseFlags([])).toEqual({
    socketPath: "/run/cni/dhcp.sock",
    hostPrefix: "",
    pidFile: "",
    directory: "/var/lib/cni/dhcp",
    broadcast: false,
    timeout: undefined,
    longestPause: undefined,
    patience: undefined,
    idleAfter: undefined,
  });
});

test.each([
  [["-socketpath", "/a b"]],
  [["-socketpath=/a b"]],
  [["--socketpath", "/a b"]],
  [["--socketpath=/a b"]],
  [["-socketpath=/x", "-socketpath=/a b"]],
])("%j", (args) => {
  expect(parseFlags(args).socketPath).toBe("/a b");
});

test("a relative directory of the leases is one of the working directory, wherever the service is later", () => {
  for (const given of ["leases", "./leases", "none/../leases/"]) {
    expect(parseFlags(["-datadir", given]).directory).toBe(`${process.cwd()}/leases`);
    expect(() => parseFlags(["-datadir="])).toThrow('invalid value "" for flag -datadir: a directory expected');
  }
});

test("a prefix of the host is before the socket's path, and nothing else of ours", () => {
  const flags = parseFlags(["-hostprefix", "/host", "-pidfile", "/run/x=y.pid", "-datadir=/leases"]);
  expect(flags).toMatchObject({
    socketPath: "/host/run/cni/dhcp.sock",
    hostPrefix: "/host",
    pidFile: "/run/x=y.pid",
    directory: "/leases",
  });
});

test.each([
  ["1m30s", 90],
  ["500ms", 0.5],
  ["2h", 7200],
  ["1.5s", 1.5],
  ["1h2m3s4ms", 3723.004],
  ["250us", 0.00025],
  ["250µs", 0.00025],
  ["8ns", 8e-9],
])("the duration %s", (text, seconds) => {
  const flags = parseFlags(["-timeout", text, `-resendmax=${text}`, "--resendtimeout", text]);
  for (const found of [flags.timeout, flags.longestPause, flags.patience]) expect(found).toBeCloseTo(seconds, 12);
});

test.each([["", true], ["=true", true], ["=1", true], ["=T", true], ["=false", false], ["=0", false], ["=F", false]])(
  "-broadcast%s",
  (suffix, expected) => {
    expect(parseFlags([`-broadcast${suffix}`, "-datadir", "/x"])).toMatchObject({
      broadcast: expected,
      directory: "/x",
    });
  },
);

test.each([
  [["-nothing"], "flag provided but not defined: -nothing"],
  [["-constructor=1"], "flag provided but not defined: -constructor=1"],
  [["daemon"], "flag provided but not defined: daemon"],
  [["-socketpath"], "flag needs an argument: -socketpath"],
  [["-timeout", "5"], `invalid value "5" for flag -timeout`],
  [["-timeout", ""], `invalid value "" for flag -timeout`],
  [["-timeout", "-1s"], `invalid value "-1s" for flag -timeout`],
  [["-timeout", "0s"], `invalid value "0s" for flag -timeout`],
  [["-resendmax", "1s2"], `invalid value "1s2" for flag -resendmax`],
  [["-broadcast=maybe"], `invalid boolean value "maybe" for -broadcast`],
  [["-h"], "Usage of daemon:"],
  [["-help"], "Usage of daemon:"],
])("%j is refused, with the flags that there are", (args, text) => {
  expect(() => parseFlags(args)).toThrow(WrongFlags);
  expect(() => parseFlags(args)).toThrow(text);
  expect(() => parseFlags(args)).toThrow("Usage of daemon:\n  -broadcast\n");
});

test.each([
  [undefined, undefined, undefined],
  [0.25, undefined, [0.25, 0.5, 1, 2, 4]],
  [undefined, 5, [1, 2, 4, 5, 5]],
  [3, 20, [3, 6, 12, 20, 20]],
])("a first wait of %p and a longest one of %p make the pauses %p", (timeout, longestPause, pauses) => {
  expect(pausesOf({ timeout, longestPause })).toEqual(pauses as never);
});
