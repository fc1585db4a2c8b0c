/** The pages of this repository as a site: `npm run docs`. */
import { posix, relative } from "node:path";
import { description } from "../../../package.json";
import { copyLinked, isCopy, siteLink, siteText } from "./links.ts";
import { anchorOf, pages, placeOf, root } from "./repository.ts";
import { searchOptions } from "./search.ts";
import { navigation, sidebar } from "./sidebar.ts";

const all = pages();
const groups = sidebar();

interface Token {
  attrs: [string, string][] | null;
  children: Token[] | null;
  type: string;
  content: string;
}

/** Of markdown-it, what is used here. */
interface Markdown {
  core: {
    ruler: {
      push(
        name: string,
        rule: (
          state: { tokens: Token[]; env: { path: string; realPath?: string } },
        ) => void,
      ): void;
    };
  };
}

/** On the site, links lead where links.ts says, and read as it says. Pictures stay beside their pages. */
function leadLinks(markdown: Markdown): void {
  markdown.core.ruler.push("links of the repository", ({ tokens, env }) => {
    const page = posix.normalize(relative(root, env.realPath ?? env.path));
    for (const { children } of tokens) {
      for (const [at, { attrs }] of (children ?? []).entries()) {
        const href = attrs?.find(([name]) => name === "href"), text = children![at + 1]!;
        if (href === undefined) continue;
        if (text.type === "text") text.content = siteText(page, href[1], text.content);
        href[1] = siteLink(page, href[1]);
        // VitePress takes it for a page of its own otherwise, and knows the site's base.
        if (isCopy(href[1])) attrs!.push(["target", "_self"]);
      }
    }
  });
}

interface Highlighter {
  codeToHtml(code: string, options: object): string;
}

/** Otherwise a line that takes half a second on a busy machine stays without colours, and two builds differ. */
function colourWithoutHurry(highlighter: Highlighter): void {
  const { codeToHtml } = highlighter;
  highlighter.codeToHtml = (code, options) => codeToHtml(code, { ...options, tokenizeTimeLimit: 0 });
}

interface Resolver {
  resolve(id: string, importer: string, options: object): Promise<unknown>;
}

/** The pages are not beside the packages of this folder, and each page becomes a module that imports Vue. */
const vueForPages = {
  name: "vue-for-pages",
  enforce: "pre",
  resolveId(
    this: Resolver,
    id: string,
    importer: string | undefined,
    options: object,
  ) {
    if (!/^vue($|\/)/.test(id) || !importer?.endsWith(".md")) return undefined;
    return this.resolve(id, import.meta.filename, {
      ...options,
      skipSelf: true,
    });
  },
};

export default {
  title: "Patchbay",
  description,
  lang: "en",
  srcDir: root,
  outDir: `${root}/dist/site`,
  srcExclude: ["node_modules/**", "dist/**", "docs/site/**"],
  rewrites: Object.fromEntries(
    all.filter((page) => placeOf(page) !== page).map((
      page,
    ) => [page, placeOf(page)]),
  ),
  // One page at a time, so that the search index is the same in every build.
  buildConcurrency: 1,
  metaChunk: true,
  buildEnd: ({ outDir }: { outDir: string }) => copyLinked(outDir),
  markdown: {
    // What the pages mean when they are read as files, and nothing more.
    html: false,
    linkify: false,
    typographer: false,
    attrs: { disable: true },
    anchor: { slugify: anchorOf },
    languageAlias: { conflist: "json" },
    config: leadLinks,
    shikiSetup: colourWithoutHurry,
  },
  themeConfig: {
    nav: navigation(groups),
    sidebar: groups,
    outline: { level: [2, 3] },
    search: { provider: "local", options: { detailedView: true, miniSearch: { searchOptions } } },
    docFooter: { prev: "Before", next: "Next" },
  },
  vite: { plugins: [vueForPages] },
};
