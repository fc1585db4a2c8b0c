/** `patchbay explain --bundle` on a machine: what is in the tar, what is not, and how the file comes into being. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { commandsOn } from "../support/commands.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";

let machine: Machine;
const directory = mkdtempSync(`${tmpdir()}/bundle-`), networks = `${directory}/net.d`, trace = `${directory}/trace`;
afterAll(() => rmSync(directory, { recursive: true }));
const { patchbay } = commandsOn(() => machine, () => networks);

/** Each place has a secret of its own, so that a failure says which was found. */
const secrets: string[] = [];
function secret(): string {
  secrets.push(`s3cr3t-${secrets.length}-x`);
  return secrets.at(-1)!;
}
const random = (): string => {
  secrets.push(new Bun.CryptoHasher("sha256").update(`${secrets.length}`).digest("base64").replace("=", ""));
  return secrets.at(-1)!;
};
const PEM = (inside: string) => `-----BEGIN PRIVATE KEY-----\n${inside}\n-----END PRIVATE KEY-----`;

/** podman and Kubernetes say a container's name this way; this one would lead out of the tar. */
const HOSTILE = "../../../../tmp/evil";
const ID = "0123456789ab".padEnd(64, "c");

const shop = () => ({
  cniVersion: "1.1.0",
  name: "shop",
  apiToken: secret(),
  plugins: [{
    type: "bridge",
    bridge: "shop0",
    isGateway: true,
    ipMasq: true,
    password: secret(),
    upstream: `https://user:${secret()}@registry.example/`,
    signed: random(),
    certificate: PEM(secret()),
    args: { cni: { labels: [{ key: "auth-token", value: secret() }] } },
    env: [`DB_PASSWORD=${secret()}`, "MODE=fast"],
    nested: JSON.stringify({ deeper: JSON.stringify({ privateKey: secret() }) }),
    encoded: btoa(JSON.stringify({ credentials: { user: "x", value: secret() } })),
    ipam: { type: "host-local", ranges: [[{ subnet: "10.40.0.0/24" }]], routes: [{ dst: "0.0.0.0/0" }] },
  }, { type: "portmap", capabilities: { portMappings: true, vault: true } }],
});

beforeAll(async () => {
  machine = await openMachine();
  mkdirSync(`${networks}/shop`, { recursive: true });
  writeFileSync(`${networks}/shop.conflist`, `// token: ${secret()}\n${JSON.stringify(shop(), null, 2)}`);
  writeFileSync(`${networks}/torn.conflist`, `{"name":"torn","plugins":[{"auth":{\n"user":"x",\n"v":"${secret()}"`);
  writeFileSync(`${networks}/old.conflits`, JSON.stringify({ name: "old", type: "bridge", psk: secret() }));
  writeFileSync(`${networks}/calico-kubeconfig`, `users: [{user: {token: ${secret()}}}]`);
  writeFileSync(`${networks}/shop/10.conf`, JSON.stringify({ type: "tuning", cookie: secret() }));
  for (const name of ["web", "jug"]) await machine.container(name);
  const add = (name: string, id: string, args: string) =>
    machine.run([PATCHBAY, "add", "shop", name, "--container-id", id], {
      env: {
        NETCONFPATH: networks,
        PATCHBAY_TRACE: trace,
        CNI_ARGS: `IgnoreUnknown=1;${args};API_SECRET=${secret()};BLOB=${random()}`,
        CAP_ARGS: JSON.stringify({
          portMappings: [{ hostPort: id === "jug" ? 8081 : 8080, containerPort: 80, protocol: "tcp" }],
          vault: { bearer: secret(), list: [{ token: secret() }] },
        }),
      },
    });
  for (const one of [await add("web", ID, "K8S_POD_NAME=web"), await add("jug", "jug", `K8S_POD_NAME=${HOSTILE}`)]) {
    expect(one).toMatchObject({ code: 0 });
  }
  const line = { note: "x", error: `stdin was ${JSON.stringify({ password: secret() })}` };
  await machine.sh(`ip link set shop0 alias "password=${secret()}"
    ip link add $(printf 'a\\033[31mb') type bridge
    ip -n web link set eth0 alias "token ${secret()}"
    nft add table inet other; nft add chain inet other c '{ type filter hook forward priority 5; }'
    nft add rule inet other c ip saddr 192.0.2.7 drop comment '"psk=${secret()}"'
    nft add rule inet other c ip saddr 192.0.2.8 drop comment '"${random()}"'
    iptables -A FORWARD -s 192.0.2.9 -m comment --comment 'secret: ${secret()}' -j DROP
    iptables-legacy -A FORWARD -s 192.0.2.10 -m comment --comment 'key=${secret()}' -j DROP
    ip rule add fwmark 0x77 table 4242; ip route add 192.0.2.0/24 dev shop0 table 4242
    ip link add tc0 type bridge
    tc qdisc add dev tc0 clsact; tc filter add dev tc0 ingress pref 7 protocol ip u32 match u32 0 0 flowid :1
    ip route add blackhole 203.0.113.0/24 proto static
    ip neighbour add 10.40.0.77 lladdr 02:00:00:00:00:77 dev shop0`);
  appendFileSync(
    trace,
    `${JSON.stringify(line)}
`,
  );
  await machine.sh(`cd /var/lib/cni/results; sed 's/"kind"/"authToken":"${secret()}","kind"/' -i shop-${ID}-eth0
    cp shop-jug-eth0 torn; truncate -s -40 torn`);
});
afterAll(() => machine[Symbol.asyncDispose]());

