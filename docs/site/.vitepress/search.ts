/**
 * What comes first in the search of the site. The program's users search more often than those who change it, so pages
 * for users weigh more. VitePress writes these functions into the pages as text: none may use anything around it.
 */
export const searchOptions = {
  /** Short words begin half of the dictionary, and one letter more or less makes another word of them. */
  prefix: (word: string) => word.length > 2,
  fuzzy: (word: string) => word.length > 5 ? 0.2 : false,
  boost: { title: 4, text: 2, titles: 1 },
  boostDocument: (address: string) => {
    const isForChanges =
      /\/(docs\/(quirks|decisions|cves|spec-map|performance|conformance|kernel-objects|ledger|lease-store)|test\/|ARCHITECTURE|CHANGELOG|CONTRIBUTING|SECURITY)/;
    return isForChanges.test(address) ? 0.25 : 1;
  },
};
