/** The playbook of docs/ansible.md, run by Debian's Ansible on a host of its own: twice, and with a network that is wrong. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../support/documents.ts";
import { openMachine } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";

setDefaultTimeout(300_000);

const page = readFileSync(join(root, "docs/ansible.md"), "utf8");
const [, playbook] = /^```yaml\n([^]*?)^```$/m.exec(page)!;

test("the playbook installs, a second run mends and changes nothing else, and a wrong network stays away", async () => {
  await using machine = await openMachine();
  await machine.sh(
    `
    mkdir -p /run/etc /run/local /run/opt && cp -a /etc/. /run/etc && rm -rf /run/etc/cni
    mount --bind /run/etc /etc; mount --bind /run/opt /opt
    mkdir /run/local/bin /run/local/lib; mount --bind /run/local /usr/local; cat >/run/patchbay.yml`,
    {
      stdin: playbook!,
    },
  );
  const play = async (...more: string[]) => {
    const variables = ["-e", `patchbay=${PATCHBAY}`, "-e", "ansible_become=false", ...more];
    const command = ["ansible-playbook", "-i", "localhost,", "-c", "local", ...variables, "/run/patchbay.yml"];
    const { code, stdout } = await machine.run(["env", "HOME=/run", ...command]);
    return { code, stdout, changed: [...stdout.matchAll(/^TASK \[(.*)\] \**\nchanged:/gm)].map(([, task]) => task) };
  };
  expect(await play()).toMatchObject({
    code: 0,
    changed: [
      "The program is on the host",
      "Plugins and commands lead to it",
      "There is a directory of networks",
      "The network is as written here",
    ],
  });
  await machine.sh("ip netns add web; patchbay add home web; ip -n web address flush dev eth0 scope global");
  expect(await play()).toMatchObject({ code: 0, changed: ["Attachments are as they were made"] });
  expect(await machine.sh("ip -n web address show dev eth0")).toContain("10.101.0.2/24");
  const wrong = await play("-e", JSON.stringify({ network: { cniVersion: "1.1.0", name: "home", plugins: [{}] } }));
  expect(wrong).toMatchObject({ code: 2, changed: [], stdout: expect.stringContaining("failed to validate") });
  await machine.sh("patchbay del home web; patchbay network remove home");
});
