/** The agent as systemd confines it, with etcd over TLS: it claims, asks its segment, is started again, and its files stay. */
import { expect, test } from "bun:test";
import { Certificates } from "../../support/certificates.ts";
import { openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { Systemd } from "../../support/systemd.ts";

const UNIT = "patchbay-node.service", ENDPOINT = "https://127.0.0.1:2379";

test("confined by its unit, it does all that it does; killed, it comes back at once", async () => {
  await using machine = await openMachine();
  using certificates = new Certificates();
  const authority = certificates.authority("ca"), own = certificates.signedBy(authority, { names: ["IP:127.0.0.1"] });
  await machine.sh(`
    mkdir -p /run/conf /run/bin; cp ${own.keyFile} ${own.certFile} ${authority.certFile} /run/conf
    ip netns add stranger; ip link add seg0 type veth peer name eth0 netns stranger; ip link set seg0 up
    ip -n stranger link set eth0 up; ip -n stranger address add 10.1.0.5/24 dev eth0`);
  const name = (path: string) => `/run/conf/${path.slice(path.lastIndexOf("/") + 1)}`;
  const tls = ["--cert-file", own.certFile, "--key-file", own.keyFile, "--client-cert-auth", "--trusted-ca-file"];
  const etcd = machine.start([
    ...["etcd", "--data-dir", "/run/etcd", "--log-level", "error", ...tls, authority.certFile],
    ...["--listen-client-urls", ENDPOINT, "--advertise-client-urls", ENDPOINT],
    ...["--listen-peer-urls", "http://127.0.0.1:2380"],
  ]);
  const files = { caFile: name(authority.certFile), certFile: name(own.certFile), keyFile: name(own.keyFile) };
  const conf = { node: "n1", store: { etcd: { endpoints: [ENDPOINT], ...files } } };
  await machine.run(["sh", "-c", "cat >/run/conf/cluster.json"], { stdin: JSON.stringify(conf) });
  const pool = { layout: "flat", ranges: [{ cidr: "10.1.0.0/28", blockSize: 14 }], probe: { link: "seg0" } };
  const ask = (words: string) => machine.sh(`${PATCHBAY} ${words} --config /run/conf/cluster.json`);
  await machine.run(["sh", "-c", "cat >/run/conf/lan.json"], { stdin: JSON.stringify(pool) });
  await machine.sh(
    `until ${PATCHBAY} pool add lan /run/conf/lan.json --config /run/conf/cluster.json; do sleep 0.2; done`,
  );
  {
    await using systemd = await Systemd.start(machine);
    const { inside } = systemd;
    const command = `${PATCHBAY} node --config /run/conf/cluster.json`;
    await inside.sh(`
      mkdir -p /etc/systemd/system/${UNIT}.d
      printf '[Service]\\nExecStart=\\nExecStart=${command}\\nStandardError=append:/run/said\\n' >/etc/systemd/system/${UNIT}.d/own.conf`);
    await inside.sh(`${PATCHBAY} install --node --no-resident /run/bin || { cat /run/said >&2; exit 1; }`);
    expect(await systemd.property(UNIT, "ActiveState")).toBe("active");
    await machine.sh("until grep -q '\"served\":1' '/run/patchbay/pool~lan'; do sleep 0.2; done");
    expect(await ask("ipam show lan")).toContain("lan");
    expect(await machine.sh("cat '/run/patchbay/pool~lan'")).toContain('"foreign":["10.1.0.5"]');
    const before = await systemd.property(UNIT, "MainPID");
    await inside.sh(`kill -9 ${before}`);
    await inside.sh(
      `until [ "$(systemctl show --property=MainPID --value ${UNIT})" != ${before} ]; do sleep 0.1; done`,
    );
    await inside.sh(`systemctl stop ${UNIT}`);
    expect(await machine.sh("ls -a /run/patchbay | grep pool~")).toBe("pool~lan\n");
  }
  etcd.kill("SIGKILL");
  await etcd.exited;
});