const ASK = ["explain", "web", "198.51.100.9", "tcp/443", "--bundle"];
const env = { NETCONFPATH: networks, PATCHBAY_TRACE: trace };

async function bundle(ask = ASK): Promise<Record<string, string>> {
  await machine.sh(`rm -rf ${directory}/out; mkdir ${directory}/out`);
  const { stderr } = await machine.run([PATCHBAY, ...ask, `${directory}/out/report.tar`], { env });
  expect(stderr).toContain("is written; look through it");
  const names = await machine.sh(`cd ${directory}/out; tar xf report.tar; find report -type f`);
  const texts = names.trim().split("\n").map(async (
    name,
  ) => [name, await Bun.file(`${directory}/out/${name}`).text()]);
  return Object.fromEntries(await Promise.all(texts));
}

/** What is in base64, and what is in base64 in that. */
function decoded(text: string, depth = 3): string[] {
  const words = depth === 0 ? [] : text.match(/[A-Za-z0-9+/_-]{8,}={0,2}/g) ?? [];
  return [text, ...words.flatMap((word) => decoded(Buffer.from(word, "base64").toString("latin1"), depth - 1))];
}

test("no secret is in it, plain or in base64, and what explains the host is", async () => {
  const files = await bundle();
  const all = Object.entries(files).flatMap(([name, text]) => decoded(`${name}\n${text}`)).join("\n");
  expect(all.match(/.{0,90}s3cr3t.{0,30}/g) ?? []).toEqual([]);
  expect(secrets.length).toBeGreaterThan(25);
  expect(secrets.filter((one) => all.includes(one) || all.includes(one.slice(0, -4)))).toEqual([]);
  const holds = (name: string, ...parts: string[]) => {
    for (const part of parts) {
      expect({ name, text: files[`report/${name}`] }).toMatchObject({ name, text: expect.stringContaining(part) });
    }
  };
  holds("README", "patchbay 0.", "bun 1.", "Linux ", "look through it");
  holds("explanation.txt", "web → 198.51.100.9 tcp/443");
  holds("explanation.json", '"verdict"');
  holds("inspect.txt", "10.40.0.2/24", "8080->80/tcp");
  holds("plan/shop.json", "bridge shop0");
  holds(
    "configurations/shop.conflist.json",
    '"isGateway": true',
    '"user": "x"'.slice(0, 0),
    "MODE=fast",
    "(removed)",
  );
  holds("configurations/shop_10.conf.json", "tuning");
  holds("configurations/old.conflits.json", "bridge");
  holds("configurations/names.json", "calico-kubeconfig");
  holds("host/qdiscs.jsonl", '{"link":"tc0","linkIndex":', '"kind":"clsact","handle":"ffff:0","parent":"ingress"');
  holds(
    "host/tc-filters.jsonl",
    '"kind":"u32","handle":"0x80000800"',
    '"parent":"clsact ingress","priority":7,"protocol":"0x0800"',
  );
  holds("host/links.jsonl", '"flags":["UP",', '"name":"shop0"', '"alias":"password=(removed)"');
  holds("host/addresses.jsonl", '{"address":"10.40.0.1/24","link":"shop0"', '"scope":"global"');
  holds(
    "host/routes.jsonl",
    '"table":4242',
    '{"dst":"10.40.0.0/24","link":"shop0",',
    '"scope":"link","type":"unicast","protocol":"kernel"',
    '"type":"blackhole"',
    '"protocol":"static"',
    '"table":"main"',
  );
  holds("host/routing-rules.jsonl", '"mark":119');
  holds("host/neighbours.jsonl", "10.40.0.77", "02:00:00:00:00:77", "permanent");
  holds("host/bridge-fdb.jsonl", '"master":', "permanent");
  holds("host/sysctls.txt", "net.ipv4.ip_forward = 1", "net.ipv4.conf.shop0.rp_filter");
  holds(
    "host/rules.txt",
    "192.0.2.7 drop",
    "192.0.2.9",
    "192.0.2.10",
    "(iptables-legacy)",
    ID,
  );
  holds("containers/web/addresses.jsonl", "10.40.0.2");
  holds("trace.jsonl", '"operation":"apply"');
  expect(Object.keys(files).filter((name) => /ledgers\/shop@.*jsonl$/.test(name))).toHaveLength(4);
  expect(Object.keys(files).filter((name) => /results\/shop/.test(name))).toHaveLength(2);
  expect(Object.keys(files)).not.toContain("report/configurations/calico-kubeconfig.json");
  for (const [name, text] of Object.entries(files)) {
    expect({ name, is: /^[\P{Cc}\n\t]*$/u.test(text) }).toEqual({ name, is: true });
  }
});

