/** The commands on a cluster that people write by hand: they show it, and change nothing of it. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { runToEnd } from "../../support/run-to-end.ts";
import { ScratchFile } from "../../support/scratch-file.ts";

const LAN = {
  layout: "flat",
  ranges: [{ cidr: "10.0.0.0/24", gateway: "10.0.0.1", from: "10.0.0.16", to: "10.0.0.79", blockSize: 16 }],
  singles: ["10.0.0.200"],
};

const machine = await openMachine(), scratch = new ScratchFile();
afterAll(async () => {
  scratch[Symbol.dispose]();
  await machine[Symbol.asyncDispose]();
});

interface Files {
  pools?: Record<string, unknown>;
  nodes?: Record<string, unknown>;
}

let rosters = 0;

/** Returns a function that runs `patchbay WORDS` with these files. */
function roster({ pools = { lan: LAN }, nodes = { n1: { blocks: { lan: [0, "2-3"] } } } }: Files = {}) {
  const directory = `${scratch.directory}/${++rosters}`, config = `${directory}/cluster.json`;
  for (const [folder, files] of [["pools.d", pools], ["nodes.d", nodes]] as const) {
    mkdirSync(`${directory}/${folder}`, { recursive: true });
    for (const [name, value] of Object.entries(files)) {
      const text = typeof value === "string" ? value : JSON.stringify(value);
      writeFileSync(`${directory}/${folder}/${name}.json`, text);
    }
  }
  writeFileSync(config, JSON.stringify({ node: "n1", store: { roster: { directory } } }));
  const ask = (words: string) => runToEnd([PATCHBAY, ...words.split(" "), "--config", config], { env: {} });
  return { directory, config, ask };
}

test("pool list, as text and as JSON", () => {
  const { ask, directory } = roster();
  expect(ask("pool list")).toEqual({
    code: 0,
    stdout: "pool  layout  state  addresses                           blocks  nodes\n" +
      "lan   flat    open   10.0.0.16-10.0.0.79 of 10.0.0.0/24  3 of 4  n1\n",
    stderr: "",
  });
  expect(JSON.parse(ask("pool list --json").stdout)).toEqual({
    store: `the files in ${directory}`,
    isWritable: false,
    pools: [{
      pool: "lan",
      layout: "flat",
      state: "open",
      ranges: [{
        subnet: "10.0.0.0/24",
        gateway: "10.0.0.1",
        first: "10.0.0.16",
        last: "10.0.0.79",
        blockSize: 16,
        exclude: [],
      }],
      routes: [],
      labels: {},
      spare: 1,
      mostBlocks: 1024,
      blocks: { total: 4, owned: 3 },
      singles: ["10.0.0.200"],
      nodes: ["n1"],
    }],
    problems: [],
  });
});

test("pool show: whose each block is", () => {
  const { ask } = roster({ nodes: { n1: { blocks: { lan: [0, "10.0.0.200"] } }, n2: { blocks: { lan: ["1-2"] } } } });
  expect(ask("pool show lan").stdout).toBe(
    "pool lan: flat, open\n" +
      "range 10.0.0.16-10.0.0.79 of 10.0.0.0/24, 16 addresses a block, gateway 10.0.0.1\n" +
      "each node claims 1 block ahead, and has 1024 at most\n" +
      "1 single address, of whoever asks\n" +
      "4 blocks: 3 owned, 1 free\n" +
      "blocks  addresses            node  state\n" +
      "0       10.0.0.16-10.0.0.31  n1    owned\n" +
      "1-2     10.0.0.32-10.0.0.63  n2    owned\n" +
      "3       10.0.0.64-10.0.0.79  -     free\n" +
      "single  10.0.0.200           n1    owned\n",
  );
  expect(JSON.parse(ask("pool show lan --json").stdout).runs[1]).toEqual({
    first: 1,
    last: 2,
    fate: "owned",
    node: "n2",
    generation: 1,
    addresses: ["10.0.0.32-10.0.0.63"],
  });
});

test("a pool or node that there is not", () => {
  const { ask } = roster();
  expect(ask("pool show lam")).toEqual({
    code: 1,
    stdout: "",
    stderr:
      "patchbay pool: there is no pool lam; did you mean \"lan\"?\n  'patchbay pool list' lists those that there are\n",
  });
  expect(ask("node check n2").stderr).toStartWith('patchbay node: there is no node n2; did you mean "n1"?\n');
  expect(ask("pool show LAN").stderr).toBe(
    'patchbay pool: "LAN" is no name of a pool: small letters, digits, dots and hyphens, 63 of them at most\n',
  );
});

