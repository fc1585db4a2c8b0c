/** Registers: four of 16 bytes, which are also sixteen of 4 (linux/netfilter/nf_tables.h, enum nft_registers). */
import { NFT_REG32_00, NFT_REG_1 } from "../../uapi/nf-tables.ts";

const WORDS_EACH = 4;

/** The register that begins so many words behind the start, by the name that the kernel tells it under. */
export function registerAt(words: number): number {
  return words % WORDS_EACH === 0 ? NFT_REG_1 + words / WORDS_EACH : NFT_REG32_00 + words;
}
