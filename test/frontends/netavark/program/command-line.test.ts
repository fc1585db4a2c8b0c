/** netavark's arguments, environment and exit statuses, with the built program. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import packageJson from "../../../../package.json" with { type: "json" };
import { type Machine, openMachine, type RunOptions } from "../../../support/machine.ts";
import { creation } from "../../../support/netavark/creation.ts";
import { HELPERS, netavark, netavarkProgram } from "../../../support/netavark/netavark.ts";

let machine: Machine;
beforeAll(async () => void (machine = await openMachine()));
afterAll(() => machine[Symbol.asyncDispose]());

const call = (args: readonly string[], input?: unknown, options?: RunOptions) =>
  netavark(machine, args, input, options);

/** `update` changes the file of a network, which shows the options that it got. */
async function configWithNetwork(): Promise<string> {
  const directory = (await machine.sh("mktemp -d -p /run")).trim();
  await machine.sh(
    `mkdir ${directory}/aardvark-dns; printf '10.1.0.1\\nc1 10.1.0.2  cup\\n' >${directory}/aardvark-dns/n1`,
  );
  return directory;
}

const fileOf = (directory: string) => machine.sh(`cat ${directory}/aardvark-dns/n1`);

test("what it is", async () => {
  const line = `netavark 2.1.0+patchbay.${packageJson.version}\n`;
  expect(Bun.semver.satisfies(line.trim().split(" ").at(-1)!, ">=2.1.0 <2.1.1")).toBe(true);
  for (const args of [["--version"], ["-V"], ["--config", "/x", "--version"], ["-Vh"]]) {
    expect(await call(args)).toMatchObject({ code: 0, stdout: line, stderr: "" });
  }
  const { code, json, stdout } = await call(["version"]);
  expect(code).toBe(0);
  expect(json).toEqual({
    version: "2.1.0",
    commit: `patchbay ${packageJson.version}`,
    build_time: expect.stringMatching(/^20\d\d-\d\d-\d\dT[\d:.]+Z$/),
    target: expect.stringMatching(/^(x86_64|aarch64)-unknown-linux-gnu$/),
    default_fw_driver: "nftables",
  });
  expect(stdout.split("\n")[1]).toBe('  "version": "2.1.0",');
});

test("help is on stdout when it is asked for, and on stderr when nothing is", async () => {
  const { stdout: help } = await call(["--help"]);
  for (const word of ["create", "update", "version", "--plugin-directory", "-f, --file <FILE>"]) {
    expect(help).toContain(word);
  }
  for (const args of [["-h"], ["help"], ["--rootless", "true", "help"]]) {
    expect(await call(args)).toMatchObject({ code: 0, stdout: help, stderr: "" });
  }
  expect(await call([])).toMatchObject({ code: 2, stdout: "", stderr: help });
  expect(await call(["-f", "/x"])).toMatchObject({ code: 2, stdout: "", stderr: help });
  const { stdout: ofUpdate } = await call(["update", "--help"]);
  expect(ofUpdate).toContain("Usage: netavark update --network-dns-servers <NETWORK_DNS_SERVERS> <NETWORK_NAME>");
  expect((await call(["help", "update"])).stdout).toBe(ofUpdate);
  expect((await call(["update", "n1", "-h"])).stdout).toBe(ofUpdate);
});

const wrong: [args: readonly string[], text: string][] = [
  [["brew"], "unrecognized subcommand 'brew'"],
  [["Create"], "unrecognized subcommand 'Create'"],
  [["help", "brew"], "unrecognized subcommand 'brew'"],
  [["--brew", "create"], "unexpected argument '--brew' found"],
  [["-x"], "unexpected argument '-x' found"],
  [["--conf", "/x", "create"], "unexpected argument '--conf' found"],
  [["create", "--config", "/x"], "unexpected argument '--config' found"],
  [["create", "more"], "unexpected argument 'more' found"],
  [["update", "n1", "n2", "--network-dns-servers", ""], "unexpected argument 'n2' found"],
  [["--config"], "a value is required for '--config <CONFIG>' but none was supplied"],
  [["--config", "--rootless", "true", "create"], "a value is required for '--config <CONFIG>' but none was supplied"],
  [["--config=/a", "-c", "/b", "create"], "the argument '--config <CONFIG>' cannot be used multiple times"],
  [
    ["--rootless", "yes", "create"],
    "invalid value 'yes' for '--rootless <ROOTLESS>'\n  [possible values: true, false]",
  ],
  [["--rootless=", "create"], "invalid value '' for '--rootless <ROOTLESS>'"],
  [["-rTrue", "create"], "invalid value 'True' for '--rootless <ROOTLESS>'"],
  [["update"], "  --network-dns-servers <NETWORK_DNS_SERVERS>\n  <NETWORK_NAME>"],
  [["update", "n1"], "the following required arguments were not provided:\n  --network-dns-servers"],
  [["update", "--network-dns-servers", "1.1.1.1"], "  <NETWORK_NAME>"],
  [["update", "", "--network-dns-servers", "1.1.1.1"], "a value is required for '<NETWORK_NAME>'"],
];

test("wrong arguments are said on stderr, with exit status 2", async () => {
  for (const [args, text] of wrong) {
    const { code, stdout, stderr } = await call(args, creation());
    expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: "" });
    expect(stderr).toStartWith("error: ");
    expect(stderr).toContain(text);
  }
});

