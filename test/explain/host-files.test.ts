/** What `explain --all` says of other programs' files below /etc: engines' configurations, and sysctls. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { overview } from "../../src/explain/explanation.schema.ts";
import { commandsOn } from "../support/commands.ts";
import { type Machine, openMachine } from "../support/machine.ts";

let machine: Machine;
const directory = mkdtempSync(`${tmpdir()}/host-files-`);
const { patchbay } = commandsOn(() => machine, () => directory);

beforeAll(async () => {
  machine = await openMachine();
  await machine.sh("cp -a /etc /run/etc; mount --bind /run/etc /etc");
});
beforeEach(() =>
  machine.sh(`rm -rf /etc/containerd /etc/crio /etc/cni /etc/sysctl.conf /etc/sysctl.d /run/containerd /run/crio
    mkdir -p /etc/containerd /etc/crio/crio.conf.d /etc/cni/net.d /etc/sysctl.d /run/one /run/two
    for each in one two; do
      echo '{"cniVersion":"1.0.0","name":"'$each'","plugins":[{"type":"bridge"}]}' >/run/$each/net.conflist
    done`)
);
afterAll(async () => {
  await machine[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

async function everything() {
  const { code, stdout, stderr } = await patchbay(["explain", "--all", "--json"]);
  expect({ code, stderr }).toEqual({ code: expect.any(Number), stderr: "" });
  return overview.parse(JSON.parse(stdout));
}

const FIRST = { engine: "containerd", directory: "/run/one", network: "one" };
const DEFAULT = { engine: "containerd", directory: "/etc/cni/net.d" };
const CRI = 'plugins."io.containerd.grpc.v1.cri"';

/** The configuration of containerd, and the engine that is told: null where nothing is. */
const containerdFiles: [what: string, text: string, engine: object | null][] = [
  ["an empty file", "", DEFAULT],
  ["a table", `version = 2\n[${CRI}.cni]\nconf_dir = "/run/one"\n`, FIRST],
  ["a dotted key", `version = 2\n${CRI}.cni.conf_dir = "/run/one"\n`, FIRST],
  ["an inline table", `version = 2\n[${CRI}]\ncni = { conf_dir = "/run/one", max_conf_num = 1 }\n`, FIRST],
  ["a quoted key, and ends of lines of Windows", `version = 2\r\n[${CRI}.cni]\r\n"conf_dir" = "/run/one"\r\n`, FIRST],
  ["an escape", `version = 2\n[${CRI}.cni]\nconf_dir = "/run\\u002fone"\n`, FIRST],
  ["a sign of comments in a text", `version = 2\n[${CRI}.cni]\nconf_dir = "/run/one#"\n`, {
    directory: "/run/one#",
  }],
  ["version 1", '[plugins.cri.cni]\nconf_dir = "/run/one"\n', FIRST],
  ["version 3", 'version = 3\n[plugins."io.containerd.cri.v1.runtime".cni]\nconf_dir = "/run/one"\n', FIRST],
  ["another plugin's key", 'version = 2\n[plugins.other.cni]\nconf_dir = "/run/two"\n', DEFAULT],
  [
    "a text of lines",
    `version = 2\n[${CRI}.cni]\nconf_dir = "/run/one"\n[x]\nx = """\nconf_dir = "/run/two"\n"""\n`,
    FIRST,
  ],
  ["a comment in a list", `version = 2\ndisabled_plugins = [\n # "cri"\n]\n`, DEFAULT],
  ["the plugin is off", 'version = 3\ndisabled_plugins = ["io.containerd.cri.v1.runtime"]\n', null],
  ["all networks are given", `version = 2\n[${CRI}.cni]\nmax_conf_num = 0\n`, null],
  ["a table of another version", `version = 3\n[${CRI}.cni]\nconf_dir = "/run/one"\n`, null],
  ["imports without files", 'imports = ["/etc/containerd/none/*.toml", "none.toml"]\n', DEFAULT],
  ["imports", 'imports = ["/run/one/*"]\n', null],
  ["no text", `version = 2\n[${CRI}.cni]\nconf_dir = 7\n`, null],
  ["no TOML", "conf_dir = \n", null],
  ["more than is read", "\n".repeat(200_000), null],
];

test.each(containerdFiles)("containerd's configuration with %s", async (_, text, engine) => {
  await machine.sh("mkdir /run/containerd; echo >/run/containerd/containerd.sock; cat >/etc/containerd/config.toml", {
    stdin: text,
  });
  const { engines } = await everything();
  expect(engines).toMatchObject(engine === null ? [] : [engine]);
});