test("what would change the files is refused, with the file to edit", () => {
  const { ask, directory } = roster();
  const refusal = (command: string, kind: string, name: string) =>
    `patchbay ${command}: ${kind} ${name} is not changed: the files in ${directory} are written by hand\n` +
    `  edit ${directory}/${kind}s.d/${name}.json on every host\n`;
  const refused: [string, string, string][] = [
    ["pool add wan --subnet 10.9.0.0/24 --block-size 8", "pool", "wan"],
    ["pool close lan", "pool", "lan"],
    ["node drain n1", "node", "n1"],
    ["node remove n1 --it-is-off", "node", "n1"],
    ["node replace n1 --it-is-off", "node", "n1"],
  ];
  for (const [words, kind, name] of refused) {
    expect({ words, ...ask(words) }).toEqual({
      words,
      code: 1,
      stdout: "",
      stderr: refusal(words.split(" ")[0]!, kind, name),
    });
  }
});

test("nothing of files that disagree is shown, and the file is named", () => {
  const { ask, directory } = roster({ nodes: { n1: { blocks: { lan: [0] } }, n2: { blocks: { lan: [0] } } } });
  for (const words of ["pool list", "pool show lan", "node list", "ipam show --all"]) {
    expect({ words, ...ask(words) }).toEqual({
      words,
      code: 1,
      stdout: "",
      stderr: `patchbay ${words.split(" ")[0]}: the files in ${directory}: nothing of ${directory} counts: ` +
        `${directory}/nodes.d/n2.json: block 0 of pool lan stands in ${directory}/nodes.d/n1.json, too\n`,
    });
  }
});

test("names that a terminal would obey are printed as JSON has them", () => {
  const { ask } = roster({ pools: { lan: LAN, wan: '{"layout":"\\u001b[31m"}' } });
  const { stderr } = ask("pool list");
  expect(stderr).toContain('"layout"');
  expect(stderr).not.toContain("\x1b");
});

test("node list, and ipam show --all", () => {
  const { ask, directory } = roster({ nodes: { n1: { blocks: { lan: [0] } }, n2: { blocks: { lan: ["1-2"] } } } });
  expect(ask("node list")).toEqual({
    code: 0,
    stdout: "node  state   generation  machine  boot  blocks\n" +
      "n1    joined  1           -        -     lan 1   this host\n" +
      "n2    joined  1           -        -     lan 2\n",
    stderr: "",
  });
  expect(ask("ipam show --all").stdout).toBe(
    `the files in ${directory}\n` +
      "pool  blocks  addresses            node  state\n" +
      "lan   0       10.0.0.16-10.0.0.31  n1    owned\n" +
      "lan   1-2     10.0.0.32-10.0.0.63  n2    owned\n",
  );
});

test("no pool, no node", () => {
  const { ask, directory } = roster({ pools: {}, nodes: {} });
  expect(ask("pool list").stdout).toBe(
    `no pool in the files in ${directory}; write pools.d/POOL.json, the same on every host\n`,
  );
  expect(ask("node list").stdout).toBe(
    `no node in the files in ${directory}; write nodes.d/NODE.json, the same on every host\n`,
  );
});

test("words that do not belong together", () => {
  const { ask } = roster();
  const wrong: [string, string][] = [
    ["pool", "list|show|add|close [POOL] [FILE] expected"],
    ["pool frob", "pool knows list, show, add and close, not frob"],
    ["pool show", "pool show needs the POOL's name"],
    ["pool list lan", '"lan" is one too many'],
    ["pool close lan file", '"file" is one too many'],
    ["pool add wan", "pool add needs either a FILE, which may be - for stdin, or --subnet"],
    ["pool add wan f --subnet 10.9.0.0/24", "pool add needs either a FILE, which may be - for stdin, or --subnet"],
    ["pool add wan f --from 10.9.0.1", "--from belongs to --subnet"],
    [
      "pool add wan --subnet 10.9.0.0/24",
      "pool add --subnet needs either --block-size, for one segment, or --block-length, for routed blocks",
    ],
    ["pool add wan --subnet 10.9.0.0/24 --block-size many", "--block-size many is no number"],
    ["node frob", "node knows sync, list, check, drain, remove, replace, adopt, import, move and export, not frob"],
    ["node drain", "node drain needs the NODE's name"],
    ["node list n1", '"n1" is one too many'],
    ["ipam show lan wan", '"wan" is one too many'],
    ["ipam check lan", '"lan" is one too many'],
  ];
  for (const [words, why] of wrong) {
    const { code, stdout, stderr } = ask(words);
    expect({ words, code, stdout, why: stderr.split("\n")[0] }).toEqual({
      words,
      code: 2,
      stdout: "",
      why: `patchbay ${words.split(" ")[0]}: ${why}`,
    });
  }
});

