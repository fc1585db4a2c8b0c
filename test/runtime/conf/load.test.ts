/** Networks are found by name in a directory, with the reference library's texts. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { loadNetwork } from "../../../src/runtime/conf/load.ts";
import { readNetworkList } from "../../../src/runtime/conf/network-file.ts";
import { thrown } from "../../support/outcome.ts";

let directory: string;
beforeEach(() => (directory = mkdtempSync(`${tmpdir()}/conf-`)));
afterEach(() => rmSync(directory, { recursive: true }));

const put = (name: string, content: unknown) =>
  writeFileSync(`${directory}/${name}`, typeof content === "string" ? content : JSON.stringify(content));

const list = (name: string, type = "bridge") => ({ cniVersion: "1.0.0", name, plugins: [{ type }] });

const text = (work: () => unknown) => (thrown(work) as Error | undefined)?.message;

test("a list is found by its name, whatever its file is called", () => {
  put("10-a.conflist", list("a"));
  put("20-b.conflist", list("b"));
  put("30-b.txt", "not looked at");
  const network = loadNetwork(directory, "b");
  expect(network).toMatchObject({ name: "b", cniVersion: "1.0.0", source: JSON.stringify(list("b")) });
  expect(network.plugins.map(({ type }) => type)).toEqual(["bridge"]);
});

test("a single plugin becomes a list of one, and a list of that name wins over it", () => {
  put("10-n.conf", { cniVersion: "0.4.0", name: "n", type: "single", cniVersions: ["1.0.0"] });
  const network = loadNetwork(directory, "n");
  expect(network).toMatchObject({ name: "n", cniVersion: "0.4.0" });
  expect(network.plugins[0]).toMatchObject({ type: "single", name: "n" });
  expect(JSON.parse(network.source)).toEqual({
    cniVersion: "0.4.0",
    name: "n",
    plugins: [{ cniVersion: "0.4.0", name: "n", type: "single", cniVersions: ["1.0.0"] }],
  });
  put("99-n.conflist", list("n", "listed"));
  expect(loadNetwork(directory, "n").plugins[0]!.type).toBe("listed");
});

test("a .json file is a single plugin, too", () => {
  put("n.json", { name: "n", type: "dummy" });
  expect(loadNetwork(directory, "n")).toMatchObject({ cniVersion: "", plugins: [{ type: "dummy" }] });
});

test("comments and trailing commas are accepted, and the source for the cache is plain JSON", () => {
  put(
    "n.conflist",
    '{ // why\n "name": "n//*", "cniVersion": "1.0.0", /* "x": 1, */ "plugins": [{"type": "a\\"//",},],\n}',
  );
  const network = loadNetwork(directory, "n//*");
  expect(network.plugins[0]!.type).toBe('a"//');
  expect(JSON.parse(network.source)).toEqual({ name: "n//*", cniVersion: "1.0.0", plugins: [{ type: 'a"//' }] });
});

test("a comma that follows nothing is no trailing one", () => {
  for (const plugins of ["[,]", '[{"type": "a"},,]', "[{,}]"]) {
    put("n.conflist", `{"name": "n", "plugins": ${plugins}}`);
    expect(text(() => loadNetwork(directory, "n"))).toStartWith("error parsing configuration list: ");
  }
});

test("what is wrong is told of the text itself, and not of a comment before it", () => {
  put("n.conflist", '{ // why\n "name": "n", "plugins": [{"type": nul}]} // end');
  expect(text(() => readNetworkList(`${directory}/n.conflist`))).toContain("nul");
});

test("strings and comments that do not end are refused, however many begin", () => {
  const begun = '{"name": "n", "cniVersion": "1.0.0", "plugins": [{"type": "t"}]}';
  for (const rest of ["/*", "/*/", "/* x *", '"\\'.repeat(200_000), "/*".repeat(200_000), `/* */ "`]) {
    put("n.conflist", begun + rest);
    expect(() => loadNetwork(directory, "n")).toThrow("error parsing configuration list: ");
  }
  put("n.conflist", `${begun}/**/ // end`);
  expect(loadNetwork(directory, "n").name).toBe("n");
});

test("plain JSON stays in the cache byte for byte", () => {
  const source = ' {"name" : "n",\n\t"plugins":[ {"type":"t", "x":"a // b, ]"} ] }\n';
  put("n.conflist", source);
  expect(loadNetwork(directory, "n").source).toBe(source);
});

test("the error for an unknown network has the directory, and says whether it is empty", () => {
  expect(text(() => loadNetwork(`${directory}/none`, "n"))).toBe(`no net configurations found in ${directory}/none`);
  mkdirSync(`${directory}/sub.conflist`);
  expect(text(() => loadNetwork(directory, "n"))).toBe(`no net configurations found in ${directory}`);
  put("a.conflist", list("a"));
  expect(text(() => loadNetwork(directory, "n"))).toBe(`no net configuration with name "n" in ${directory}`);
});

test("a broken file that sorts earlier hides the network, one that sorts later does not", () => {
  put("20-n.conflist", list("n"));
  put("30-broken.conflist", "{");
  expect(loadNetwork(directory, "n").name).toBe("n");
  put("10-broken.conflist", "{");
  expect(text(() => loadNetwork(directory, "n"))).toStartWith("error parsing configuration list: ");
});

test("a list in a .conf file is refused", () => {
  put("10-n.conf", list("n"));
  expect(text(() => loadNetwork(directory, "n"))).toBe("error parsing configuration: missing 'type'");
});

test("a dangling link is an error that names the file", () => {
  symlinkSync("/nowhere", `${directory}/n.conflist`);
  expect(text(() => loadNetwork(directory, "n")))
    .toBe(`error reading ${directory}/n.conflist: open ${directory}/n.conflist: no such file or directory`);
});

test("plugins in the folder named after the network follow the inlined ones, sorted", () => {
  put("n.conflist", list("n", "first"));
  mkdirSync(`${directory}/n`);
  put("n/20-c.conf", { type: "third" });
  put("n/10-b.conf", { type: "second" });
  put("n/30-d.conflist", list("ignored"));
  const types = () => loadNetwork(directory, "n").plugins.map(({ type }) => type);
  expect(types()).toEqual(["first", "second", "third"]);
  put("n.conflist", { ...list("n", "first"), loadOnlyInlinedPlugins: true });
  expect(types()).toEqual(["first"]);
  put("n.conflist", { name: "n" });
  expect(types()).toEqual(["second", "third"]);
  put("n/15-bad.conf", { name: "no type" });
  expect(text(types)).toBe("error parsing configuration: missing 'type'");
});

test("a network without any plugin is refused, and a name that is no file name chooses no folder", () => {
  put("n.conflist", { name: "n" });
  expect(text(() => readNetworkList(`${directory}/n.conflist`))).toBe("no plugin configs found");
  put("stray.conf", { type: "stray" });
  for (const name of ["", ".", "..", "n/.."]) {
    put("n.conflist", { name });
    expect(text(() => readNetworkList(`${directory}/n.conflist`))).toBe("no plugin configs found");
  }
});
