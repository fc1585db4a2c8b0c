/**
 * What is linked into the program besides our own code: Bun and the libraries in it. Bun itself says which versions
 * (`process.versions`); licences are those that its repository names. A new Bun with a further library fails the test.
 */

export interface Part {
  name: string;
  version: string;
  /** An SPDX expression. */
  licence: string;
  /** Where its sources are. */
  source: string;
  /** A package URL, where one is defined for such a source. */
  purl?: string;
}

/** By the name in `process.versions`. */
const libraries: Record<string, { name: string; licence: string; source: string }> = {
  ares: { name: "c-ares", licence: "MIT", source: "https://github.com/c-ares/c-ares" },
  boringssl: {
    name: "boringssl",
    licence: "Apache-2.0 AND ISC AND OpenSSL AND MIT AND BSD-3-Clause",
    source: "https://github.com/google/boringssl",
  },
  icu: { name: "icu", licence: "Unicode-3.0", source: "https://github.com/unicode-org/icu" },
  libarchive: { name: "libarchive", licence: "BSD-2-Clause", source: "https://github.com/libarchive/libarchive" },
  libdeflate: { name: "libdeflate", licence: "MIT", source: "https://github.com/ebiggers/libdeflate" },
  llhttp: { name: "llhttp", licence: "MIT", source: "https://github.com/nodejs/llhttp" },
  lolhtml: { name: "lol-html", licence: "BSD-3-Clause", source: "https://github.com/cloudflare/lol-html" },
  lshpack: { name: "ls-hpack", licence: "MIT", source: "https://github.com/litespeedtech/ls-hpack" },
  mimalloc: { name: "mimalloc", licence: "MIT", source: "https://github.com/oven-sh/mimalloc" },
  picohttpparser: {
    name: "picohttpparser",
    licence: "MIT OR Artistic-1.0-Perl",
    source: "https://github.com/h2o/picohttpparser",
  },
  sqlite: { name: "sqlite", licence: "blessing", source: "https://sqlite.org" },
  tinycc: { name: "tinycc", licence: "LGPL-2.1-only", source: "https://github.com/oven-sh/tinycc" },
  usockets: { name: "uSockets", licence: "Apache-2.0", source: "https://github.com/uNetworking/uSockets" },
  uv: { name: "libuv", licence: "MIT", source: "https://github.com/libuv/libuv" },
  uwebsockets: { name: "uWebSockets", licence: "Apache-2.0", source: "https://github.com/uNetworking/uWebSockets" },
  webkit: {
    name: "WebKit",
    licence: "LGPL-2.0-only AND BSD-2-Clause",
    source: "https://github.com/oven-sh/WebKit",
  },
  zlib: { name: "zlib-ng", licence: "Zlib", source: "https://github.com/zlib-ng/zlib-ng" },
  zstd: { name: "zstd", licence: "BSD-3-Clause OR GPL-2.0-only", source: "https://github.com/facebook/zstd" },
};

/** Names of interfaces and formats that Bun says it has, of Bun itself, and of what it was compiled with. */
export const notLinked = ["bun", "modules", "napi", "node", "openssl", "typescript", "unicode", "v8", "zig"];

/** Of which Bun does not say the version. */
const unversioned: Record<string, { licence: string; source: string }> = {
  base64: { licence: "BSD-2-Clause", source: "https://github.com/aklomp/base64" },
  brotli: { licence: "MIT", source: "https://github.com/google/brotli" },
  highway: { licence: "Apache-2.0 OR BSD-3-Clause", source: "https://github.com/google/highway" },
  "libjpeg-turbo": {
    licence: "IJG AND BSD-3-Clause AND Zlib",
    source: "https://github.com/libjpeg-turbo/libjpeg-turbo",
  },
  libspng: { licence: "BSD-2-Clause", source: "https://github.com/randy408/libspng" },
  libwebp: { licence: "BSD-3-Clause", source: "https://github.com/webmproject/libwebp" },
  "ls-qpack": { licence: "MIT", source: "https://github.com/litespeedtech/ls-qpack" },
  lsquic: { licence: "MIT AND BSD-3-Clause", source: "https://github.com/litespeedtech/lsquic" },
  simdutf: { licence: "Apache-2.0 OR MIT", source: "https://github.com/simdutf/simdutf" },
  uucode: { licence: "MIT", source: "https://github.com/jacobsandlund/uucode" },
};

export function runtimeParts(): Part[] {
  const bun: Part = {
    name: "bun",
    version: Bun.version,
    licence: "MIT",
    source: "https://github.com/oven-sh/bun",
    purl: `pkg:npm/bun@${Bun.version}`,
  };
  const said = Object.entries(libraries).map(([key, { name, licence, source }]) => {
    const version = process.versions[key]!;
    return { name, version, licence, source, ...purlOf(source, version) };
  });
  const others = Object.entries(unversioned).map(([name, { licence, source }]) => {
    const version = `as in bun ${Bun.version}`;
    return { name, version, licence, source };
  });
  return [bun, ...[...said, ...others].sort((a, b) => a.name < b.name ? -1 : 1)];
}

export const versionedLibraries = Object.keys(libraries);

function purlOf(source: string, version: string): { purl?: string } {
  const repository = /^https:\/\/github\.com\/(.+)$/.exec(source)?.[1];
  return repository === undefined ? {} : { purl: `pkg:github/${repository.toLowerCase()}@${version}` };
}