test("sets and maps are in it with their elements, or so many of them", async () => {
  const own = Array.from({ length: 700 }, (_, at) => `192.0.${at >> 8}.${at & 255}`);
  await machine.sh("nft -f -", {
    stdin: `table inet sets {
      set links { type ifname . ether_addr; elements = { "shop0" . 02:00:00:00:00:05 comment "psk=${secret()}" }; }
      set nets { type ipv4_addr; flags interval; elements = { 10.1.0.0-10.1.0.9, 10.2.0.0/24, 10.2.1.7, 240.0.0.0/4 }; }
      set both { type ipv6_addr . inet_service; flags interval; elements = { fd00::/112 . 53, fd01::1 . 80-90 }; }
      map ways { type inet_service : verdict; elements = { 53 : accept, 80 : jump other }; }
      map ports { type inet_proto . inet_service : ipv4_addr . inet_service; elements = { tcp . 81 : 10.40.0.2 . 80 }; }
      set marks { type mark; elements = { 0x77 }; }
      set many { type ipv4_addr; elements = { ${own.join(", ")} }; }
      chain other { }
      chain c { type filter hook forward priority 5; tcp dport { 1, 2 } meta mark set 0x9 drop; }
    }`.replaceAll(" }; }", " }\n }").replaceAll("; }", "\n}").replaceAll("{ }", "{\n}"),
  });
  const text = (await bundle())["report/host/rules.txt"]!;
  const linesOf = (name: string) =>
    text.split(`${name}\n`)[1]!.split(/^[a-z]/m)[0]!.split("\n").map((line) => line.trim()).filter((line) =>
      line !== ""
    );
  expect(linesOf("set inet sets links")).toEqual(['"shop0" . 02:00:00:00:00:05 comment "psk=(removed)']);
  expect(linesOf("set inet sets nets")).toEqual([
    "10.1.0.0-10.1.0.9",
    "10.2.0.0-10.2.0.255",
    "10.2.1.7",
    "240.0.0.0-255.255.255.255",
  ]);
  expect(linesOf("set inet sets both")).toEqual(["fd00::-fd00::ffff . 53", "fd01::1 . 80-90"]);
  expect(linesOf("map inet sets ways")).toEqual(["53 : accept", "80 : jump other"]);
  expect(linesOf("map inet sets ports")).toEqual(["tcp . 81 : 10.40.0.2 . 80"]);
  expect(linesOf("set inet sets marks")).toEqual(["0x00000077"]);
  expect(linesOf("set inet sets many")).toHaveLength(501);
  expect(text).toContain("(cut: more elements)");
  expect(text).toMatch(/set inet sets __set\d+\n {2}1\n {2}2\n/);
  await machine.sh("nft delete table inet sets");
});

