/** The commands on pools with a real etcd: they change one record, refuse what is there, and read nothing into what is none. */
import { afterAll, expect, test } from "bun:test";
import { openCluster } from "../../support/cluster.ts";

const cluster = await openCluster(), person = await cluster.node("n1");
afterAll(() => cluster[Symbol.asyncDispose]());

const AT = "etcd at http://127.0.0.1:2379";
const ask = (words: string) => person.ask(words);
/** With a document on stdin. */
const askWith = (document: unknown, words: string) => person.ask(words, JSON.stringify(document));

test("a pool by options, from a file, and from stdin", async () => {
  expect(
    await ask(
      "pool add lan --subnet 10.0.0.0/24 --gateway 10.0.0.1 --from 10.0.0.16 --exclude 10.0.0.20 --block-size 16",
    ),
  )
    .toEqual({
      code: 0,
      stdout: "pool lan is added: 14 blocks of 16 addresses\n",
      stderr: "15 addresses, 10.0.0.240 to 10.0.0.254, are behind the last whole block: nobody gets them\n",
    });
  expect(await cluster.record("pool/lan")).toEqual({
    layout: "flat",
    ranges: [{ cidr: "10.0.0.0/24", gateway: "10.0.0.1", from: "10.0.0.16", exclude: ["10.0.0.20"], blockSize: 16 }],
  });
  expect(await ask("pool add pods --subnet 10.8.0.0/16 --block-length 26")).toEqual({
    code: 0,
    stdout: "pool pods is added: 1024 blocks of 64 addresses\n",
    stderr: "",
  });
  expect((await ask("pool add odd --subnet 10.7.0.0/29 --to 10.7.0.5 --block-size 2")).stderr).toBe(
    "10.7.0.5 is behind the last whole block: nobody gets it\n",
  );
  const ranges = [{ cidr: "10.6.0.0/24", to: "10.6.0.16", blockSize: 16 }];
  const fixed = { layout: "flat", ranges, singles: ["10.6.0.9", "10.6.0.20"] };
  expect((await askWith(fixed, "pool add fixed -")).stderr).toBe(
    "10.6.0.9 is in a block: while a host has that block, no other host gets the address; " +
      'one outside of "from" and "to" is free of that\n',
  );
  const both = {
    layout: "routed",
    ranges: [{ cidr: "10.9.0.0/22", blockLength: 24 }, { cidr: "fd00::/62", blockLength: 64 }],
  };
  await cluster.machine.sh(`echo '${JSON.stringify(both)}' > /run/both.json`);
  expect((await ask("pool add both /run/both.json")).code).toBe(0);
  expect(await cluster.record("pool/both")).toEqual(both);
  expect((await askWith({ ...both, ranges: both.ranges.slice(1) }, "pool add six -")).stdout).toBe(
    "pool six is added: 4 blocks of 18446744073709551616 addresses\n",
  );
});

test("what a pool cannot be is refused with its key, before the store is asked", async () => {
  const refused: [unknown, string][] = [
    [{ layout: "flat", ranges: [{ cidr: "10.0.0.0/24" }] }, "ranges[0].blockSize"],
    [{ layout: "flat", ranges: [{ cidr: "10.0.0.1/24", blockSize: 16 }] }, "ranges[0].cidr"],
    [{ layout: "flat", range: [] }, "range"],
    [[], "stdin: it is no object"],
  ];
  for (const [document, key] of refused) {
    const { code, stdout, stderr } = await askWith(document, "pool add bad -");
    expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: "", stderr: expect.stringContaining(key) });
  }
  expect((await ask("pool add bad /run/none.json")).stderr).toBe("patchbay pool: /run/none.json: no such file\n");
  expect((await ask("pool add Bad --subnet 10.0.0.0/24 --block-size 1")).stderr).toContain(
    '"Bad" is no name of a pool',
  );
  expect(await cluster.record("pool/bad")).toBeUndefined();
});

test("a pool that is there stays as it is", async () => {
  await cluster.write("pool/there", { layout: "flat", ranges: [{ cidr: "10.20.0.0/24", blockSize: 16 }] });
  expect(await ask("pool add there --subnet 10.21.0.0/24 --block-size 8")).toEqual({
    code: 1,
    stdout: "",
    stderr: "patchbay pool: pool there is there already\n" +
      "  'patchbay pool show there' says what it has; ranges of a pool never change: add one of another name\n",
  });
  expect(await cluster.record("pool/there")).toMatchObject({ ranges: [{ cidr: "10.20.0.0/24" }] });
});

