/** Completion in real shells: containers, attachments, leases and values, what each is, and files only where a path may stand. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";

let machine: Machine;
const directory = mkdtempSync(`${tmpdir()}/completion-`), configs = `${directory}/configs`;
const long = "0123456789ab".padEnd(64, "c");
const env = { PATH: `${directory}:/usr/sbin:/usr/bin:/sbin:/bin`, NETCONFPATH: configs, HOME: directory };
const configure = (name: string, subnets: string[]) => {
  const ipam = { type: "host-local", ranges: subnets.map((subnet) => [{ subnet }]) };
  const plugins = [{ type: "bridge", bridge: `br-${name}`, ipam }];
  writeFileSync(`${configs}/${name}.conflist`, JSON.stringify({ cniVersion: "1.1.0", name, plugins }));
};

beforeAll(async () => {
  machine = await openMachine();
  symlinkSync(PATCHBAY, `${directory}/patchbay`);
  mkdirSync(configs);
  configure("front", ["10.1.0.0/24", "fd01::/64"]);
  configure("back", ["10.2.0.0/24"]);
  configure("six", ["fd06::/64"]);
  configure("unused", ["10.3.0.0/24"]);
  for (const name of ["web", "db", "free"]) await machine.container(name);
  await machine.sh("mkdir /run/other; touch /run/other/ns; unshare --net=/run/other/ns true");
  const adds = [
    "front web --container-id box-1",
    "front db --container-id box-2 --ifname net1",
    "six free --container-id box-6",
    `back /run/other/ns --container-id ${long}`,
  ];
  for (const words of adds) expect(await patchbay("add", ...words.split(" "))).toMatchObject({ code: 0 });
  rmSync(`${configs}/back.conflist`);
  // A lease of an attachment that nobody knows any more.
  await machine.sh("mkdir /var/lib/cni/networks/left; printf 'lost\\r\\neth0' > /var/lib/cni/networks/left/10.4.0.2");
  await machine.sh("touch /run/patchbay/pool~lan /run/patchbay/pool~wan /run/patchbay/wish~lan");
  return async () => await machine[Symbol.asyncDispose]();
});
afterAll(() => rmSync(directory, { recursive: true }));

const patchbay = (...args: string[]) => machine.run([PATCHBAY, ...args], { env });
const lines = async (...args: string[]) => (await patchbay(...args)).stdout.split("\n").slice(0, -1);

describe("the last word may become", () => {
  const networks = ["back", "front", "six"], containers = ["db", "web"];
  const cases: [line: string, words: string[]][] = [
    ["l", ["lint", "ls"]],
    ["inspect |", networks],
    ["repair |", networks],
    ["check |", networks],
    ["del |", networks],
    ["gc |", [...networks, "unused"]],
    ["add |", ["front", "six", "unused"]],
    ["plan |", ["front", "six", "unused"]],
    ["status |", ["front", "six", "unused"]],
    ["hook add |", ["front", "six", "unused"]],
    ["ipam list |", ["back", "front", "left", "six"]],
    ["inspect front |", containers],
    ["inspect front w", ["web"]],
    ["inspect front box", ["box-1", "box-2"]],
    ["inspect back |", ["0123456789ab"]],
    [`inspect back ${long.slice(0, 20)}`, [long]],
    ["del --ifname net1 front |", containers],
    ["del front db --ifname |", ["eth0", "net1"]],
    ["del front --container-id |", ["box-1", "box-2"]],
    ["check front |", containers],
    ["inspect front web |", []],
    ["gc front |", []],
    ["gc front --valid |", ["db/net1", "web/eth0"]],
    ["gc front --valid=w", ["--valid=web/eth0"]],
    // As bash breaks the word.
    ["gc front --valid = w", ["web/eth0"]],
    ["gc front --valid box", ["box-1/eth0", "box-2/net1"]],
    ["ipam release front |", ["10.1.0.2", "10.1.0.3", "fd01::2", "fd01::3"]],
    ["ipam release front fd01 :: 3", ["3"]],
    ["ipam release front fd01 ::", ["2", "3"]],
    ["ipam release front --container |", ["db", "web"]],
    ["ipam release front --container box", ["box-1", "box-2"]],
    ["ipam release left --container |", ["lost"]],
    ["ipam list front |", []],
    ["ipam show |", ["lan", "wan"]],
    ["pool |", ["add", "close", "list", "show"]],
    ["pool show |", ["lan", "wan"]],
    ["pool add x |", [":files"]],
    ["node |", ["adopt", "check", "drain", "export", "import", "list", "move", "remove", "replace", "sync"]],
    ["node check --config |", [":files"]],
    ["add front |", ["db", "free", "web", ":files"]],
    ["add front /run/netns/f", ["/run/netns/free", ":files"]],
    ["add front web |", []],
    ["add --config-dir |", [":files"]],
    ["inspect --cache-dir=/v", [":files"]],
    ["lint |", [":files"]],
    ["install |", [":files"]],
    ["serve |", []],
    ["serve --workers |", []],
    ["inspect --b", ["--brief"]],
    ["status unused |", []],
  ];
  test.each(cases)("patchbay %s", async (line, words) => {
    const typed = line.split(" ").map((word) => word === "|" ? "" : word);
    expect(await lines("__complete", ...typed)).toEqual(words);
  });

  test("what each is", async () => {
    expect(await lines("__describe", "inspect", "front", "")).toEqual([
      "db\tnet1 of box-2 in front, 10.1.0.3/24, fd01::3/64",
      "web\teth0 of box-1 in front, 10.1.0.2/24, fd01::2/64",
    ]);
    expect(await lines("__describe", "inspect", "")).toEqual([
      "back\tnot configured",
      "front\tbridge",
      "six\tbridge",
    ]);
    for (const words of [[""], ["add", "--"]]) {
      for (const line of await lines("__describe", ...words)) expect(line).toMatch(/^\S+\t.{5}/);
    }
  });
});

describe("in a shell", () => {
  test("bash, as a person types: behind colons and equals signs, and no files where none are taken", async () => {
    const typed = {
      "ipam release six fd0\t": "<ipam> <release> <six> <fd06::2>",
      "ipam release six fd06:\t": "<ipam> <release> <six> <fd06::2>",
      "gc front --valid=w\t": "<gc> <front> <--valid=web/eth0>",
      "inspect front w\t": "<inspect> <front> <web>",
      "inspect front /etc/hostn\t": "<inspect> <front> </etc/hostn>",
      "lint /etc/hostn\t": "<lint> </etc/hostname>",
      "add front /etc/hostn\t": "<add> <front> </etc/hostname>",
    };
    // Shows the words instead of running them.
    const show =
      `show() { if [ "$1" = __complete ]; then patchbay "$@"; else printf "words:"; printf " <%s>" "$@"; echo; fi; }`;
    const input = [show, "source <(patchbay completion bash)", "complete -F _patchbay show"];
    const lines = [...input, ...Object.keys(typed).map((text) => `show ${text}`), "exit"];
    const { stdout } = await machine.run(["script", "-qec", "bash --norc --noprofile -i", "/dev/null"], {
      env: { ...env, TERM: "dumb" },
      stdin: `${lines.join("\n")}\n`,
    });
    expect(stdout.split("\r\n").filter((line) => line.startsWith("words: "))).toEqual(
      Object.values(typed).map((words) => `words: ${words}`),
    );
  });

  test("fish, with what each is", async () => {
    const complete = async (line: string) => {
      const script = `patchbay completion fish | source; complete -C 'patchbay ${line}'`;
      const { stdout, stderr } = await machine.run(["fish", "--no-config", "-c", script], { env });
      expect(stderr).toBe("");
      return stdout.split("\n").slice(0, -1);
    };
    expect(await complete("inspect front w")).toEqual(["web\teth0 of box-1 in front, 10.1.0.2/24, fd01::2/64"]);
    expect(await complete("ipam release six f")).toEqual(["fd06::2\teth0 of box-6"]);
    expect(await complete("gc front --valid=w")).toEqual([
      "--valid=web/eth0\teth0 of box-1 in front, 10.1.0.2/24, fd01::2/64",
    ]);
    expect(await complete("inspect front web /et")).toEqual([]);
    expect(await complete("inspect front /et")).toEqual([]);
    expect((await complete("lint /etc/hostn")).map((line) => line.split("\t")[0])).toEqual(["/etc/hostname"]);
  });

  test("zsh, with what each is; without compinit it says what to do", async () => {
    const complete = async (...words: string[]) => {
      // Where zsh's own functions would offer words and files.
      const script = 'compdef() { }; compadd() { print -rl -- "${shown[@]}" }; _files() { print files }; ' +
        'source <(patchbay completion zsh); words=(patchbay "$@"); CURRENT=$#words; _patchbay';
      const { stdout, stderr } = await machine.run(["zsh", "-fc", script, "zsh", ...words], { env });
      expect(stderr).toBe("");
      return stdout.split("\n").slice(0, -1);
    };
    expect(await complete("inspect", "front", "w")).toEqual([
      "web  -- eth0 of box-1 in front, 10.1.0.2/24, fd01::2/64",
    ]);
    expect(await complete("inspect", "front", "web", "")).toEqual([]);
    expect(await complete("lint", "/et")).toEqual(["files"]);
    expect(await machine.run(["zsh", "-fc", "source <(patchbay completion zsh)"], { env })).toMatchObject({
      stderr: "patchbay completion zsh: first run 'autoload -U compinit && compinit'\n",
    });
    expect((await patchbay("help", "completion")).stdout).toContain("compinit");
  });
});