test("what is in the place of containerd's configuration stops nothing", async () => {
  await machine.sh("mkdir /run/containerd; echo >/run/containerd/containerd.sock");
  for (const make of ["mkfifo", "mkdir", "ln -s /dev/zero"]) {
    await machine.sh(`rm -rf /etc/containerd/config.toml; ${make} /etc/containerd/config.toml`);
    expect(await everything()).toMatchObject({ engines: [], host: [] });
  }
  await machine.sh("rm -rf /etc/containerd/config.toml /etc/cni/net.d; echo >/etc/cni/net.d");
  expect(await everything()).toMatchObject({ engines: [DEFAULT], host: [{ code: "engine-without-network" }] });
});

test("CRI-O passes over a file that it cannot read, or takes the network of a name", async () => {
  await machine.sh(`mkdir /run/crio; echo >/run/crio/crio.sock; cp /run/one/net.conflist /etc/cni/net.d/1.conflist
    cp /run/two/net.conflist /etc/cni/net.d/2.conflist; echo '{' >/etc/cni/net.d/0.conflist`);
  const given = async (text = "") => {
    await machine.sh("cat >/etc/crio/crio.conf.d/10-net", { stdin: text });
    const { engines, host } = await everything();
    return { network: engines[0]?.network, host: host.map((each) => each.text) };
  };
  expect(await given()).toEqual({ network: "one", host: [] });
  expect(await given('[crio.network]\ncni_default_network = "two"\n')).toEqual({ network: "two", host: [] });
  expect(await given('crio.network = { network_dir = "/run/two" }\n')).toEqual({ network: "two", host: [] });
  await machine.sh(`echo '[crio.network]\ncni_default_network = "two"' >/etc/crio/crio.conf`);
  expect(await given('[crio.network]\ncni_default_network = "one"\n')).toEqual({ network: "one", host: [] });
  expect(await given('[crio.network]\ncni_default_network = "none"\n')).toEqual({
    network: undefined,
    host: ['CRI-O has no network for pods: no network "none" is in /etc/cni/net.d'],
  });
  expect(await given('[crio.image]\ncni_default_network = "one"\n')).toEqual({ network: "two", host: [] });
  expect(await given("[crio")).toEqual({ network: undefined, host: [] });
});

test("the last file that sets forwarding counts", async () => {
  const said = async (file: string, text: string) => {
    await machine.sh(`cat >${file}`, { stdin: text });
    return (await everything()).host.map((each) => each.text);
  };
  const own = "/etc/sysctl.d/50-x.conf", later = "/etc/sysctl.d/60-x.conf", general = "/etc/sysctl.conf";
  expect(await said(own, "net.ipv4.ip_forward=\n\n0\n")).toEqual([]);
  expect(await said(own, " -net/ipv4/conf/all/forwarding = 0 \n")).toEqual([
    `${own} sets net.ipv4.conf.all.forwarding to 0`,
  ]);
  expect(await said(later, "net.ipv4.ip_forward = 1\n")).toEqual([]);
  expect(await said(own, "net.ipv4.ip_forward = 1\n")).toEqual([]);
  expect(await said(later, "net.ipv4.conf.*.forwarding = 0\n")).toEqual([
    `${later} sets net.ipv4.conf.*.forwarding to 0`,
  ]);
  // A setting by name counts, wherever it is.
  expect(await said(own, "net.ipv4.conf.all.forwarding = 1\n")).toEqual([]);
  expect(await said(general, "net.ipv4.ip_forward = 0\n")).toEqual([
    `${general} sets net.ipv4.ip_forward to 0 where "sysctl --system" reads it`,
  ]);
  // systemd does not read it.
  await machine.sh(`echo net.ipv4.ip_forward=0 >${later}`);
  expect(await said(general, "net.ipv4.ip_forward = 1\n")).toEqual([`${later} sets net.ipv4.ip_forward to 0`]);
  await machine.sh(`ln -s ../sysctl.conf /etc/sysctl.d/99-sysctl.conf`);
  expect(await everything()).toMatchObject({ host: [] });
  // Neither blank lines nor blanks take long.
  expect(await said(own, `${"\n".repeat(500_000)}${" ".repeat(400_000)}x`)).toEqual([]);
});