test("addresses that another pool has, too, and blocks of an earlier pool of the name", async () => {
  await cluster.write("pool/one", { layout: "flat", ranges: [{ cidr: "10.30.0.0/24", blockSize: 16 }] });
  await cluster.write("block/other.0", {
    poolBirth: "long ago",
    index: 0,
    owner: { node: "n7", generation: 1, claim: "c" },
  });
  expect(await ask("pool add other --subnet 10.30.0.128/25 --block-size 8")).toEqual({
    code: 0,
    stdout: "pool other is added: 15 blocks of 8 addresses\n",
    stderr: "6 addresses, 10.30.0.249 to 10.30.0.254, are behind the last whole block: nobody gets them\n" +
      "pool one has 10.30.0.129-10.30.0.254, too: right for two segments that do not meet; where they meet, addresses " +
      "come twice\n" +
      "n7: has blocks of an earlier pool of this name; nothing is claimed before they are given back\n",
  });
  await cluster.erase("block/other.0");
});

test("close, and open again; all else stays", async () => {
  const pool = { layout: "flat", ranges: [{ cidr: "10.40.0.0/24", blockSize: 16 }], spare: 0 };
  await cluster.write("pool/shop", pool);
  const said = async (words: string) => (await ask(words)).stdout;
  expect(await said("pool close shop")).toBe("pool shop is closed\n");
  expect(await cluster.record("pool/shop")).toEqual({ ...pool, state: "closed" });
  expect(await said("pool close shop")).toBe("pool shop is closed already\n");
  expect(await said("pool show shop")).toStartWith("pool shop: flat, closed\n");
  expect(await said("pool close shop --undo")).toBe("pool shop is open\n");
  expect(await cluster.record("pool/shop")).toEqual({ ...pool, state: "open" });
  expect((await ask("pool close shops")).stderr).toContain('there is no pool shops; did you mean "shop"?');
});

/** What is no pool, and has to be named. */
const foreign: [name: string, value: string][] = [
  ["newer", JSON.stringify({ layout: "flat", ranges: [{ cidr: "10.50.0.0/24", blockSize: 16 }], shards: 3 })],
  ["text", '"\\u001b]0;owned\\u0007"'],
  ["list", "[]"],
  ["escape", JSON.stringify({ layout: "\u001b[31m\u009b2J\r\n", ranges: [] })],
  ["broken", "{"],
  ["nothing", ""],
];

test("values that are no pool are named by their key, and never printed raw, and never changed", async () => {
  for (const [name, value] of foreign) await cluster.write(`pool/${name}`, value);
  await cluster.machine.sh(
    `printf '{"layout":"flat","more":"%s"}' "$(head -c 1000000 /dev/zero | tr '\\0' x)" | ` +
      "ETCDCTL_API=3 etcdctl --endpoints http://127.0.0.1:2379 put /patchbay/pool/megabyte",
  );
  await cluster.write("pool/Name\u001b[31m", "{}");
  const { code, stdout } = await ask("pool list"), lines = stdout.trimEnd().split("\n");
  expect(code).toBe(1);
  // deno-lint-ignore no-control-regex
  expect(stdout.replaceAll("\n", "")).not.toMatch(/[\0-\x1f\x7f-\x9f]/);
  expect(lines.every((line) => line.length < 320)).toBe(true);
  for (const name of [...foreign.map(([name]) => name), "megabyte", "Name\\u001b[31m"]) {
    expect(lines.filter((line) => line.startsWith(`pool/${name} is no record: `))).toHaveLength(1);
  }
  for (const [name] of foreign) {
    for (const words of [`pool close ${name}`, `pool show ${name}`]) {
      const { code, stderr } = await ask(words);
      expect({ words, code, stderr }).toEqual({
        words,
        code: 1,
        stderr: expect.stringMatching(
          new RegExp(`^patchbay pool: pool/${name} is no record: .*\n  nothing of it counts: `),
        ),
      });
    }
  }
  expect(await cluster.record("pool/list")).toEqual([] as never);
  expect(JSON.parse((await ask("pool list --json")).stdout).problems).toHaveLength(foreign.length + 2);
  for (const name of [...foreign.map(([name]) => name), "megabyte", "Name\u001b[31m"]) {
    await cluster.erase(`pool/${name}`);
  }
  expect((await ask("pool list")).code).toBe(0);
});

test("a silent store: endpoint, cause and what to do; nothing is half done", async () => {
  cluster.signalStore("SIGSTOP");
  for (
    const words of ["pool list", "pool add late --subnet 10.60.0.0/24 --block-size 8", "pool close lan", "node list"]
  ) {
    const { code, stdout, stderr } = await ask(words);
    expect({ words, code, stdout }).toEqual({ words, code: 1, stdout: "" });
    expect(stderr).toStartWith(`patchbay ${words.split(" ")[0]}: ${AT}: http://127.0.0.1:2379: `);
  }
  cluster.signalStore("SIGCONT");
  expect((await ask("pool list")).code).toBe(0);
  expect(await cluster.record("pool/late")).toBeUndefined();
  expect((await cluster.record("pool/lan"))?.["state"]).toBeUndefined();
});
