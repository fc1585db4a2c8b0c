/**
 * `npm run docs` builds the site in a copy of the repository: every link and anchor of every page leads somewhere, the
 * search finds what people type, nothing is asked of another host, and two builds are the same. A dead link ends the build.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, extname, join, normalize } from "node:path";
import { installLocked } from "../../compile/setup.mjs";
import config from "../../docs/site/.vitepress/config.ts";
import { pluginNames } from "../../src/plugins/table.ts";
import { copyRepository, root } from "../support/documents.ts";
import { needs } from "../support/needs.ts";

needs("npm");
setDefaultTimeout(600_000);

const tree = mkdtempSync(join(tmpdir(), "patchbay-site-")), site = join(tree, "dist/site");
afterAll(() => rmSync(tree, { recursive: true }));

function build(...options: string[]) {
  const command = [process.execPath, "compile/site.ts", ...options];
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: tree, stdout: "pipe", stderr: "pipe" });
  return { code: exitCode, output: `${stdout}${stderr}` };
}

const files = () =>
  readdirSync(site, { recursive: true, encoding: "utf8" }).filter((name) => extname(name) !== "").sort();
const read = (name: string) => readFileSync(join(site, name), "utf8");
const named = (pattern: RegExp) => files().filter((name) => pattern.test(name));

beforeAll(async () => {
  await installLocked("docs/site", "--ignore-scripts");
  copyRepository(tree);
  symlinkSync(join(root, "docs/site/node_modules"), join(tree, "docs/site/node_modules"));
  expect(build()).toMatchObject({ code: 0 });
});

test("every link and every anchor of every page leads somewhere", () => {
  const pages = named(/\.html$/).filter((name) => name !== "404.html"), there = new Set(files());
  expect(pages.length).toBeGreaterThan(70);
  const anchors = new Map(
    pages.map((name) => [name, new Set([...read(name).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!))]),
  );
  const dead = pages.flatMap((page) =>
    [...read(page).matchAll(/<a [^>]*?href="([^"]+)"/g)].map(([, link]) => link!).filter((link) => {
      if (/^[a-z]+:/.test(link)) return false;
      const [path, anchor] = link.split("#") as [string, string?];
      const target = path === "" ? page : normalize(path.startsWith("/") ? path.slice(1) : join(dirname(page), path));
      const file = target === "." || target === ""
        ? "index.html"
        : target.endsWith("/")
        ? `${target}index.html`
        : target;
      return !there.has(file) || (anchor !== undefined && anchors.get(file)?.has(anchor) === false);
    }).map((link) => `${page}: ${link}`)
  );
  expect(dead).toEqual([]);
});

test("the first page begins with what users do, and no link reads as the path of a page", () => {
  const headings = [...read("index.html").matchAll(/<h2 id="([^"]+)"/g)].map(([, id]) => id!);
  expect(headings.slice(0, 3)).toEqual(["install", "a-first-network", "the-plugins"]);
  const paths = named(/\.html$/).flatMap((name) =>
    [...read(name).matchAll(/<a [^>]*>([\w./-]+\.md)<\/a>/g)].map(([, text]) => `${name}: ${text}`)
  );
  expect(paths).toEqual([]);
});

describe("the search", () => {
  let search: (words: string) => string[];

  beforeAll(async () => {
    const [index] = named(/@localSearchIndex.*\.js$/);
    const { default: text } = await import(join(site, index!)) as { default: string };
    const library = await import(join(root, "docs/site/node_modules/minisearch/dist/es/index.js"));
    // As on a page, to which VitePress passes functions as text.
    const searchOptions = Object.fromEntries(
      Object.entries(config.themeConfig.search.options.miniSearch.searchOptions).map((
        [name, option],
      ) => [name, typeof option === "function" ? new Function(`return ${option}`)() : option]),
    );
    const fields = { fields: ["title", "titles", "text"], storeFields: ["title", "titles"], searchOptions };
    const found = library.default.loadJSON(text, fields) as { search(words: string): { id: string }[] };
    search = (words) => found.search(words).map(({ id }) => id);
  });

  test("finds each plugin among its pages", () => {
    for (const name of pluginNames) {
      const found = search(name).map((id) => id.split("#")[0]);
      expect({ name, found }).toMatchObject({ found: expect.arrayContaining([`/docs/plugins/${name}.html`]) });
    }
    expect(search("xyzzy")).toEqual([]);
  });

  test.each([
    ["no internet", "/docs/troubleshooting.html#no-internet"],
    ["container cannot reach internet", "/docs/troubleshooting.html#no-internet"],
    ["connection refused", "/docs/troubleshooting.html#connection-refused"],
    ["connection timed out", "/docs/troubleshooting.html#connection-timed-out"],
    ["name not resolved", "/docs/troubleshooting.html#name-not-resolved"],
    ["dns", "/docs/troubleshooting.html#name-not-resolved"],
    ["mtu", "/docs/troubleshooting.html#large-packets-vanish"],
    ["dhcp lease", "/docs/dhcp.html"],
    ["nagios", "/docs/monitoring.html"],
  ])("for %j shows %s first", (words, first) => {
    expect(search(words)[0]).toStartWith(first);
  });
});

test("nothing on a page is fetched from another host", () => {
  const loads = /<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href)="(?:https?:)?\/\/[^"]*"/g;
  const styles = /(?:url\(|@import )\s*["']?(?:https?:)?\/\//g;
  const found = named(/\.html$/).flatMap((name) =>
    [...read(name).matchAll(loads)].map(([what]) => `${name}: ${what}`)
  );
  const inStyles = named(/\.css$/).filter((name) => styles.test(read(name)));
  expect([...found, ...inStyles]).toEqual([]);
  expect(named(/\.css$/).length).toBeGreaterThan(0);
});

test("two builds are the same", () => {
  const digest = () => files().map((name) => `${name} ${Bun.hash(readFileSync(join(site, name)))}`);
  const before = digest();
  expect(build()).toMatchObject({ code: 0 });
  expect(digest()).toEqual(before);
});

test("a dead link ends the build, names page and link, and leaves no site", () => {
  appendFileSync(join(tree, "docs/json.md"), "\n[gone](nowhere.md)\n");
  const { code, output } = build();
  expect(code).not.toBe(0);
  expect(output).toContain("docs/json.md: the link nowhere.md leads nowhere");
  expect(existsSync(site)).toBe(false);
});

test("a base that is none is refused before anything is built", () => {
  expect(build("--base", "here")).toMatchObject({ code: 2, output: expect.stringContaining("--base here") });
});