test("a container that a packet only comes to is in it, too", async () => {
  const files = await bundle(["explain", "jug", "host:8080", "tcp", "--bundle"]);
  expect(files).toHaveProperty(["report/containers/web/routes.jsonl"]);
});

test("--all has every container in it", async () => {
  const files = await bundle(["explain", "--all", "--bundle"]);
  expect(Object.keys(files).filter((name) => /^report.containers.*links/.test(name))).toHaveLength(2);
  expect(JSON.parse(files["report/explanation.json"]!)).toHaveProperty("host");
});

test("names of others stay in their place", async () => {
  const files = await bundle(["explain", HOSTILE, "outside", "--bundle"]);
  expect(Object.keys(files)).toContain("report/containers/_.._.._.._.._tmp_evil/links.jsonl");
  for (const name of Object.keys(files)) expect(name).toMatch(/^report(\/[A-Za-z0-9_@~][A-Za-z0-9._@~-]*)+$/);
});

test("the file is new, its owner's alone, and never another's", async () => {
  await machine.sh(
    `rm -rf ${directory}/out; mkdir ${directory}/out; cd ${directory}/out; echo mine >taken; mkdir place
    ln -s ${directory}/out/target dangling; ln -s taken link`,
  );
  for (const name of ["taken", "dangling", "link", "place"]) {
    const { code, stderr } = await patchbay([...ASK, `${directory}/out/${name}`]);
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: expect.stringContaining(
        "is there already, and nothing is written over: name another file, or remove it",
      ),
    });
  }
  expect(await machine.sh(`cd ${directory}/out; cat taken; ls`)).toBe("mine\ndangling\nlink\nplace\ntaken\n");
  await patchbay([...ASK, `${directory}/out/new.tar`]);
  expect(await machine.sh(`cd ${directory}/out; stat -c '%a %h %U' new.tar; ls -a | grep tmp || :`)).toBe(
    "600 1 root\n",
  );
  expect(await patchbay([...ASK, `${directory}/nowhere/x.tar`])).toMatchObject({ code: 3 });
});

test("- is stdout, and nothing else is there", async () => {
  const names = await machine.sh(`NETCONFPATH=${networks} ${PATCHBAY} ${ASK.join(" ")} - | tar tf -`);
  expect(names).toStartWith("report/README\nreport/explanation.txt\n");
});

test("when the disk is full, or it is killed, there is no such file", async () => {
  await machine.sh(`mkdir -p ${directory}/small; mount -t tmpfs -o size=16k tmpfs ${directory}/small`);
  const full = await patchbay([...ASK, `${directory}/small/x.tar`]);
  expect(full).toMatchObject({ code: 3, stderr: expect.stringContaining("no space left on device") });
  expect(await machine.sh(`ls -A ${directory}/small; umount ${directory}/small`)).toBe("");
  const killedAt = (call: string) =>
    machine.sh(`cd ${directory}; rm -f killed*
      strace -f -o /dev/null -e trace=${call} -e inject=${call}:signal=KILL ${PATCHBAY} ${
      ASK.join(" ")
    } killed.tar >/dev/null || :
      [ ! -e killed.tar ] || tar tf killed.tar >/dev/null; ls killed*`);
  expect(await killedAt("fsync")).toMatch(/^killed\.tar\.\d+\.tmp\n$/);
  expect(await killedAt("linkat")).toMatch(/^(killed\.tar\n)?killed\.tar\.\d+\.tmp\n$/);
});

test("nothing is changed, and no program is started but for the older tables", async () => {
  const state = () =>
    machine.sh(
      "nft list ruleset; ip -4 address; ip -o link | wc -l; ip rule; ip -4 route show table all; ls -lR /run /var/lib/cni; cat /proc/net/ip_tables_names",
    );
  const before = await state();
  await machine.sh(`strace -f -o ${directory}/calls -e trace=execve,execveat,fork,vfork \
    env NETCONFPATH=${networks} ${PATCHBAY} ${ASK.join(" ")} - >/dev/null || :`);
  expect(await state()).toBe(before);
  const calls = await machine.sh(`grep -o 'execve("[^"]*"' ${directory}/calls | sort | uniq -c || :`);
  expect(calls.replaceAll(/.*\/(env|patchbay)"\n/g, "")).toBe("");
});