test("every form of an option", async () => {
  const binary = `${HELPERS}/aardvark-dns`;
  const forms = (config: string, at: string) => [
    [`--config=${config}`, `--aardvark-binary=${at}`, "--rootless=true"],
    ["--config", config, "--aardvark-binary", at, "--rootless", "true"],
    [`-c${config}`, `-a${at}`, "-rtrue"],
    [`-c=${config}`, `-a=${at}`, "-r=true"],
    ["-a", at, "-r", "true", "-c", config, "--plugin-directory", "/a", "--plugin-directory=/b"],
  ];
  for (const index of [0, 1, 2, 3, 4]) {
    const config = await configWithNetwork();
    const answer = await call(
      [...forms(config, binary)[index]!, "update", "n1", "--network-dns-servers=9.9.9.9"],
      "null\n",
    );
    expect(answer).toMatchObject({ code: 0, stdout: "", stderr: "" });
    expect(await fileOf(config)).toBe("10.1.0.1 9.9.9.9\nc1 10.1.0.2  cup\n");
  }
});

test("an option that may be given several times counts each time", async () => {
  const config = await configWithNetwork(), servers = ["9.9.9.9,9.9.9.10", "1.1.1.1"];
  const args = servers.flatMap((each) => ["--network-dns-servers", each]);
  const answer = await call(["-c", config, "-a", `${HELPERS}/aardvark-dns`, "-rtrue", "update", "n1", ...args]);
  expect(answer).toMatchObject({ code: 0, stdout: "", stderr: "" });
  expect(await fileOf(config)).toBe("10.1.0.1 9.9.9.9,9.9.9.10,1.1.1.1\nc1 10.1.0.2  cup\n");
});

test("a path without aardvark-dns, or none, changes nothing", async () => {
  const config = await configWithNetwork();
  for (const binary of ["--aardvark-binary=", "-a/none"]) {
    const args = [binary, "-c", config, "update", "n1", "--network-dns-servers", "9.9.9.9"];
    expect(await call(args)).toMatchObject({ code: 0, stdout: "", stderr: "" });
  }
  expect(await fileOf(config)).toBe("10.1.0.1\nc1 10.1.0.2  cup\n");
});

test("failures are one line of JSON with one key, and exit status 1", async () => {
  const config = await configWithNetwork(), update = ["update", "n1", "--network-dns-servers", "9.9.9.9"];
  const ready = ["-c", config, "-rtrue", "-a", `${HELPERS}/aardvark-dns`];
  const failing: [args: string[], env: Record<string, string>, error: string][] = [
    [update, {}, "--config not specified but required for netavark update"],
    [
      [...ready, ...update],
      { NETAVARK_DNS_PORT: "70000" },
      "Invalid NETAVARK_DNS_PORT 70000: number too large to fit in target type",
    ],
    [
      [...ready, ...update],
      { NETAVARK_DNS_PORT: "" },
      "Invalid NETAVARK_DNS_PORT : cannot parse integer from empty string",
    ],
    [
      [...ready, "update", "n1", "--network-dns-servers", "9.9.9.9,nine"],
      {},
      'unable to modify network dns servers: "network-dns-servers[1]": invalid IP address syntax: "nine"',
    ],
    [
      [...ready, "update", "n1", "--network-dns-servers", "10.1.0.1"],
      {},
      'unable to modify network dns servers: network DNS server 10.1.0.1 matches the gateway of network "n1"; using it ' +
      "would cause aardvark-dns to forward queries to itself.",
    ],
    [
      [...ready, "update", "../n1", "--network-dns-servers", "9.9.9.9"],
      {},
      'unable to modify network dns servers: network name "../n1" cannot be the name of a file for aardvark-dns',
    ],
    [
      ["-f", "/run/none", "create"],
      {},
      "failed to load network create: IO error: No such file or directory (os error 2)",
    ],
  ];
  for (const [args, env, error] of failing) {
    expect(await call(args, undefined, { env })).toMatchObject({
      code: 1,
      stdout: `${JSON.stringify({ error })}\n`,
      stderr: "",
    });
  }
  expect(await fileOf(config)).toBe("10.1.0.1\nc1 10.1.0.2  cup\n");
});

test("a directory that is not UTF-8 is fine where it is not used, and refused where it is", async () => {
  const shell = (rest: string) =>
    machine.run(["sh", "-c", `exec ${netavarkProgram()} --config "$(printf '/run/odd-\\377')" ${rest}`]);
  expect(JSON.parse((await shell("version")).stdout).version).toBe("2.1.0");
  const { code, stdout } = await shell("update n1 --network-dns-servers ''");
  expect([code, JSON.parse(stdout).error]).toEqual([1, expect.stringContaining("is not UTF-8")]);
  expect(await machine.sh("ls /run")).not.toContain("odd-");
});

test("an answer that cannot be written is said on stderr", async () => {
  await machine.sh("cat >/run/asked.json", { stdin: JSON.stringify(creation()) });
  for (const args of ["version", "--help", "-f /run/asked.json create"]) {
    const { code, stderr } = await machine.run(["sh", "-c", `${netavarkProgram()} ${args} >/dev/full`]);
    expect({ args, code }).toEqual({ args, code: 1 });
    expect(stderr).toMatch(/^[^\n]*no space left on device[^\n]*\n$/i);
  }
});
