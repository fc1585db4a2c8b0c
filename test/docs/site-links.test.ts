/** The sidebar of the site has every page, as docs/README.md has them, and links lead where they lead in the repository. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isCopy, siteLink, siteText } from "../../docs/site/.vitepress/links.ts";
import { addressOf, anchorOf, pages, placeOf } from "../../docs/site/.vitepress/repository.ts";
import { navigation, sidebar } from "../../docs/site/.vitepress/sidebar.ts";
import { repositoryFiles, root } from "../support/documents.ts";

interface Item {
  text: string;
  link?: string;
  items?: Item[];
}

const all = (items: Item[]): Item[] => items.flatMap((item) => [item, ...all(item.items ?? [])]);
const linksOf = (items: Item[]) => all(items).flatMap(({ link }) => link ?? []);

test("every page of the repository is on the site, and once in the sidebar", () => {
  expect(pages()).toEqual(repositoryFiles().filter((path) => path.endsWith(".md")));
  expect(linksOf(sidebar()).sort()).toEqual(pages().map(addressOf).sort());
});

test("the groups are the sections of docs/README.md, each with its pages in that order", () => {
  const sections = [...readFileSync(join(root, "docs/README.md"), "utf8").matchAll(/^## (.*)$/gm)].map(([, one]) =>
    one!
  );
  expect(sidebar().map(({ text }) => text)).toEqual(sections);
  const recipes = sidebar().find(({ text }) => text === "Recipes")!.items;
  expect(recipes[0]).toMatchObject({ text: "Recipes", link: "/docs/recipes/" });
  expect(recipes[1]).toMatchObject({ text: "IPv4 and IPv6", link: "/docs/recipes/dual-stack.html" });
  const quirks = all(sidebar()).find(({ link }) => link === "/docs/quirks/")!;
  expect(linksOf(quirks.items!)).toContain("/docs/quirks/bridge.html");
});

test("a page that the index does not name yet stands in Reference, by its first heading", () => {
  const index = "# Documentation\n\n## Start\n\n- [start.md](start.md)\n\n## Reference\n\n- [json.md](json.md)\n";
  const groups = sidebar(index, ["docs/json.md", "docs/start.md", "docs/ovs.md"]);
  expect(groups.map(({ text, items }) => [text, ...items.map(({ text }) => text)])).toEqual([
    ["Start", "Five minutes"],
    ["Reference", "What --json prints", "Containers on Open vSwitch"],
  ]);
  expect(navigation(groups)).toEqual([
    { text: "Start", link: "/docs/start.html" },
    { text: "Reference", link: "/docs/json.html" },
  ]);
});

test.each([
  ["docs/start.md", "../README.md#install", "/#install"],
  ["docs/engines/podman.md", "../dhcp.md", "/docs/dhcp.html"],
  ["README.md", "docs/quirks/README.md", "/docs/quirks/"],
  ["docs/README.md", "../SECURITY.md", "/SECURITY.html"],
  ["docs/dhcp.md", "../examples/dhcp.conflist", "../files/examples/dhcp.conflist.txt"],
  ["README.md", "schemas", "files/schemas/index.html"],
  ["docs/README.md", "../examples", "../files/examples/index.html"],
  ["docs/ovs.md", "#with-engines", "#with-engines"],
  ["README.md", "https://www.cni.dev/", "https://www.cni.dev/"],
])("%s: %s leads to %s", (page, link, address) => {
  expect(siteLink(page, link)).toBe(address);
  expect(isCopy(address)).toBe(address.includes("files/"));
});

test.each([
  ["README.md", "docs/start.md", "docs/start.md", "Five minutes"],
  ["docs/start.md", "../README.md#install", "README.md", "Patchbay"],
  ["docs/README.md", "recipes/README.md", "recipes/", "Recipes"],
  ["docs/start.md", "README.md#engines", "Engines", "Engines"],
  ["docs/README.md", "../examples", "../examples/", "../examples/"],
])("%s: %s reads as a title where it read %s", (page, link, text, title) => {
  expect(siteText(page, link, text)).toBe(title);
});

test("a link that leads nowhere, or out of the repository, is an error that names page and link", () => {
  expect(() => siteLink("docs/dhcp.md", "../examples/none.conflist")).toThrow(
    "docs/dhcp.md: the link ../examples/none",
  );
  expect(() => siteLink("docs/dhcp.md", "../../../etc/passwd")).toThrow("leads nowhere");
});

test("places and anchors", () => {
  expect(["README.md", "docs/quirks/README.md", "docs/ovs.md"].map(placeOf)).toEqual([
    "index.md",
    "docs/quirks/index.md",
    "docs/ovs.md",
  ]);
  expect(anchorOf("What `--json` prints, and why")).toBe("what---json-prints-and-why");
});
