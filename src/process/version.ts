/** Which Patchbay this is. package.json is where it is written down. */
import { description, version } from "../../package.json";

export const VERSION: string = version;
/** One line, in the help, packages and images. */
export const SUMMARY: string = description;
