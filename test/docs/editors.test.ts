/**
 * An editor completes, explains and marks networks by our JSON Schema, with the settings of docs/editors.md: VS Code's
 * language server is asked what VS Code asks it.
 */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../support/documents.ts";
import { type Diagnostic, LanguageServer } from "../support/language-server.ts";

const page = readFileSync(join(root, "docs/editors.md"), "utf8").replaceAll(
  "/usr/share/patchbay/schemas",
  `${root}/schemas`,
);
const settings = JSON.parse(/```json\n(\{[^]*?"json\.schemas"[^]*?)```/.exec(page)![1]!);
const named = /"\$schema": "[^"]+"/.exec(page)![0];

const start = () => LanguageServer.start({ json: { schemas: settings["json.schemas"] } });
const inNetwork = (plugin: string) => `{ "cniVersion": "1.1.0", "name": "net", "plugins": [${plugin}] }`;
const saysOf = (diagnostics: Diagnostic[]) => diagnostics.map(({ message }) => message);
let opened = 0;

/** Opens a network's file with the cursor at `|`, and asks what may stand there, and what stands there. */
async function at(server: LanguageServer, marked: string, ending = "conflist") {
  const uri = `file:///etc/cni/net.d/${opened++}.${ending}`, text = marked.replace("|", "");
  const position = { line: 0, character: marked.indexOf("|") }, where = { textDocument: { uri }, position };
  const diagnostics = await server.open(uri, text);
  const completion = await server.ask("textDocument/completion", where) as { items: { label: string }[] };
  const hover = await server.ask("textDocument/hover", where) as { contents: string[] } | null;
  const says = (hover?.contents ?? []).join("\n").replaceAll("\\", "");
  return { proposes: completion.items.map(({ label }) => label), says, diagnostics: saysOf(diagnostics) };
}

test("a plugin's keys are proposed by its type, those of the IPAM plugin by its own", async () => {
  await using server = await start();
  const [bridge, types, ipam, other] = await Promise.all([
    at(server, inNetwork(`{ "type": "bridge", "v|" }`)),
    at(server, inNetwork(`{ "type": "|" }`)),
    at(server, inNetwork(`{ "type": "bridge", "ipam": { "type": "host-local", "r|" } }`)),
    at(server, inNetwork(`{ "type": "somebody-elses", "v|" }`)),
  ]);
  expect(bridge.proposes).toContainValues(["vlan", "hairpinMode", "ipam"]);
  expect(bridge.proposes).not.toContain("vlanId");
  expect(types.proposes).toContainValues([`"bridge"`, `"portmap"`]);
  expect(types.proposes).not.toContain(`"host-local"`);
  expect(ipam.proposes).toContainValues(["ranges", "dataDir"]);
  expect(ipam.proposes).not.toContain("addresses");
  expect(other.proposes.sort()).toEqual(["args", "capabilities", "dns", "ipam"]);
});

test("a key is explained, and a file may name its schema itself", async () => {
  await using server = await start();
  const { says, diagnostics } = await at(
    server,
    `{ ${named}, "cniVersion": "1.1.0", "name": "net", "plugins": [{ "type": "bridge", "hairpin|Mode": true }] }`,
    "json",
  );
  expect({ says, diagnostics }).toEqual({
    says: "Let the container reach itself through the bridge.",
    diagnostics: [],
  });
});

test("wrong values are marked; plugins of others may have any, and the examples are right", async () => {
  await using server = await start();
  const list = JSON.parse(
    inNetwork(`{ "type": "somebody-elses", "vlan": "x", "ipam": { "type": "theirs", "subnet": 5 } }`),
  );
  const plugin = (conf: object) => ({ plugins: [conf] });
  const judge = async (text: string) => saysOf(await server.open(`file:///net/${opened++}.conflist`, text));
  const faults: [fault: object, says: string][] = [
    [plugin({ type: "bridge", vlan: 4095 }), "Value is above the maximum of 4094."],
    [plugin({ type: "bridge", isGateway: "true" }), `Incorrect type. Expected "boolean".`],
    [plugin({ type: "bridge", ipMasqBackend: "pf" }), "Value is not accepted. Valid values:"],
    [plugin({ type: "vlan", vlanId: 5 }), `Missing property "master".`],
    [plugin({ type: "bridge", ipam: { type: "host-local", ranges: [5] } }), `Incorrect type. Expected "array".`],
    [plugin({ type: "bridge", capabilities: { mac: "yes" } }), `Incorrect type. Expected "boolean".`],
    [plugin({ name: "x" }), `Missing property "type".`],
    [plugin({ type: "a/b" }), "String does not match the pattern"],
    [plugin({ type: "x", ipam: {} }), `Missing property "type".`],
    [{ plugins: [] }, "Array has too few items. Expected 1 or more."],
    [{ name: "../x" }, "String does not match the pattern"],
    [{ cniVersions: ["1"] }, "String does not match the pattern"],
    [{ disableCheck: "maybe" }, `Incorrect type. Expected "boolean".`],
  ];
  const marks = await Promise.all(faults.map(([fault]) => judge(JSON.stringify({ ...list, ...fault }))));
  expect(marks.map(([first]) => first ?? "")).toEqual(faults.map(([, says]) => expect.stringContaining(says)));

  const examples = readdirSync(join(root, "examples")).filter((name) => name.endsWith(".conflist"));
  expect(examples.length).toBeGreaterThan(15);
  const right = [
    JSON.stringify({ ...list, disableCheck: "True", disableGC: false, loadOnlyInlinedPlugins: "false" }),
    ...examples.map((name) => readFileSync(join(root, "examples", name), "utf8")),
  ];
  expect(await Promise.all(right.map(judge))).toEqual(right.map(() => []));
});