test("on the host: what the files give it, what is leased of it, and that all agree", async () => {
  const { config, directory } = roster();
  const ask = (words: string) =>
    machine.run(["sh", "-c", `${PATCHBAY} ${words} --config ${config} --data-dir /run/lib`]);
  const without = await ask("node check");
  expect(without).toMatchObject({ code: 1, stderr: "" });
  expect(without.stdout).toContain("node/n1: no agent runs on this host\n  start its agent:");
  expect((await ask("ipam show")).stdout).toBe(
    `node n1, the files in ${directory}\nit has no block; 'patchbay node check' says why\n`,
  );
  const agent = machine.start([PATCHBAY, "node", "--config", config, "--data-dir", "/run/lib"]);
  await machine.sh("until [ -e /run/patchbay/pool~lan ]; do sleep 0.1; done");
  await machine.sh("mkdir -p /run/lib/pools/lan; printf 'reserved by hand' > /run/lib/pools/lan/10.0.0.49");
  expect(await ask("ipam show lan")).toEqual({
    code: 0,
    stdout: `node n1, the files in ${directory}\n` +
      "pool  block  addresses            state   leased  free\n" +
      "lan   0      10.0.0.16-10.0.0.31  served  0       16\n" +
      "lan   2      10.0.0.48-10.0.0.63  served  1       15\n" +
      "lan   3      10.0.0.64-10.0.0.79  served  0       16\n" +
      `lan: no further block comes: the files in ${directory} say which blocks are its own\n`,
    stderr: "",
  });
  expect(await ask("ipam check")).toEqual({
    code: 0,
    stdout: `node n1, the files in ${directory}: all agree\n`,
    stderr: "",
  });
  const checked = await ask("node check");
  expect([checked.code, checked.stdout.split("\n").slice(0, 4), checked.stdout.trimEnd().split("\n").at(-1)]).toEqual(
    [
      0,
      [
        `node n1, the files in ${directory}`,
        "in the store: joined, generation 1",
        "blocks: 3 of pool lan",
        "its agent runs",
      ],
      "nothing is wrong",
    ],
  );
  // An address of a block that is another host's.
  await machine.sh("printf 'c1\\r\\neth0' > /run/lib/pools/lan/10.0.0.40");
  const found = await ask("ipam check");
  expect([found.code, found.stdout]).toEqual([
    1,
    "10.0.0.40: container c1 (eth0) leases it, in block/lan.1, which this host has not been granted\n" +
    "  detach the container: another node may give the address out\n",
  ]);
  agent.kill("SIGKILL");
  await agent.exited;
});

test("a host that is synced and has no agent is as it should be, until an agent has run and does not", async () => {
  const { config } = roster(), at = `--config ${config} --data-dir /run/synced`;
  const ask = (words: string) => machine.run(["sh", "-c", `${PATCHBAY} ${words} ${at}`]);
  expect((await ask("node check")).code).toBe(1);
  expect(await ask("node sync")).toEqual({ code: 0, stdout: "", stderr: "" });
  const { code, stdout } = await ask("node check");
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(
      /\nits agent does not run\n[^]*\nnode\/n1: no agent runs on this host\n {2}'patchbay node sync' has done what was due, \d+ s ago\nnothing is wrong\n$/,
    ),
  ]);
  const agent = machine.start([PATCHBAY, "node", ...at.split(" ")]);
  await machine.sh("while [ -e /run/patchbay/node~synced ]; do sleep 0.1; done");
  agent.kill("SIGKILL");
  await agent.exited;
  expect(await ask("node check")).toMatchObject({ code: 1, stdout: expect.stringContaining("start its agent") });
});
